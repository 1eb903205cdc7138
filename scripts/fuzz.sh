#!/usr/bin/env bash
# Feeds tampered input to each reader of data that profiled programs choose, for SECONDS in all
# (60 by default). Needs a nightly toolchain. Keeps interesting inputs in fuzz/corpus, and
# inputs that fail in fuzz/artifacts.
set -euo pipefail

seconds=${1:-60}
cd "$(dirname "$0")/.."
targets=(tables elf memory_image sources perf_map folded capture)

if ! cargo fuzz --version >/dev/null 2>&1; then
	cargo install cargo-fuzz --locked
fi

# Tests make the seeds, some of them with this machine's compiler.
for target in "${targets[@]}"; do
	mkdir -p "fuzz/corpus/$target"
done
SYSTEMSCOPE_FUZZ_SEEDS=$PWD/fuzz/corpus cargo test --quiet --locked \
	--package systemscope-unwind --test hostile --package systemscope-symbolize --package systemscope-capture --test tampered \
	seeds_for_the_fuzz_target

# No input may take longer than 2 s, or more than 512 MiB.
for target in "${targets[@]}"; do
	echo "==> Fuzzing $target" >&2
	cargo +nightly fuzz run "$target" -- -max_total_time=$((seconds / ${#targets[@]})) \
		-timeout=2 -rss_limit_mb=512 -max_len=65536
done
