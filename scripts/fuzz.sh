#!/usr/bin/env bash
# Feeds tampered ELF images to the table builder for SECONDS (60 unless given).
# Needs a nightly toolchain; what is found is kept in shared/unwind/fuzz/corpus,
# inputs that break something in shared/unwind/fuzz/artifacts.
set -euo pipefail

seconds=${1:-60}
cd "$(dirname "$0")/../shared/unwind"

if ! cargo fuzz --version >/dev/null 2>&1; then
	cargo install cargo-fuzz --locked
fi

# The seeds are made by the compiler of this machine.
seeds=$PWD/fuzz/corpus/image
mkdir -p "$seeds"
SYSTEMSCOPE_FUZZ_SEEDS=$seeds cargo test --quiet --package unwind --test hostile \
	seeds_for_the_fuzz_target

# No input may take longer than 2 s, or more than 512 MiB.
cargo +nightly fuzz run image -- -max_total_time="$seconds" -timeout=2 -rss_limit_mb=512 \
	-max_len=65536
