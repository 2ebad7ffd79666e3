#!/bin/sh
# Prints the percentage of requests for MIG slices that are rejected, by load, mix and policy: the
# table in docs/reference/benchmarks/sharing.md.
# Usage: sh make/slices.sh PROGRAM SEEDS
#   PROGRAM   the program dovetail
#   SEEDS   how many seeds the means are over, from 0 on
set -eu

program=$1
seeds=$2

# rejected LOAD MIX POLICY [FLAG...]: the mean over the seeds, in percent.
rejected() {
    load=$1
    mix=$2
    policy=$3
    shift 3
    seed=0
    while [ "$seed" -lt "$seeds" ]; do
        "$program" sim run --protocol slices --nodes 5x8 --gpu A100-40GB --mix "$mix" \
            --load "$load" --policy "$policy" --seed "$seed" --output json "$@" || exit 1
        seed=$((seed + 1))
    done | sed -n 's/.*"rejected_share":\([0-9.e-]*\).*/\1/p' | awk -v seeds="$seeds" '
        { sum += $1; runs++ }
        END { if (runs != seeds) exit 1; printf "%8.2f", 100 * sum / seeds }
    '
}

printf 'load  mix        kube-default, first-fit, best-fit, least-room-lost, dovetail, with moves\n'
for load in 0.7 0.9; do
    for mix in big bimodal inference small uniform; do
        printf '%s   %-9s' "$load" "$mix"
        for policy in kube-default first-fit best-fit least-room-lost dovetail; do
            rejected "$load" "$mix" "$policy"
        done
        rejected "$load" "$mix" dovetail --moves 1
        printf '\n'
    done
done
