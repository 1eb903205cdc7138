# shellcheck shell=bash
# Scripts source this file to fetch packages of other Debian releases than this machine's.

# use_suite SUITE FOLDER: makes apt use that release in this shell. For "experimental" apt also uses
# sid, because experimental has only the packages that differ.
#
# Packages come from this machine's package sources. use_suite writes copies of the source entries,
# with the name of the release replaced, into FOLDER. The machine's package management does not
# change.
use_suite() {
	local suites=$1 folder=$2 names entries
	[[ $suites != experimental ]] || suites="sid experimental"
	mkdir -p "$folder"/{lists/partial,cache/archives/partial,sources}
	: >"$folder/status"
	cat >"$folder/apt.conf" <<-END
		Dir::State::lists "$folder/lists";
		Dir::State::status "$folder/status";
		Dir::State::extended_states "$folder/extended_states";
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

	# Names that entries may use for this machine's release.
	# shellcheck source=/dev/null
	names="$(. /etc/os-release && echo "${VERSION_CODENAME:-}") stable testing unstable sid"
	# Entries in paragraphs: "Suites: bookworm bookworm-updates".
	for entries in /etc/apt/sources.list.d/*.sources; do
		[[ -f $entries ]] || continue
		awk -v RS= -v ORS='\n\n' -v names="$names" -v suites="$suites" '
			BEGIN { split(names, list, " "); for (i in list) known[list[i]] }
			/(^|\n)Enabled: *no/ || !/(^|\n)Components:[^\n]* main( |\n|$)/ { next }
			match($0, /(^|\n)Suites:[^\n]*/) {
				before = substr($0, 1, RSTART - 1)
				found = substr($0, RSTART, RLENGTH)
				after = substr($0, RSTART + RLENGTH)
				count = split(found, words, /[ \t\n]+/)
				for (i = 1; i <= count; i++)
					if (words[i] in known) {
						print before "\nSuites: " suites after
						next
					}
			}' "$entries" >"$folder/sources/${entries##*/}"
	done
	# Entries of one line: "deb [options] address bookworm main".
	for entries in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
		[[ -f $entries ]] || continue
		awk -v names="$names" -v suites="$suites" '
			BEGIN { split(names, list, " "); for (i in list) known[list[i]] }
			$1 == "deb" && / main( |$)/ {
				options = 0
				if (match($0, /\[[^]]*\]/)) {
					options = substr($0, RSTART, RLENGTH)
					sub(/\[[^]]*\]/, "")
				}
				if ($3 in known) {
					count = split(suites, list, " ")
					for (i = 1; i <= count; i++)
						print "deb", options ? options : "", $2, list[i], "main"
				}
			}' "$entries" >"$folder/sources/${entries##*/}"
	done

	# An entry without this release is no error.
	apt-get update -q=2 >&2 || true
}
