#!/usr/bin/env bash
# fetch.sh PROGRAM VERSION SUITE: fetches the java, node, php, ruby or go of a Debian release with
# its libraries, for tests. Each version has a folder of its own. To fetch a newer release, remove
# the folder.
set -euo pipefail
cd "$(dirname "$0")/../.."
program=$1 version=$2 suite=$3
# shellcheck source=scripts/suite.sh
. scripts/suite.sh

die() {
	echo "runtimes: $*: the tests run without $program $version" >&2
	exit 1
}

# Debian's packages, and where they have the program.
case $program in
java) packages=("openjdk-$version-jre-headless") path=/usr/lib/jvm/java-$version-openjdk-amd64/bin/java ;;
node) packages=(nodejs) path=/usr/bin/node ;;
php) packages=("php$version-cli") path=/usr/bin/php$version ;;
ruby) packages=("ruby$version") path=/usr/bin/ruby$version ;;
go) packages=("golang-$version-go" "golang-$version-src") path=/usr/lib/go-$version/bin/go ;;
*) die "no package is known" ;;
esac
[[ $program$version != java8 ]] || path=/usr/lib/jvm/java-8-openjdk-amd64/jre/bin/java

command -v apt-get >/dev/null || die "there is no apt-get to fetch Debian's $suite with"
echo "==> Fetching $program $version of Debian's $suite" >&2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
use_suite "$suite" "$folder"
# libc-bin has the locale C.UTF-8, which older C libraries read from a file.
apt-get install -q=2 -y --download-only --no-install-recommends "${packages[@]}" libc-bin >&2 ||
	die "this machine's package sources lead to no ${packages[*]} of Debian's $suite"

kept=${XDG_CACHE_HOME:-$HOME/.cache}/systemscope/runtimes/$program/$version
rm -rf "$kept"
# Older releases have the C library outside /usr, and the launcher uses only /usr.
mkdir -p "$kept"/bin "$kept"/root/usr/{lib,lib64}
ln -s usr/lib usr/lib64 "$kept/root/"
for archive in "$folder"/cache/archives/*.deb; do
	dpkg-deb --fsys-tarfile "$archive" | tar -x --keep-directory-symlink -C "$kept/root"
done
# Java's configuration is in /etc of the release, with links to it in /usr.
find "$kept/root/usr" -type l -lname '/etc/java-*' | while read -r link; do
	file=$kept/root$(readlink "$link")
	rm "$link"
	[[ ! -e $file ]] || cp -rL "$file" "$link"
done

# Go finds its files beside its own program.
if [[ $program == go ]]; then
	ln -s "../root$path" "$kept/bin/go.partial"
	"$kept/bin/go.partial" version >/dev/null || die "go $version does not work here"
	mv "$kept/bin/go.partial" "$kept/bin/go"
	exit
fi

# The launcher mounts this release's files on /usr in a mount namespace of its own. It executes the
# program in the same process, which is the target of the tests.
launcher=$kept/bin/$program
cat >"$launcher.partial" <<END
#!/bin/sh
exec unshare --mount sh -c 'mount -o bind,ro "\$0" /usr && exec $path "\$@"' \\
	"\${0%/bin/*}/root/usr" "\$@"
END
chmod 755 "$launcher.partial"
# Java 8 knows no --version.
flag=--version
[[ $program != java ]] || flag=-version
told=$("$launcher.partial" "$flag" 2>&1) || die "$program $version does not work here"
[[ $program != node || $told == "v$version."* ]] ||
	die "Debian's $suite has another version, $told"
mv "$launcher.partial" "$launcher"
