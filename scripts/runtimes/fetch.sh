#!/usr/bin/env bash
# fetch.sh PROGRAM VERSION SUITE: fetches the php, ruby or go of a Debian release with its
# libraries, for tests. Each version has a folder of its own. To fetch a newer release, remove the folder.
set -euo pipefail
cd "$(dirname "$0")/../.."
program=$1 version=$2 suite=$3
# shellcheck source=scripts/suite.sh
. scripts/suite.sh

die() {
	echo "runtimes: $*: the tests run without $program $version" >&2
	exit 1
}

command -v apt-get >/dev/null || die "there is no apt-get to fetch Debian's $suite with"
echo "==> Fetching $program $version of Debian's $suite" >&2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
use_suite "$suite" "$folder"
package=$program$version
[[ $program != php ]] || package=$package-cli
packages=("$package")
[[ $program != go ]] || packages=("golang-$version-go" "golang-$version-src")
apt-get install -q=2 -y --download-only --no-install-recommends "${packages[@]}" >&2 ||
	die "no entry of this machine's package sources leads to Debian's $suite"

kept=${XDG_CACHE_HOME:-$HOME/.cache}/systemscope/runtimes/$program/$version
rm -rf "$kept"
mkdir -p "$kept"/bin "$kept"/root/usr/{lib,lib64}
ln -s usr/lib usr/lib64 "$kept/root/"
for archive in "$folder"/cache/archives/*.deb; do
	dpkg-deb --fsys-tarfile "$archive" | tar -x --keep-directory-symlink -C "$kept/root"
done

# Go finds its files beside its own program.
if [[ $program == go ]]; then
	ln -s "../root/usr/lib/go-$version/bin/go" "$kept/bin/go.partial"
	"$kept/bin/go.partial" version >/dev/null || die "go $version does not work here"
	mv "$kept/bin/go.partial" "$kept/bin/go"
	exit
fi

# The launcher mounts this release's files on /usr in a mount namespace of its own. It executes the
# interpreter in the same process, which is the target of the tests.
launcher=$kept/bin/$program
cat >"$launcher.partial" <<END
#!/bin/sh
exec unshare --mount sh -c 'mount -o bind,ro "\$0" /usr && exec /usr/bin/$program$version "\$@"' \\
	"\${0%/bin/*}/root/usr" "\$@"
END
chmod 755 "$launcher.partial"
"$launcher.partial" --version >/dev/null || die "$program $version does not work here"
mv "$launcher.partial" "$launcher"
