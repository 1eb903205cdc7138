#!/usr/bin/env bash
# test.sh quick|all [WORD...]: builds the tests in the profile of the tools, and runs the quick
# tests or all of them as root. With words, only tests with one of them in their name run. The
# tools are in SYSTEMSCOPE_BIN_DIR.
set -euo pipefail
cd "$(dirname "$0")/.."
target=$(realpath "${CARGO_TARGET_DIR:-target}")
choice=$1
shift
# No test fetches debug files, except from its own server.
unset DEBUGINFOD_URLS

programs=$(mktemp)
trap 'rm -f "$programs"' EXIT
build() {
	"${CARGO:-cargo}" test --profile bench --quiet --locked --workspace --exclude library-bench "$@"
}
build --no-run --lib --test '*' --bin systemscope --bin run-tests --bin tables --message-format json-render-diagnostics >"$programs"
# rustdoc compiles the examples in documents.
[[ $choice == quick ]] || build --doc
status=0
scripts/as-root.sh "$target/release/run-tests" "$programs" "--$choice" "$@" || status=$?

# The tests ran without these versions, so the result does not cover them.
{
	scripts/pythons/missing.sh | sed 's/^/Python /'
	scripts/runtimes/missing.sh "$choice"
} | while read -r program version suite; do
	echo "Not tested: $program $version, which could not be had from Debian's $suite: see at the beginning"
done
exit "$status"
