#!/bin/sh
# Builds the simulator and runs the demonstration, without what talks to a cluster. Writes only
# below the clone: downloads, toolchain and build go to target/, unless CARGO_HOME or RUSTUP_HOME
# say otherwise.
set -eu

sh make/check.sh demo
. ./make/house.sh
fetch_toolchain
keep_cargo_in_clone

say "build (the first one takes some minutes)"
cargo build --profile demo --locked --package dovetail-demo --example demo

say "demo"
cargo run --quiet --profile demo --locked --package dovetail-demo --example demo
