#!/usr/bin/env bash
# mutants.sh [WORD...]: breaks the rules of the BPF programs in a copy of the tree, one patch of
# tests/mutants at a time, and prints which test fails. WORDs choose patches by path or rule.
# mutants.sh --check: checks that each patch applies and that each of its tests exists.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(realpath -m "${CARGO_TARGET_DIR:-target}")/mutants
log=$work/log cargo=${CARGO:-cargo} patches=(tests/mutants/*/*.patch)

# field NAME PATCH...: prints the values of a header field.
field() { sed -sn "s/^$1: //p; /^--- /,\$d" "${@:2}"; }

# Prints the test functions by the names of tests: PROGRAM::MODULE::NAME in tests/tests, and
# PACKAGE/PROGRAM::NAME elsewhere. Test programs of other packages contain the BPF programs.
functions() {
	git grep --untracked -oE 'fn \w+' -- '*/tests/*.rs' | sed -E '
		s,(/main|/mod)?\.rs:fn ,::,
		\,^tests/tests/, { s,,,; s,/,::,g }
		s,.*/([^/]+)/tests/,\1/,'
}

check() {
	local status=0 patch
	for patch in "${patches[@]}"; do
		git apply -C1 --check "$patch" || { echo "$patch does not apply" && status=1; }
	done
	awk 'NR == FNR { known[$0]; next }
		!($2 in known) { sub(/:Caught-by:/, ": there is no test"); print; missing = 1 }
		END { exit missing }' <(functions) <(grep -H '^Caught-by: ' "${patches[@]}") || status=1
	return "$status"
}

# in_copy COMMAND...: runs a command in the copy, where git finds no repository. Its settings
# favour short builds over optimization.
in_copy() {
	env -C "$work/tree" GIT_CEILING_DIRECTORIES="$work" CARGO_TARGET_DIR="$work/build" \
		CARGO_INCREMENTAL=1 CARGO_PROFILE_RELEASE_OPT_LEVEL=1 "$@"
}

# build_tools FOLDER: builds the tools of the copy. Also fails if the kernel rejects a program,
# because any test would fail then. A tool exits with status 1 in this case. A panic gives a status
# above 2, and does not count.
build_tools() {
	local tool run
	in_copy "$cargo" build --quiet --release --locked -p systemscope || return
	mkdir -p "$1" && install "$work/build/release/systemscope" "$1/" || return
	for tool in tools/*; do
		[[ -e $1/${tool##*/} ]] || ln -s systemscope "$1/${tool##*/}" || return
	done
	for tool in {oncpu,offcpu,offwake}'time --duration 0.1' cpudist{,' -L',' -O'}' 0.1 1'; do
		read -ra run <<<"$tool"
		scripts/as-root.sh "$1/${run[0]}" "${run[@]:1}" </dev/null || (($? > 2)) || return
	done
}

# list_programs COMMAND...: builds test programs, and prints the name, folder and path of each.
list_programs() {
	"$@" --quiet --profile bench --locked --no-run --message-format json-render-diagnostics | jq -r '
		select(.executable and .profile.test) | (.manifest_path | split("/")) as $path |
		[(if $path[-2] == "tests" then "" else $path[-2] + "/" end) + .target.name,
			($path[:-1] | join("/")), .executable] | @tsv'
}

# passes LIST FOLDER TEST: checks whether a test of the listed programs passes with the tools of
# a folder.
passes() {
	local folder program
	IFS=$'\t' read -r _ folder program < <(grep "^${3%%::*}"$'\t' "$1") || return
	SYSTEMSCOPE_BIN_DIR=$2 scripts/as-root.sh env -C "$folder" timeout 600 "$program" \
		--exact --include-ignored --nocapture --test-threads=1 "${3#*::}" </dev/null |&
		tee -a "$log" | grep 'test result: ok. 1 passed' >/dev/null
}

# judge PATCH: prints the test that fails because of the patch, or the reason why none fails.
judge() {
	local test name list
	build_tools "$work/changed" >>"$log" 2>&1 || { echo 'does not build or load' && return 1; }
	for test in $(field Caught-by "$1"); do
		name=${test%%::*} list=$work/unchanged.tsv
		if [[ $name == */* ]]; then
			list=$work/changed.tsv
			list_programs in_copy "$cargo" test -p "*${name%/*}" --test "${name#*/}" \
				>"$list" 2>>"$log" || { echo "$name does not build" && return 1; }
		fi
		passes "$list" "$work/changed" "$test" && continue
		passes "$work/unchanged.tsv" "$work/unchanged" "$test" && echo "by $test" && return
		echo "$test fails without the patch, too" >>"$log"
	done
	echo 'no test fails' && return 1
}

check >&2
[[ ${1:-} != --check ]] || exit 0
chosen=()
for patch in "${patches[@]}"; do
	for word in "${@:-}"; do
		[[ "$patch $(field Rule "$patch")" != *"$word"* ]] || { chosen+=("$patch") && break; }
	done
done
((${#chosen[@]})) || { echo "mutants.sh: no patch has one of the words: $*" >&2 && exit 2; }

echo "==> Building the tools and tests; what they print is in $log" >&2
mkdir -p "$work"
scripts/as-root.sh rm -rf "$work/tree" "$log"
mkdir "$work/tree"
# Makes each file new to cargo, because the last run may have ended with a patch in the copy.
git ls-files -z --cached --others --exclude-standard |
	tar -c --null -T - --ignore-failed-read | tar -xm -C "$work/tree"
build_tools "$work/unchanged" >>"$log" 2>&1
mapfile -t packages < <(field Caught-by "${chosen[@]}" | sed -n 's,/.*,,; T; s,^,-p*,p' | sort -u)
list_programs "$cargo" test --test '*' -p systemscope-tests "${packages[@]}" >"$work/unchanged.tsv"

missed=0
for patch in "${chosen[@]}"; do
	echo "==> $patch" >>"$log"
	in_copy git apply -C1 "$patch"
	if outcome=$(judge "$patch"); then
		echo "caught  $patch $outcome"
	else
		echo "MISSED  $patch: $outcome" && ((++missed))
	fi
	in_copy git apply -C1 -R "$patch"
done
echo "$((${#chosen[@]} - missed)) caught, $missed missed"
((missed == 0))
