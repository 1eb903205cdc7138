#!/usr/bin/env bash
# cargo-mutants over the packages of shared/ and tools/, or those named, one after
# the other: what is missed, and how many of each. Its reports are kept in
# TARGET/mutants/packages/PACKAGE.
set -euo pipefail

cd "$(dirname "$0")/.."
out=${TARGET:-target}/mutants/packages
# Half of the time goes into linking otherwise.
export CARGO_PROFILE_TEST_DEBUG=0
packages=(shared/* tools/*)

if ! cargo mutants --version >/dev/null 2>&1; then
	cargo install cargo-mutants --locked
fi

# The tests that judge a package: those that neither need root nor take long.
tests_of() {
	case $1 in
	unwind) echo --lib --test fixtures --test readelf ;;
	symbolize) echo --lib --test names --test debug_files --test hostile ;;
	wallclock) echo --lib --test protocol ;;
	systemscope) echo --bins ;;
	*) echo --lib ;;
	esac
}

wanted() {
	local name=$1
	shift
	[[ $# == 0 || " $* " == *" $name "* ]]
}

for package in "${packages[@]##*/}"; do
	wanted "$package" "$@" || continue
	read -ra tests < <(tests_of "$package")
	# No others are built, either.
	tests=("${tests[@]/#/--cargo-arg=}")
	mkdir -p "$out/$package"
	echo "==> Mutants of $package" >&2
	# What is missed is to be read, not to end this.
	cargo mutants --package "$package" --output "$out/$package" \
		--no-shuffle "${tests[@]}" || [[ $? == [23] ]]
done
