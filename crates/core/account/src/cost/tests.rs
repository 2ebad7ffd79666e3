use std::collections::BTreeMap;

use dovetail_cases::cases;
use dovetail_model::{FreeCause, Money};
use proptest::prelude::*;

use super::*;
use crate::device_time::{ActiveWork, DeviceState};
use crate::split::{ListPrices, NodeParts, SplitMethod, Unused};

const GIB: i128 = 1 << 30;
const HOUR_MS: i128 = 3_600_000;
const ACTIVE: DeviceState = DeviceState::Active(ActiveWork::NotSeparable);

fn gpu_hours(hours: i128) -> i128 {
    1000 * HOUR_MS * hours
}

fn held(vcpu_hours: i128, gib_hours: i128) -> HeldTime {
    HeldTime {
        cpu_milli_ms: vcpu_hours * 1000 * HOUR_MS,
        memory_byte_ms: gib_hours * GIB * HOUR_MS,
    }
}

/// p3.16xlarge (8 GPUs, 64 vCPUs, 488 GiB) at $10 for an hour. Pod 0 holds four GPUs and computes
/// on three, pod 1 holds two and nobody knows; one GPU is free for want of demand, one is broken.
fn published_node() -> NodeBill {
    let gpus = BTreeMap::from([
        ((Some(0), ACTIVE), gpu_hours(3)),
        ((Some(0), DeviceState::Idle), gpu_hours(1)),
        ((Some(1), DeviceState::Unknown), gpu_hours(2)),
        ((None, DeviceState::Free(Some(FreeCause::NoDemand))), gpu_hours(1)),
        ((None, DeviceState::Unavailable), gpu_hours(1)),
    ]);
    NodeBill {
        price: Some(Money::micros(10_000_000)),
        billed_ms: HOUR_MS as u64,
        offered: NodeParts { cpu_milli: 64_000, memory_bytes: 488 << 30, gpu_milli: 8_000 },
        list_prices: None,
        gpus,
        cpu_memory: BTreeMap::from([(0, held(16, 122)), (1, held(16, 122))]),
    }
}

fn sums(charges: &[Charge]) -> BTreeMap<(Option<u32>, String), i64> {
    let key = |charge: &Charge| (charge.holder, charge.paid.name());
    let sums = add_up(charges.iter().map(|charge| (key(charge), *charge)));
    sums.into_iter().map(|(key, sum)| (key, sum.cost().unwrap().usd_micros)).collect()
}

/// By hand: 10 / (9·8 + 0.9·64 + 0.1·488) = 10 / 178.4; a GPU costs 0.504484, a vCPU 0.050448, a
/// GiB 0.005605. Pod 0: 3 GPUs 1.513453, 1 GPU 0.504484, 16 vCPUs 0.807175 and 122 GiB 0.683857.
#[test]
fn each_charge_has_a_payer_a_cause_and_the_amount_worked_by_hand() {
    let found = charges(SplitMethod::AwsSplit, &published_node(), Unused::Shown).unwrap();
    let found = sums(&found);
    let expected = [
        (Some(0), "active_not_separable", 1_513_453),
        (Some(0), "idle", 504_484),
        (Some(0), "cpu_memory_held", 807_175 + 683_857),
        (Some(1), "unknown", 1_008_969),
        (Some(1), "cpu_memory_held", 807_175 + 683_857),
        (None, "free_no_demand", 504_484),
        (None, "unavailable", 504_484),
        (None, "cpu_memory_unused", 2 * (807_175 + 683_857)),
    ];
    assert_eq!(found.len(), expected.len());
    for (holder, cause, usd_micros) in expected {
        let cost = found[&(holder, cause.to_owned())];
        assert!((cost - usd_micros).abs() <= 3, "{holder:?} {cause}: {cost}, not {usd_micros}");
    }
    assert_eq!(found.values().sum::<i64>(), 10_000_000);
}

/// What two GPUs cost that nobody holds goes four to two; of CPU and memory both pods hold the
/// same.
#[test]
fn what_nobody_has_is_distributed_by_what_each_has_of_the_same() {
    let found = charges(SplitMethod::AwsSplit, &published_node(), Unused::Distributed).unwrap();
    let found = sums(&found);
    let of_unused = |pod: u32| found[&(Some(pod), "unused_distributed".to_owned())];
    let (gpus, rest) = (1_008_969, 2 * (807_175 + 683_857));
    assert!((of_unused(0) - (gpus * 4 / 6 + rest / 2)).abs() <= 4, "{found:?}");
    assert!((of_unused(1) - (gpus * 2 / 6 + rest / 2)).abs() <= 4, "{found:?}");
    let of_nobody: i64 = found.iter().filter(|((pod, _), _)| pod.is_none()).map(|(_, c)| c).sum();
    assert_eq!(of_nobody, 0);
    assert_eq!(found.values().sum::<i64>(), 10_000_000);
    // What is wasted is told as waste, whoever pays: one free GPU and a broken one, beside one that
    // idles.
    for unused in [Unused::Shown, Unused::Distributed] {
        let found = charges(SplitMethod::AllIn, &published_node(), unused).unwrap();
        let teams = add_up(found.into_iter().map(|charge| (charge.holder, charge)));
        let waste: Money = teams.values().map(|sum| sum.waste).sum();
        assert_eq!(waste, Money::micros(3_750_000), "{unused:?}");
    }
    // Nobody holds GPUs: nobody can pay for them.
    let mut empty = published_node();
    empty.gpus = BTreeMap::from([((None, DeviceState::Unavailable), gpu_hours(8))]);
    let found = sums(&charges(SplitMethod::AllIn, &empty, Unused::Distributed).unwrap());
    assert_eq!(found[&(None, "unavailable".to_owned())], 10_000_000);
}

/// Of eight GPUs at $10 all-in pod 0 has four, somebody whom nobody knows has two, and two are
/// free. The free two cost $2.50, which pod 0 pays; the unknown two keep their $2.50. Alone they
/// are shown, and so is what is free beside them.
#[test]
fn time_of_an_unknown_holder_is_neither_distributed_nor_charged_for_what_is_unused() {
    let unknown = (None, DeviceState::Unknown);
    let free = (None, DeviceState::Free(Some(FreeCause::NoDemand)));
    let mut node = published_node();
    node.gpus = BTreeMap::from([
        ((Some(0), ACTIVE), gpu_hours(4)),
        (unknown, gpu_hours(2)),
        (free, gpu_hours(2)),
    ]);
    let cost = |node: &NodeBill, holder: Option<u32>, cause: &str| {
        let found = sums(&charges(SplitMethod::AllIn, node, Unused::Distributed).unwrap());
        found.get(&(holder, cause.to_owned())).copied().unwrap_or(0)
    };
    assert_eq!(cost(&node, None, "unknown"), 2_500_000);
    assert_eq!(cost(&node, Some(0), "unused_distributed"), 2_500_000);
    assert_eq!(cost(&node, None, "free_no_demand"), 0);
    node.gpus.remove(&(Some(0), ACTIVE));
    assert_eq!([cost(&node, None, "unknown"), cost(&node, None, "free_no_demand")], [5_000_000; 2]);
}

#[test]
fn sums_tell_waste_from_what_nobody_knows() {
    let found = charges(SplitMethod::AllIn, &published_node(), Unused::Shown).unwrap();
    let sum = add_up(found.into_iter().map(|charge| ((), charge)))[&()];
    // Idle, free without demand, broken: three of eight at $1.25.
    assert_eq!((sum.waste, sum.idle), (Money::micros(3_750_000), Money::micros(1_250_000)));
    assert_eq!(sum.waste_gpu_milli_ms, gpu_hours(3));
    assert_eq!((sum.blind_gpu_milli_ms, sum.active_gpu_milli_ms), (gpu_hours(2), gpu_hours(3)));
    assert_eq!(sum.allocated_gpu_milli_ms, gpu_hours(6));
    assert_eq!((sum.unused_cpu_memory, sum.has_unpriced()), (Money::ZERO, false));
    let blind = NodeBill { price: None, ..published_node() };
    let found = charges(SplitMethod::Residual, &blind, Unused::Shown).unwrap();
    let sum = add_up(found.into_iter().map(|charge| ((), charge)))[&()];
    assert_eq!((sum.cost(), sum.known(sum.waste)), (None, None));
    assert_eq!((sum.gpu_milli_ms, sum.priced_gpu_milli_ms), (gpu_hours(8), 0));
}

#[test]
fn no_size_that_an_object_can_name_breaks_the_sum() {
    let huge = NodeBill {
        price: Some(Money::micros(3_000_000_000_000_000_000)),
        billed_ms: 3_200_000_000_000,
        offered: NodeParts { cpu_milli: u64::MAX, memory_bytes: u64::MAX, gpu_milli: u64::MAX },
        list_prices: Some(ListPrices {
            usd_micros_per_vcpu_hour: u32::MAX,
            usd_micros_per_gib_hour: u32::MAX,
        }),
        gpus: BTreeMap::from([((Some(0), DeviceState::Idle), i128::MAX >> 8)]),
        cpu_memory: BTreeMap::from([(
            0,
            HeldTime { cpu_milli_ms: i128::MAX >> 8, memory_byte_ms: i128::MAX >> 8 },
        )]),
    };
    for method in SplitMethod::ALL {
        for unused in [Unused::Shown, Unused::Distributed] {
            let found = charges(method, &huge, unused).unwrap();
            let sum: i128 = found.iter().map(|c| i128::from(c.cost.unwrap().usd_micros)).sum();
            assert_eq!(sum, 3_000_000_000_000_000_000, "{method}");
        }
    }
}

/// What each resource carries, once more in floating point.
fn budgets(method: SplitMethod, bill: &NodeBill) -> [f64; 3] {
    let NodeParts { cpu_milli, memory_bytes, gpu_milli } = bill.offered;
    let (vcpu, gib) = (cpu_milli as f64 / 1e3, memory_bytes as f64 / GIB as f64);
    let gpus = gpu_milli as f64 / 1e3;
    let price = bill.price.unwrap().usd_micros as f64;
    let hours = bill.billed_ms as f64 / 3.6e6;
    let cut = |weights: [f64; 3]| weights.map(|w| price * w / weights.iter().sum::<f64>());
    match method {
        SplitMethod::AllIn => [0.0, 0.0, price],
        SplitMethod::AwsSplit => cut([0.9 * vcpu, 0.1 * gib, 9.0 * gpus]),
        SplitMethod::OpenCost => cut([0.031611 * vcpu, 0.004237 * gib, 0.95 * gpus]),
        SplitMethod::Datadog => cut([0.03, 0.02, 0.95]),
        SplitMethod::Residual => {
            let list = bill.list_prices.unwrap();
            let cpu = vcpu * hours * f64::from(list.usd_micros_per_vcpu_hour);
            let memory = gib * hours * f64::from(list.usd_micros_per_gib_hour);
            let rest = f64::max(price - cpu - memory, 0.0);
            if rest > 0.0 { [cpu, memory, rest] } else { cut([cpu, memory, 0.0]) }
        }
    }
}

/// Any states of a node's GPUs over some hours, for up to four pods.
fn some_bill() -> impl Strategy<Value = NodeBill> {
    let state = prop_oneof![
        Just((true, ACTIVE)),
        Just((true, DeviceState::Idle)),
        Just((true, DeviceState::Unknown)),
        Just((true, DeviceState::GangWait)),
        Just((false, DeviceState::Unknown)),
        Just((false, DeviceState::Unavailable)),
        Just((false, DeviceState::Free(None))),
        Just((false, DeviceState::Free(Some(FreeCause::Fragmented)))),
    ];
    let gpus = prop::collection::vec((0_u32..4, state, 1_i128..100_000_000_000), 1..12);
    let of_pods = prop::collection::vec((0_i128..400, 0_i128..4_000), 0..4);
    (gpus, of_pods, 1_i64..100_000_000_000, 1_u64..720).prop_map(
        |(parts, held_hours, price, hours)| {
            let mut gpus = BTreeMap::new();
            for (pod, (is_held, state), time) in parts {
                *gpus.entry((is_held.then_some(pod), state)).or_default() += time;
            }
            let held_hours = held_hours.into_iter().zip(0..);
            NodeBill {
                price: Some(Money::micros(price)),
                billed_ms: hours * HOUR_MS as u64,
                offered: NodeParts { cpu_milli: 96_000, memory_bytes: 1 << 40, gpu_milli: 8_000 },
                list_prices: Some(ListPrices {
                    usd_micros_per_vcpu_hour: 40_000,
                    usd_micros_per_gib_hour: 5_000,
                }),
                gpus,
                cpu_memory: held_hours.map(|((cpu, gib), pod)| (pod, held(cpu, gib))).collect(),
            }
        },
    )
}

proptest! {
    #![proptest_config(cases(256))]

    /// The judge knows budgets as fractions and rows as shares of them; it rounds nothing.
    #[test]
    fn charges_are_the_price_however_they_are_grouped(
        bill in some_bill(),
        is_distributed in any::<bool>(),
        teams in prop::collection::vec(0_u8..3, 4),
    ) {
        let unused = if is_distributed { Unused::Distributed } else { Unused::Shown };
        for method in SplitMethod::ALL {
            let found = charges(method, &bill, unused).unwrap();
            let of = |sums: Vec<CostSum>| sums.iter().map(|s| s.cost().unwrap()).sum::<Money>();
            let team = |charge: &Charge| charge.holder.map(|pod| teams[pod as usize]);
            let by_team = add_up(found.iter().map(|charge| (team(charge), *charge)));
            let by_cause = add_up(found.iter().map(|charge| (charge.paid, *charge)));
            let by_both = add_up(found.iter().map(|c| ((team(c), c.paid), *c)));
            for sums in [
                by_team.values().copied().collect(),
                by_cause.values().copied().collect(),
                by_both.values().copied().collect::<Vec<_>>(),
            ] {
                prop_assert_eq!(Some(of(sums)), bill.price);
            }
            let time: i128 = found.iter().map(|charge| charge.gpu_milli_ms).sum();
            prop_assert_eq!(time, bill.gpus.values().sum::<i128>());
            let [cpu, memory, gpu] = budgets(method, &bill);
            let near = |cost: Money, exact: f64| (cost.usd_micros as f64 - exact).abs() < 4.0 + exact * 1e-9;
            for charge in &found {
                let cost = charge.cost.unwrap();
                let exact = match (charge.paid, charge.holder) {
                    // What somebody unknown had costs the same, whoever pays for what is unused.
                    (Paid::Gpus(state), None)
                        if is_distributed && state != DeviceState::Unknown =>
                    {
                        continue;
                    }
                    (Paid::Gpus(_), _) => gpu * charge.gpu_milli_ms as f64 / time as f64,
                    (Paid::HeldCpuMemory, Some(pod)) => {
                        let share = |of: fn(&HeldTime) -> i128, offered: u64| {
                            let all: i128 = bill.cpu_memory.values().map(of).sum();
                            let offered = offered as f64 * bill.billed_ms as f64;
                            of(&bill.cpu_memory[&pod]) as f64 / f64::max(all as f64, offered)
                        };
                        cpu * share(|held| held.cpu_milli_ms, bill.offered.cpu_milli)
                            + memory * share(|held| held.memory_byte_ms, bill.offered.memory_bytes)
                    }
                    _ => continue,
                };
                prop_assert!(near(cost, exact), "{method} {charge:?}: {exact}");
            }
        }
    }
}
