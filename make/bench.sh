#!/bin/sh
# Measures what docs/benchmarks.md states.
set -eu

sh make/check.sh demo
. ./make/house.sh
fetch_toolchain

# Each figure in a process of its own, so that its peak memory is its own.
say "build"
cargo bench --locked --package dovetail-sim --package dovetail-signals --package dovetail-store --bench figures --no-run
for figure in speed speed-large gang infeasible cycle timed compare policies; do
    cargo bench --quiet --locked --package dovetail-sim --bench figures -- "$figure"
done
# The quick subset of the arena; docs/arena.md says how to run all of it.
cargo build --quiet --locked --release --package dovetail
./target/release/dovetail sim arena --quick
say "requests for MIG slices that are rejected, in percent"
sh make/slices.sh ./target/release/dovetail 10
# A tenth of the histories of the guard that docs/reference/benchmarks/sharing.md states.
say "histories of latency that are rolled back"
cargo run --quiet --locked --profile test --package dovetail-guard --example rates 100

prometheus=$(sh make/prometheus.sh)
[ -z "$prometheus" ] || PATH=$PATH:$prometheus
export PATH
for figure in usage audit first partition; do
    cargo bench --quiet --locked --package dovetail --bench figures -- "$figure"
done
for figure in phases stock util; do
    cargo bench --quiet --locked --package dovetail-signals --bench figures -- "$figure"
done
for figure in ingest query; do
    cargo bench --quiet --locked --package dovetail-store --bench figures -- "$figure"
done

# The live scheduler on a real control plane; peers and the limit take turns on the same server.
cargo xtask cluster build
cargo bench --locked --package dovetail-scheduler --bench figures --no-run
for figure in bind bind-large claims gangs latency restart fill busy-gang reclaim-gang reclaim; do
    cargo bench --quiet --locked --package dovetail-scheduler --bench figures -- "$figure"
done
