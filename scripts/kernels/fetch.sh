#!/usr/bin/env bash
# fetch.sh SUITE: prints the path of the cloud kernel of a Debian release.
#
# It comes from where this machine's own packages come from: its source entries
# with the name of the release exchanged, in a configuration of their own, so
# that nothing of the machine's package management changes. A kernel that is
# there already is not fetched again; to have newer ones, remove the folder.
set -euo pipefail
suite=$1

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
mkdir -p "$folder"/{lists/partial,cache/archives/partial,sources,package}
: >"$folder/status"
cat >"$folder/apt.conf" <<END
Dir::State::lists "$folder/lists";
Dir::State::status "$folder/status";
Dir::Cache "$folder/cache";
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "$folder/sources";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Acquire::Languages "none";
APT::Architecture "amd64";
APT::Architectures "amd64";
APT::Sandbox::User root;
END
export APT_CONFIG=$folder/apt.conf

# What the release of this machine may be called in its entries.
# shellcheck source=/dev/null
names="$(. /etc/os-release && echo "${VERSION_CODENAME:-}") stable testing unstable sid"
shopt -s nullglob
# Entries in paragraphs: "Suites: bookworm bookworm-updates".
for entries in /etc/apt/sources.list.d/*.sources; do
	awk -v RS= -v ORS='\n\n' -v names="$names" -v suite="$suite" '
		BEGIN { split(names, list, " "); for (i in list) known[list[i]] }
		/(^|\n)Enabled: *no/ || !/(^|\n)Components:[^\n]* main( |\n|$)/ { next }
		match($0, /(^|\n)Suites:[^\n]*/) {
			before = substr($0, 1, RSTART - 1)
			found = substr($0, RSTART, RLENGTH)
			after = substr($0, RSTART + RLENGTH)
			count = split(found, words, /[ \t\n]+/)
			for (i = 1; i <= count; i++)
				if (words[i] in known) {
					print before "\nSuites: " suite after
					next
				}
		}' "$entries" >"$folder/sources/${entries##*/}"
done
# Entries of one line: "deb [options] address bookworm main".
for entries in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
	[[ -f $entries ]] || continue
	awk -v names="$names" -v suite="$suite" '
		BEGIN { split(names, list, " "); for (i in list) known[list[i]] }
		$1 == "deb" && / main( |$)/ {
			options = 0
			if (match($0, /\[[^]]*\]/)) {
				options = substr($0, RSTART, RLENGTH)
				sub(/\[[^]]*\]/, "")
			}
			if ($3 in known)
				print "deb", options ? options : "", $2, suite, "main"
		}' "$entries" >"$folder/sources/${entries##*/}"
done

# An entry that does not have this release is none of our business.
apt-get update -q=2 >&2 || true

depends_on() {
	apt-cache depends "$1" | sed -n "s/^ *Depends: \($2.*\)/\1/p" | head -n 1
}

# The name without a version, the image it stands for, and since 7.x the
# package that the image itself has moved to.
package=$(depends_on linux-image-cloud-amd64 linux-image-)
[[ -n $package ]] || die "no entry of this machine's package sources leads to Debian's $suite"
binary=$(depends_on "$package" linux-binary-)
package=${binary:-$package}
(cd "$folder" && apt-get download -q=2 "$package") >&2 || die "$package could not be fetched"
dpkg-deb -x "$folder"/*.deb "$folder/package"

images=("$folder"/package/boot/vmlinuz-* "$folder"/package/usr/lib/modules/*/vmlinuz)
((${#images[@]})) || die "there is no kernel in $package"
mkdir -p "$kept"
cp "${images[0]}" "$kept/vmlinuz.partial"
mv "$kept/vmlinuz.partial" "$kept/vmlinuz"
echo "$kept/vmlinuz"
