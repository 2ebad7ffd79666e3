#!/bin/sh
# Everything that is tested. Every step runs even where one before it failed, so that one run shows
# all that is wrong; the last line counts steps and tests.
set -eu

sh make/check.sh test
sh make/packages.sh
. ./make/house.sh
fetch_toolchain

# Property tests try the same cases in every run, so that what fails here fails again at the desk;
# another number explores others.
PROPTEST_RNG_SEED=${PROPTEST_RNG_SEED:-2026}
export PROPTEST_RNG_SEED

# A first build has nothing to reuse: incremental compilation would only cost time. Where somebody
# has compiled incrementally before, it goes on, because a change would compile everything again.
if [ -z "$(ls -A "${CARGO_TARGET_DIR:-target}/debug/incremental" 2>/dev/null)" ]; then
    CARGO_INCREMENTAL=${CARGO_INCREMENTAL:-0}
    export CARGO_INCREMENTAL
fi

mkdir -p target
log=target/make-test.log
passed=0
failed=0
wrong=""

times=target/make-test.times
: >"$times"

# took NAME SINCE: notes how long a step took.
took() {
    echo "$(($(date +%s) - $2)) $1" >>"$times"
}

# step NAME COMMAND...
step() {
    name=$1
    shift
    say "$name: $*"
    since=$(date +%s)
    ok=0
    "$@" || ok=$?
    took "$name" "$since"
    if [ "$ok" = 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        wrong="$wrong $name"
    fi
}

# Runs the tests with their output on the screen and in the log; a pipe would hide the status.
tests() {
    { "$@" 2>&1 && echo 0 >"$log.status" || echo 1 >"$log.status"; } | tee "$log"
    counts=$(awk '/^test result: / { passed += $4; failed += $6 } END { print passed + 0, failed + 0 }' "$log")
    passed=$((passed + ${counts% *}))
    failed=$((failed + ${counts#* }))
    # Each test program is a step, too; the rest of the time goes to building them. Of which crate
    # it is, the list of its sources says.
    awk '$1 == "Running" { program = $NF; gsub(/[()]/, "", program) }
        /^test result: / { sub(/s$/, "", $NF); printf "%d %s\n", $NF, program }' "$log" |
        while read -r seconds program; do
            source=$(sed -n '1s/^[^ ]* \([^ ]*\).*/\1/p' "$program.d" 2>/dev/null || echo "$program")
            echo "$seconds tests of ${source#crates/}"
        done >>"$times"
    if [ "$(cat "$log.status")" != 0 ]; then
        wrong="$wrong tests"
        # A test program that did not build or was killed counts no failed test.
        [ "${counts#* }" != 0 ] || failed=$((failed + 1))
    fi
}

# services FOLDER: what tests run against, from outside; each file has what a script prints.
services() {
    sh make/prometheus.sh >"$1/prometheus"
    sh make/postgresql.sh >"$1/postgresql"
    sh make/focus-validator.sh >"$1/focus-validator"
}

# The network is waited for while the compiler works.
fetched=target/make-test.services
mkdir -p "$fetched"
services "$fetched" &
services=$!

step format cargo fmt --all --check
step clippy cargo clippy --profile test --workspace --all-targets --locked -- -D warnings
# Tests and programs in one build: cargo chooses the features of dependencies by what it builds, and
# `cargo xtask` by itself would compile forty crates again, with fewer.
build="cargo build --workspace --locked --profile test --tests --bins"
say "building the tests: $build"
since=$(date +%s)
$build --keep-going || true
took "building the tests" "$since"
xtask=${CARGO_TARGET_DIR:-target}/debug/xtask
step tidy "$xtask" tidy
# The same licenses as tidy, and where packages come from; advisories need a database from outside.
without_deny=""
if command -v cargo-deny >/dev/null 2>&1; then
    step deny cargo deny --locked check licenses bans sources
else
    without_deny="skipped: cargo deny: not on PATH (cargo install --locked cargo-deny)"
fi
# Minutes the first time; later the programs are taken from the cache.
step cluster "$xtask" cluster build
say "Prometheus, PostgreSQL, validator of FOCUS datasets"
wait "$services"
prometheus=$(cat "$fetched/prometheus")
[ -z "$prometheus" ] || PATH=$PATH:$prometheus
export PATH
postgresql=$(cat "$fetched/postgresql")
if [ -n "$postgresql" ]; then
    PATH=$PATH:$postgresql
    # Libraries that came with it, where it was unpacked; empty parts would mean this folder.
    libraries=$(ls -d "$PWD"/target/debian/postgresql/usr/lib/*-linux-gnu 2>/dev/null || true)
    [ -z "$libraries" ] || LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    export PATH
    [ -z "$libraries" ] || export LD_LIBRARY_PATH
fi
DOVETAIL_FOCUS_PYTHON=$(cat "$fetched/focus-validator")
export DOVETAIL_FOCUS_PYTHON
# Control planes of tests live for seconds and hold little: they may use more memory before they
# collect garbage than Go lets them by default.
GOGC=${GOGC:-400}
export GOGC
# No crate has examples in its documentation (cargo xtask tidy examples): rustdoc is not started.
say "tests: $xtask test"
tests "$xtask" test

say "the ten slowest steps, in seconds"
sort -rn "$times" | head -n 10
skipped=$(grep -o 'skipped: .*' "$log" | sort -u || true)
say "result"
[ -z "$skipped" ] || echo "$skipped"
[ -z "$without_deny" ] || echo "$without_deny"
[ -n "${DOVETAIL_TRACES:-}" ] ||
    echo "DOVETAIL_TRACES is not set: tests on real traces did not run"
[ -z "$wrong" ] || echo "failed:$wrong"
echo "$passed passed, $failed failed"
[ -z "$wrong" ]
