#!/bin/sh
# Measures what docs/benchmarks.md states.
set -eu

sh make/check.sh demo
. ./make/house.sh
fetch_toolchain

# Each figure in a process of its own, so that its peak memory is its own.
say "build"
cargo bench --locked --package dovetail-sim --package dovetail --bench figures --no-run
for figure in speed speed-large gang timed compare policies; do
    cargo bench --quiet --locked --package dovetail-sim --bench figures -- "$figure"
done
cargo bench --quiet --locked --package dovetail --bench figures -- usage
