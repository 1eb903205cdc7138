#!/usr/bin/env bash
# fetch.sh VERSION SUITE: fetches the Python of a Debian release, with the
# libraries that it needs, for tests.
#
# It is kept beside those of other versions, each in a folder with the name of its
# version. To have newer ones, remove them.
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
# Older releases have their C library outside of /usr, which is all that is used.
mkdir -p "$kept"/bin "$kept"/root/usr/{lib,lib64}
ln -s usr/lib usr/lib64 "$kept/root/"
for package in "$packages"/*.deb; do
	dpkg-deb --fsys-tarfile "$package" | tar -x --keep-directory-symlink -C "$kept/root"
done
# As packages do when they are installed: it starts as fast as it does there.
libraries=$kept/root/usr/lib/x86_64-linux-gnu
"$libraries/ld-linux-x86-64.so.2" --library-path "$libraries" "$kept/root/usr/bin/python$version" \
	-m compileall -q "$kept/root/usr/lib/python$version" >&2 ||
	die "Python $version of Debian's $suite does not work here"

# Its files are where it looks for them, in sight of nobody else; all the rest is this
# machine's. It is the process that was started, as those that measure it expect.
launcher=$kept/bin/python$version
ln -s "python$version" "$kept/bin/python3"
cat >"$launcher.partial" <<END
#!/bin/sh
exec unshare --mount sh -c 'mount -o bind,ro "\$0" /usr && exec /usr/bin/python$version "\$@"' \\
	"\${0%/bin/*}/root/usr" "\$@"
END
chmod 755 "$launcher.partial"
mv "$launcher.partial" "$launcher"
