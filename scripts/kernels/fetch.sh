#!/usr/bin/env bash
# fetch.sh SUITE: prints the path of the cloud kernel of a Debian release.
#
# A fetched kernel is kept. To fetch a newer one, remove its folder.
set -euo pipefail
cd "$(dirname "$0")/../.."
suite=$1
# shellcheck source=scripts/suite.sh
. scripts/suite.sh

kept=${XDG_CACHE_HOME:-$HOME/.cache}/systemscope/kernels/$suite
if [[ -f $kept/vmlinuz ]]; then
	echo "$kept/vmlinuz"
	exit 0
fi

die() {
	echo "kernels: $*: put a kernel with BTF there as $kept/vmlinuz by hand" >&2
	exit 1
}

command -v apt-get >/dev/null || die "there is no apt-get to fetch Debian's $suite with"
echo "==> Fetching the kernel of Debian's $suite" >&2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
use_suite "$suite" "$folder"
mkdir "$folder/package"

depends_on() {
	apt-cache depends "$1" | sed -n "s/^ *Depends: \($2.*\)/\1/p" | head -n 1
}

# linux-image-cloud-amd64 depends on the image of the current version. Since 7.x that package
# depends on another one with the image.
package=$(depends_on linux-image-cloud-amd64 linux-image-)
[[ -n $package ]] || die "no entry of this machine's package sources leads to Debian's $suite"
binary=$(depends_on "$package" linux-binary-)
package=${binary:-$package}
(cd "$folder" && apt-get download -q=2 "$package") >&2 || die "$package could not be fetched"
dpkg-deb -x "$folder"/*.deb "$folder/package"

shopt -s nullglob
images=("$folder"/package/boot/vmlinuz-* "$folder"/package/usr/lib/modules/*/vmlinuz)
((${#images[@]})) || die "there is no kernel in $package"
mkdir -p "$kept"
cp "${images[0]}" "$kept/vmlinuz.partial"
mv "$kept/vmlinuz.partial" "$kept/vmlinuz"
echo "$kept/vmlinuz"
