#!/usr/bin/env bash
# test.sh [WORD...]: builds all tests and runs them as root, or those that have
# one of the words in their name. The tools are in SYSTEMSCOPE_BIN_DIR.
set -euo pipefail
cd "$(dirname "$0")/.."
target=$(realpath "${CARGO_TARGET_DIR:-target}")

programs=$(mktemp)
trap 'rm -f "$programs"' EXIT
"${CARGO:-cargo}" test --quiet --workspace --locked --no-run \
	--message-format json-render-diagnostics >"$programs"
# Examples in documents are compiled by rustdoc.
"${CARGO:-cargo}" test --quiet --workspace --locked --doc
status=0
scripts/as-root.sh "$target/debug/run-tests" "$programs" "$@" || status=$?

# What these versions do is not known, as those that passed are of others.
scripts/pythons/missing.sh | while read -r version suite; do
	echo "Not tested: Python $version, which could not be had from Debian's $suite: see at the beginning"
done
exit "$status"
