#!/usr/bin/env bash
# Checks documents and comments for faults that a machine can detect. Prints `FILE:LINE: text`
# for each fault, and exits with status 1 if there is one.
#
#     check-docs.sh              length of README.md, long lines, dead links and paths
#     check-docs.sh --comments   doc comments that are empty or begin with a dangling word
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C.UTF-8

README_LINES=150
LINE_CHARACTERS=160
DANGLING='Of|Who|Whose|Whom|What|Has|Is|Are|Those|That|Where|How|Whether'

faults=0
fault() {
	echo "$*" >&2
	faults=1
}

# Tables may have longer lines, and so may the results that `make tables` writes.
check_lengths() {
	local file line number
	number=$(wc -l <README.md)
	((number <= README_LINES)) ||
		fault "README.md:$number: README.md has $number lines, more than $README_LINES: move details to docs/"
	for file in "${documents[@]}"; do
		[[ $file != docs/results/* ]] || continue
		number=0
		while IFS= read -r line; do
			number=$((number + 1))
			[[ ${#line} -le $LINE_CHARACTERS || $line == '|'* ]] ||
				fault "$file:$number: line of ${#line} characters, more than $LINE_CHARACTERS: cut it with …"
		done <"$file"
	done
}

# anchors FILE: prints the anchors of the headings as GitHub makes them.
anchors() {
	# shellcheck disable=SC2016 # backticks are a fence
	sed -n '/^```/,/^```/d; s/^##* //p' "$1" | tr '[:upper:]' '[:lower:]' |
		sed 's/[^[:alnum:] _-]//g; s/ /-/g'
}

check_links() {
	local file number link path anchor
	while IFS=: read -r file number link; do
		link=${link#](}
		link=${link%)}
		[[ $link != *://* && $link != mailto:* ]] || continue
		path=${link%%#*}
		anchor=
		[[ $link != *'#'* ]] || anchor=${link#*#}
		[[ -z $path ]] && path=$file || path=$(dirname "$file")/$path
		if [[ ! -e $path ]]; then
			fault "$file:$number: link to $link, which does not exist"
		elif [[ -n $anchor ]] && ! anchors "$path" | grep -qxF -e "$anchor"; then
			fault "$file:$number: link to $link, a heading that does not exist"
		fi
	done < <(grep -noHE '\]\([^ )]+\)' "${documents[@]}")
}

# Checks paths of the repository between backticks in documents, and documents named in code.
check_paths() {
	local file number path
	# shellcheck disable=SC2016 # backticks are Markdown
	while IFS=: read -r file number path; do
		path=${path//\`/}
		[[ -e $path ]] || fault "$file:$number: $path does not exist"
	done < <(
		grep -noHE '`(bpf|shared|tools|tests|demo|fuzz|scripts|docs)/[A-Za-z0-9_./-]+`' "${documents[@]}" |
			grep -vE 'NAME|CHANGELOG.md:' || true
		git grep --untracked -noE '\bdocs/[A-Za-z0-9_/-]+\.(md|json|png)' -- ':!*.md' ':!scripts/check-docs.sh' || true
	)
}

# Checks doc comments of Rust, and all comments of C. A comment without a letter or digit is
# empty.
check_comments() {
	local found
	# shellcheck disable=SC2016 # awk's own variables
	found=$(git ls-files -z -co --exclude-standard '*.rs' '*.c' '*.h' |
		xargs -0 awk -v dangling="^($DANGLING)[^A-Za-z]" '
		function judge() {
			if (text !~ /[[:alnum:]]/) print place ": empty comment"
			else if (text " " ~ dangling && text !~ /[?]/) print place ": " text
			open = ""
		}
		FNR == 1 { if (open) judge() }
		{
			line = $0
			sub(/^[ \t]+/, "", line)
		}
		open == "rust" {
			if (substr(line, 1, 3) != marker) judge()
			else if (text !~ /[[:alnum:]]/) text = substr(line, 5)
		}
		open == "c" && text !~ /[[:alnum:]]/ {
			text = line
			sub(/^\*+ ?/, "", text)
		}
		!open && FILENAME ~ /[.]rs$/ && line ~ /^\/\/[\/!]/ && line !~ /^\/\/\/\// {
			open = "rust"
			marker = substr(line, 1, 3)
			text = substr(line, 5)
			place = FILENAME ":" FNR
		}
		!open && FILENAME !~ /[.]rs$/ && line ~ /\/\*/ {
			open = "c"
			text = line
			sub(/^.*\/\*+ ?/, "", text)
			place = FILENAME ":" FNR
		}
		open == "c" && line ~ /\*\// { judge() }
		END { if (open) judge() }')
	[[ -z $found ]] || fault "$found"
}

mapfile -t documents < <(git ls-files -co --exclude-standard '*.md' | while read -r file; do
	[[ ! -e $file ]] || echo "$file"
done)
case ${1:-} in
'')
	check_lengths
	check_links
	check_paths
	;;
--comments) check_comments ;;
*)
	echo "usage: check-docs.sh [--comments]" >&2
	exit 2
	;;
esac
exit "$faults"
