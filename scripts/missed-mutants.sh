#!/usr/bin/env bash
# missed-mutants.sh MOST [PACKAGE...]: what the packages' own tests missed of the changes
# that mutants.sh makes, held against the tests that run the tools: at most MOST of each
# package, spread over all that it has. Says of each which test noticed.
set -euo pipefail

cd "$(dirname "$0")/.."
most=$1
shift
target=$(realpath "${TARGET:-target}")
here=$target/mutants/end-to-end
tree=$here/tree
tools=(tools/*)
tools=("${tools[@]##*/}")
packages=("$@")
(($# > 0)) || packages=(shared/* tools/*)

# Quick to build anew, and as quick in what they do as those that the tests are made for.
build() {
	(cd "$tree" && CARGO_TARGET_DIR=$here CARGO_PROFILE_RELEASE_LTO=off \
		CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_INCREMENTAL=true \
		CARGO_PROFILE_RELEASE_DEBUG=0 \
		"${CARGO:-cargo}" build --release --locked --quiet "${tools[@]/#/-p}" 2>"$here/said")
}

# The tests that a package is likely to be noticed by: they come first.
first_of() {
	case $1 in
	cpudist) echo spans ;;
	oncputime) echo sampling printed::stacks ;;
	offcputime) echo refused printed:: thread_states thresholds reasons ;;
	offwaketime) echo wakers reasons ;;
	wallclock | systemscope) echo "$1" ;;
	loader) echo targets cgroups namespaces sampling ;;
	cli) echo refused signals wallclock ;;
	*) echo printed:: wakers ;;
	esac
}

# The first test with one of the words in its name that fails on the tools in a folder.
failure() {
	local folder=$1
	shift
	SYSTEMSCOPE_BIN_DIR=$folder scripts/as-root.sh "$target/debug/run-tests" "$here/programs" \
		--until-failure "$@" 2>&1 | awk '/^FAILED/ && !found { print $4; found = 1 }'
}

# Whether one of the tests fails on the changed tools, and passes on those as they are.
noticed_by() {
	local test
	test=$(failure "$here/release" "$@")
	[[ $test && ! $(failure "$here/unchanged" "$test") ]] && echo "$test"
}

# The report on a change: it has the file and what was done there.
difference() {
	local file=$1 place=$2 what=$3 name=${1//\//__}
	grep -lxF -- "+++ $what" "$reports/diff/${name}_line_${place%:*}_col_${place#*:}"*.diff | head -1
}

judge() {
	local file=${1%%:*} rest=${1#*:}
	local place=${rest%%: *} what=${rest#*: }
	cp "$tree/$file" "$here/before"
	patch --silent "$tree/$file" "$(difference "$file" "$place" "$what")"
	local words by
	read -ra words < <(first_of "$package")
	if ! build; then
		by='error: does not build'
	else
		by=$(noticed_by "${words[@]}" || noticed_by timed:: together:: alone::) || by=MISSED
	fi
	echo "$by | $file:$place: $what"
	cp "$here/before" "$tree/$file"
}

mkdir -p "$here/unchanged" "$tree"
# What is no longer here is not to be built there.
(cd "$tree" && find . -type f -print0) | while read -rd '' name; do
	[[ -e $name ]] || rm "$tree/$name"
done
# What is the same keeps its time, and is not built again.
git ls-files -z --cached --others --exclude-standard | while read -rd '' name; do
	cmp --quiet "$name" "$tree/$name" || install -D "$name" "$tree/$name"
done
"${CARGO:-cargo}" test --quiet --workspace --locked --no-run \
	--message-format json-render-diagnostics >"$here/programs"
build
cp "${tools[@]/#/$here/release/}" "$here/unchanged"

for package in "${packages[@]##*/}"; do
	reports=$target/mutants/packages/$package/mutants.out
	[[ -s $reports/missed.txt ]] || continue
	echo "==> $package, of $(wc -l <"$reports/missed.txt") missed" >&2
	while read -r missed; do
		judge "$missed" </dev/null
	done < <(awk -v most="$most" '
		{ line[NR] = $0 }
		END {
			step = NR > most ? NR / most : 1
			for (at = 1; int(at) <= NR; at += step)
				print line[int(at)]
		}' "$reports/missed.txt")
done
