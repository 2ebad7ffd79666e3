#!/bin/sh
# Measures what docs/benchmarks.md states.
set -eu

sh make/check.sh demo
. ./make/house.sh
fetch_toolchain

say "build"
cargo build --release --locked --package dovetail

say "bench"
cargo xtask bench
