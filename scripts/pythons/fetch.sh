#!/usr/bin/env bash
# fetch.sh VERSION SUITE: fetches the Python of a Debian release with its libraries, for tests.
#
# Each version has a folder of its own, named after the version. To fetch newer ones, remove the
# folders.
set -euo pipefail
cd "$(dirname "$0")/../.."
version=$1 suite=$2
# shellcheck source=scripts/suite.sh
. scripts/suite.sh

die() {
	echo "pythons: $*: for tests with Python $version install it with pyenv" >&2
	exit 1
}

command -v apt-get >/dev/null || die "there is no apt-get to fetch Debian's $suite with"
echo "==> Fetching Python $version of Debian's $suite" >&2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
use_suite "$suite" "$folder"
apt-get install -q=2 -y --download-only --no-install-recommends "python$version" >&2 ||
	die "no entry of this machine's package sources leads to Debian's $suite"

packages=$folder/cache/archives
release=$(dpkg-deb -f "$packages/python$version"_*.deb Version)
kept=${XDG_CACHE_HOME:-$HOME/.cache}/systemscope/pythons/${release%%[-~+]*}
rm -rf "$kept"
# Older releases have the C library outside /usr, and the launcher uses only /usr.
mkdir -p "$kept"/bin "$kept"/root/usr/{lib,lib64}
ln -s usr/lib usr/lib64 "$kept/root/"
for package in "$packages"/*.deb; do
	dpkg-deb --fsys-tarfile "$package" | tar -x --keep-directory-symlink -C "$kept/root"
done
# Compiles the library as an installed package does, so that Python starts as fast.
libraries=$kept/root/usr/lib/x86_64-linux-gnu
"$libraries/ld-linux-x86-64.so.2" --library-path "$libraries" "$kept/root/usr/bin/python$version" \
	-m compileall -q "$kept/root/usr/lib/python$version" >&2 ||
	die "Python $version of Debian's $suite does not work here"

# The launcher mounts this Python's files on /usr in a mount namespace of its own. All other
# files are this machine's. It executes Python in the same process, which is the target of the
# tests.
launcher=$kept/bin/python$version
ln -s "python$version" "$kept/bin/python3"
cat >"$launcher.partial" <<END
#!/bin/sh
exec unshare --mount sh -c 'mount -o bind,ro "\$0" /usr && exec /usr/bin/python$version "\$@"' \\
	"\${0%/bin/*}/root/usr" "\$@"
END
chmod 755 "$launcher.partial"
mv "$launcher.partial" "$launcher"
