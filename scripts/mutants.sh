#!/usr/bin/env bash
# mutants.sh [PACKAGE...]: holds the changes that cargo-mutants makes to the packages of
# shared/ and tools/, or to those named, against all tests: scripts/mutants/ has how. Those
# that cannot be built in beside others are held against the packages' own tests, one at a
# time. Their reports are kept in TARGET/mutants/packages/apart/PACKAGE.
set -euo pipefail

cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
out=$(realpath "${TARGET:-target}")/mutants/packages
# Half of the time goes into linking otherwise.
export CARGO_PROFILE_TEST_DEBUG=0

if ! "$cargo" mutants --version >/dev/null 2>&1; then
	"$cargo" install cargo-mutants --locked
fi

# A package's own tests: those that do not take long.
own_tests() {
	case $1 in
	unwind) echo --lib --test fixtures --test readelf ;;
	symbolize) echo --lib --test names --test debug_files --test hostile ;;
	wallclock) echo --lib --test protocol ;;
	systemscope) echo --bins ;;
	*) echo --lib ;;
	esac
}

mkdir -p "$out"
"$cargo" mutants --workspace --list --json >"$out/listed.json"
scripts/as-root.sh python3 -B scripts/mutants "$out/listed.json" "$out" "$@"

for package in shared/* tools/*; do
	mapfile -t apart < <(sed -n "s|^$package/|--re=$package/|p" "$out/apart.txt")
	package=${package##*/}
	((${#apart[@]})) || continue
	read -ra tests < <(own_tests "$package")
	# No others are built, either.
	tests=("${tests[@]/#/--cargo-arg=}")
	mkdir -p "$out/apart/$package"
	echo "==> ${#apart[@]} changes of $package, one at a time" >&2
	# What is missed is to be read, not to end this.
	"$cargo" mutants --package "$package" --output "$out/apart/$package" \
		--no-shuffle "${apart[@]}" "${tests[@]}" || [[ $? == [23] ]]
done
