#!/bin/sh
# Searches on where `make test` stops: more worlds, more faults, and seeds that nobody has tried,
# until the time is over. What fails is kept by the tests themselves, as a seed or a small world, so
# that `make test` fails, too, until it is mended.
# Histories of the whole scheduler by seed go on behind the last seed of the soak before; where that
# was stands in target/soak-seeds.
#   SOAK_MINUTES   how long [60]
#   SOAK_SEEDS   seeds of such histories per round [100000]
#   DOVETAIL_TEST_CASES   how often as many cases of each property as `make test` tries [4x]
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
export DOVETAIL_FAULT_SEEDS DOVETAIL_SERVER_FAULT_SEEDS DOVETAIL_WORLDS DOVETAIL_KILL_POINTS

# A factor, because a case takes from microseconds to half a minute. PROPTEST_CASES would override
# it with one number for all properties: 2,000 cases of the slowest take most of a day.
DOVETAIL_TEST_CASES=${DOVETAIL_TEST_CASES:-4x}
export DOVETAIL_TEST_CASES
unset PROPTEST_CASES

# What takes long and finds little is tried here alone.
DOVETAIL_SOAK=1
export DOVETAIL_SOAK

prometheus=$(sh make/prometheus.sh)
[ -z "$prometheus" ] || PATH=$PATH:$prometheus
export PATH
DOVETAIL_FOCUS_PYTHON=$(sh make/focus-validator.sh)
export DOVETAIL_FOCUS_PYTHON

# The first 10,000 are those of `make test`.
seeds=target/soak-seeds
mkdir -p target
rounds=0
failed=""
fixed=${PROPTEST_RNG_SEED:-}
while :; do
    seed=${fixed:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}
    rounds=$((rounds + 1))
    first=$(cat "$seeds" 2>/dev/null || echo 10000)
    last=$((first + ${SOAK_SEEDS:-100000}))
    say "round $rounds, PROPTEST_RNG_SEED=$seed, histories $first..$last"
    DOVETAIL_SEEDS=$first..$last PROPTEST_RNG_SEED=$seed \
        cargo test --workspace --locked --tests --no-fail-fast || failed="$failed $seed"
    # After a failure the rest of its range may not have been played: the next soak begins there
    # again.
    [ -n "$failed" ] || echo "$last" >"$seeds"
    [ -z "$fixed" ] || break
    [ "$(date +%s)" -lt "$end" ] || break
done

say "result"
kept=$(git status --short -- '*proptest-regressions*' crates/app/scheduler/tests/worlds \
    crates/lab/rehearsal/tests/histories)
[ -z "$kept" ] || printf 'kept, to be committed:\n%s\n' "$kept"
[ -z "$failed" ] || echo "failed with PROPTEST_RNG_SEED:$failed"
echo "$rounds rounds"
[ -z "$failed" ]
