#!/usr/bin/env bash
# test.sh quick|all [WORD...]: builds the tests in the profile of the tools and runs them as
# root: the quick ones, or all; with words those that have one of them in their name. The
# tools are in SYSTEMSCOPE_BIN_DIR.
set -euo pipefail
cd "$(dirname "$0")/.."
target=$(realpath "${CARGO_TARGET_DIR:-target}")
choice=$1
shift

programs=$(mktemp)
trap 'rm -f "$programs"' EXIT
build() {
	"${CARGO:-cargo}" test --profile bench --quiet --locked --workspace --exclude library-bench "$@"
}
build --no-run --lib --test '*' --bin systemscope --bin run-tests --bin tables --message-format json-render-diagnostics >"$programs"
# Examples in documents are compiled by rustdoc.
[[ $choice == quick ]] || build --doc
status=0
scripts/as-root.sh "$target/release/run-tests" "$programs" "--$choice" "$@" || status=$?

# What these versions do is not known, as those that passed are of others.
scripts/pythons/missing.sh | while read -r version suite; do
	echo "Not tested: Python $version, which could not be had from Debian's $suite: see at the beginning"
done
exit "$status"
