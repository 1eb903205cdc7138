#!/usr/bin/env bash
# Checks the crates that the workspace depends on against deny.toml: licences, duplicates,
# sources, and known faults if their list can be fetched.
set -euo pipefail
cargo=${CARGO:-cargo}

if ! "$cargo" deny --version >/dev/null 2>&1; then
	echo '==> Installing cargo-deny' >&2
	"$cargo" install --quiet --locked cargo-deny
fi

"$cargo" deny --locked --offline check --hide-inclusion-graph licenses bans sources

# A failed download of the list does not fail the check.
if "$cargo" deny --locked fetch db 2>/dev/null; then
	"$cargo" deny --locked --offline check --hide-inclusion-graph advisories
else
	echo 'The list of known faults cannot be had: not checked' >&2
fi
