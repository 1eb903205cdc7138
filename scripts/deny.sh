#!/usr/bin/env bash
# Holds the crates that we depend on against deny.toml: licences, duplicates, sources,
# and known faults where the list of these can be had.
set -euo pipefail
cargo=${CARGO:-cargo}

if ! "$cargo" deny --version >/dev/null 2>&1; then
	echo '==> Installing cargo-deny' >&2
	"$cargo" install --quiet --locked cargo-deny
fi

"$cargo" deny --locked --offline check --hide-inclusion-graph licenses bans sources

# The list is fetched; what it says of us is not a matter of whether it could be.
if "$cargo" deny --locked fetch db 2>/dev/null; then
	"$cargo" deny --locked --offline check --hide-inclusion-graph advisories
else
	echo 'The list of known faults cannot be had: not checked' >&2
fi
