#!/bin/sh
# Searches on where `make test` stops: more worlds, more faults, and seeds that nobody has tried, until
# the time is over. What fails is kept by the tests themselves, as a seed or a small world, so that
# `make test` fails, too, until it is mended.
#   SOAK_MINUTES   how long [60]
#   PROPTEST_RNG_SEED   one seed instead of fresh ones: a single round
set -eu

sh make/check.sh test
. ./make/house.sh
fetch_toolchain

end=$(($(date +%s) + 60 * ${SOAK_MINUTES:-60}))
DOVETAIL_FAULT_SEEDS=${DOVETAIL_FAULT_SEEDS:-50}
DOVETAIL_SERVER_FAULT_SEEDS=${DOVETAIL_SERVER_FAULT_SEEDS:-4}
DOVETAIL_WORLDS=${DOVETAIL_WORLDS:-2000}
DOVETAIL_KILL_POINTS=${DOVETAIL_KILL_POINTS:-100}
PROPTEST_CASES=${PROPTEST_CASES:-2000}
export DOVETAIL_FAULT_SEEDS DOVETAIL_SERVER_FAULT_SEEDS DOVETAIL_WORLDS DOVETAIL_KILL_POINTS PROPTEST_CASES

prometheus=$(sh make/prometheus.sh)
[ -z "$prometheus" ] || PATH=$PATH:$prometheus
export PATH

rounds=0
failed=""
fixed=${PROPTEST_RNG_SEED:-}
while :; do
    seed=${fixed:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}
    rounds=$((rounds + 1))
    say "round $rounds, PROPTEST_RNG_SEED=$seed"
    PROPTEST_RNG_SEED=$seed cargo test --workspace --locked --no-fail-fast || failed="$failed $seed"
    [ -z "$fixed" ] || break
    [ "$(date +%s)" -lt "$end" ] || break
done

say "result"
kept=$(git status --short -- '*proptest-regressions*' crates/app/scheduler/tests/worlds)
[ -z "$kept" ] || printf 'kept, to be committed:\n%s\n' "$kept"
[ -z "$failed" ] || echo "failed with PROPTEST_RNG_SEED:$failed"
echo "$rounds rounds"
[ -z "$failed" ]
