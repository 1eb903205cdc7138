#!/usr/bin/env bash
# cargo-mutants over the packages of shared/ and tools/, or those named, one after
# the other: what is missed, and how many of each. Its reports are kept in
# TARGET/mutants/PACKAGE.
set -euo pipefail

cd "$(dirname "$0")/.."
out=${TARGET:-target}/mutants/packages
packages=(profile export cli unwind symbolize tamper loader
	oncputime offcputime offwaketime cpudist wallclock)

if ! cargo mutants --version >/dev/null 2>&1; then
	cargo install cargo-mutants --locked
fi

wanted() {
	local name=$1
	shift
	[[ $# == 0 || " $* " == *" $name "* ]]
}

for package in "${packages[@]}"; do
	wanted "$package" "$@" || continue
	# Unit tests alone: the others need root, or take long.
	kind=--bins
	[[ -e shared/$package/src/lib.rs ]] && kind=--lib
	mkdir -p "$out/$package"
	echo "==> Mutants of $package" >&2
	# What is missed is to be read, not to end this.
	cargo mutants --package "$package" --output "$out/$package" --timeout 60 \
		--no-shuffle -- "$kind" || [[ $? == [23] ]]
done
