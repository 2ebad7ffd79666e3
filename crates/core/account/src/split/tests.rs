use dovetail_cases::cases;
use dovetail_model::Money;
use proptest::prelude::*;

use super::*;

const GIB: u64 = 1 << 30;

fn parts(vcpu: u64, gib: u64, gpus: u64) -> NodeParts {
    NodeParts { cpu_milli: vcpu * 1000, memory_bytes: gib * GIB, gpu_milli: gpus * 1000 }
}

/// The published node: p3.16xlarge, 8 GPUs, 64 vCPUs, 488 GiB, at $10 for one hour.
fn published_node() -> NodeCost {
    NodeCost {
        price: Money::micros(10_000_000),
        period_ms: 3_600_000,
        offered: parts(64, 488, 8),
        list_prices: Some(ListPrices {
            usd_micros_per_vcpu_hour: 40_000,
            usd_micros_per_gib_hour: 5_000,
        }),
    }
}

/// What one pod had of a node, on average over the period.
#[derive(Clone, Copy, Debug)]
struct PodParts {
    reserved: NodeParts,
    used: Option<NodeParts>,
}

fn pod(reserved: NodeParts, used: NodeParts) -> PodParts {
    PodParts { reserved, used: Some(used) }
}

fn amounts(parts: NodeParts) -> [u64; 3] {
    [parts.cpu_milli, parts.memory_bytes, parts.gpu_milli]
}

/// What one pod pays, and its share of what nobody has.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct PodCost {
    own: Money,
    of_unused: Money,
}

impl PodCost {
    fn total(self) -> Money {
        self.own + self.of_unused
    }
}

/// Who pays what of a node; `unused` is what no pod carries of its CPU, memory and GPUs.
#[derive(Debug, PartialEq)]
struct NodeSplit {
    pods: Vec<PodCost>,
    unused: [Money; 3],
}

/// Budgets, each shared out by the larger of reserved and used.
fn split_node(
    method: SplitMethod,
    node: &NodeCost,
    pods: &[PodParts],
    unused: Unused,
) -> Result<NodeSplit, SplitError> {
    let (budgets, offered) = (budgets(method, node)?.as_list(), amounts(node.offered));
    let mut split =
        NodeSplit { pods: vec![PodCost::default(); pods.len()], unused: [Money::ZERO; 3] };
    for (resource, left) in split.unused.iter_mut().enumerate() {
        let has = |parts: NodeParts| i128::from(amounts(parts)[resource]);
        let charged = |pod: &PodParts| has(pod.reserved).max(pod.used.map_or(0, has));
        let weights: Vec<i128> = pods.iter().map(charged).collect();
        let (parts, unpaid) = share_out(budgets[resource], &weights, i128::from(offered[resource]));
        *left = unpaid;
        split.pods.iter_mut().zip(parts).for_each(|(cost, part)| cost.own += part);
        if unused == Unused::Distributed && weights.iter().any(|weight| *weight > 0) {
            let parts = split_money(std::mem::take(left), &weights);
            split.pods.iter_mut().zip(parts).for_each(|(cost, part)| cost.of_unused += part);
        }
    }
    Ok(split)
}

fn sum(parts: [Money; 3]) -> Money {
    parts.into_iter().sum()
}

#[test]
fn unit_costs_of_the_published_node_are_those_published() {
    let split = split_node(SplitMethod::AwsSplit, &published_node(), &[], Unused::Shown).unwrap();
    let unit = |money: Money, units: i64| money.usd_micros as f64 / 1e6 / units as f64;
    let round = |usd: f64| (usd * 1e4).floor() / 1e4;
    // $0.0505, $0.5045 and $0.0056, in digits that the published page cuts or rounds.
    let [cpu, memory, gpu] = split.unused;
    assert!((unit(cpu, 64) - 0.0505).abs() < 1e-4);
    assert!((unit(gpu, 8) - 0.5045).abs() < 1e-4);
    assert_eq!(round(unit(memory, 488)), 0.0056);
    assert_eq!(sum(split.unused), Money::micros(10_000_000));
}

/// By hand, in dollars. Units: 10 / (9·8 + 0.9·64 + 0.1·488) = 10 / 178.4, so that the GPUs cost
/// 720 / 178.4 = 4.035874, the vCPUs 576 / 178.4 = 3.228700, the memory 488 / 178.4 = 2.735426.
/// The pods have (the larger of reserved and used):
///
/// | | GPU of 8 | vCPU of 64 | GiB of 488 |
/// |---|---|---|---|
/// | a | 4 | 16 (uses 8) | 122 |
/// | b | 2 | 24 (reserved 16) | 122 |
/// | c | 1 | 8 | 61 |
/// | d | 0 | 8 | 122 (reserved 61) |
/// | nobody | 1 | 8 | 61 |
///
/// a: 4/8·4.035874 + 16/64·3.228700 + 122/488·2.735426 = 2.017937 + 0.807175 + 0.683857 = 3.508969,
/// and of what nobody has 4/7·0.504484 + 16/56·0.403587 + 122/427·0.341928 = 0.288277 + 0.115311 +
/// 0.097694.
#[test]
fn four_pods_under_aws_split_cost_what_was_worked_out_by_hand() {
    let pods = [
        pod(parts(16, 122, 4), parts(8, 100, 4)),
        pod(parts(16, 122, 2), parts(24, 122, 1)),
        PodParts { reserved: parts(8, 61, 1), used: None },
        pod(parts(8, 61, 0), parts(8, 122, 0)),
    ];
    let own = [3_508_969, 2_903_587, 1_250_000, 1_087_444];
    let with_unused = [4_010_250, 3_318_386, 1_428_571, 1_242_793];
    let node = published_node();
    let shown = split_node(SplitMethod::AwsSplit, &node, &pods, Unused::Shown).unwrap();
    let distributed = split_node(SplitMethod::AwsSplit, &node, &pods, Unused::Distributed).unwrap();
    // Each sum has up to six parts, each less than a micro-dollar off.
    let near = |money: Money, usd_micros: i64| (money.usd_micros - usd_micros).abs() <= 6;
    for index in 0..4 {
        let (own_cost, all) = (shown.pods[index].total(), distributed.pods[index].total());
        assert!(near(own_cost, own[index]), "{index}: {own_cost:?}");
        assert!(near(all, with_unused[index]), "{index}: {all:?}");
    }
    assert!(near(sum(shown.unused), 504_484 + 403_587 + 341_928));
    assert_eq!(distributed.unused, [Money::ZERO; 3]);
    let all: Money = distributed.pods.iter().map(|cost| cost.total()).sum();
    assert_eq!(all, node.price);
}

#[test]
fn the_same_gpu_hour_differs_by_method_as_published() {
    // p5.48xlarge: 8 GPUs, 192 vCPUs, 2048 GiB at $55.04 an hour.
    let node = NodeCost {
        price: Money::micros(55_040_000),
        offered: parts(192, 2048, 8),
        ..published_node()
    };
    let per_gpu_hour = |method| {
        let split = split_node(method, &node, &[], Unused::Shown).unwrap();
        (split.unused[2].usd_micros as f64 / 8e4).round() / 100.0
    };
    let figures = SplitMethod::ALL.map(per_gpu_hour);
    // residual: 55.04 − 192 · 0.04 − 2048 · 0.005 = 37.12.
    assert_eq!(figures, [6.88, 4.64, 1.1, 2.34, 6.54]);
    let money = SplitMethod::ALL.map(|method| {
        let split = split_node(method, &node, &[], Unused::Shown).unwrap();
        (method, split.unused[2])
    });
    let headline = headline(SplitMethod::Residual, &money).unwrap();
    assert_eq!(
        (headline.lowest.0, headline.highest.0),
        (SplitMethod::AwsSplit, SplitMethod::AllIn)
    );
    assert_eq!(headline.cost, Money::micros(37_120_000));
    assert_eq!(super::headline(SplitMethod::Residual, &money[2..]), None);
}

#[test]
fn what_cannot_be_split_is_an_error_and_a_cheap_node_has_no_rest() {
    let node = published_node();
    let split = |node: &NodeCost| split_node(SplitMethod::Residual, node, &[], Unused::Shown);
    let blind = NodeCost { list_prices: None, ..node };
    assert_eq!(split(&blind), Err(SplitError::UnknownListPrices));
    assert_eq!(SplitMethod::default_with(blind.list_prices.as_ref()), SplitMethod::AllIn);
    assert_eq!(
        split(&NodeCost { offered: NodeParts::default(), ..node }),
        Err(SplitError::NothingOffered)
    );
    let credit = NodeCost { price: Money::micros(-1), ..node };
    assert!(matches!(split(&credit), Err(SplitError::NegativePrice { .. })));
    // List prices come to $5.00; the node costs $2.50: CPU and memory carry it in their proportion.
    let cheap = split(&NodeCost { price: Money::micros(2_500_000), ..node }).unwrap().unused;
    assert_eq!(cheap.map(|money| money.usd_micros), [1_280_000, 1_220_000, 0]);
    for method in SplitMethod::ALL {
        assert_eq!(method.name().parse(), Ok(method));
    }
    assert!("opencast".parse::<SplitMethod>().unwrap_err().contains("use all-in, residual"));
}

/// The published formulas once more in floating point: budgets by unit prices, then for each
/// resource split_cost = alloc / max(Σ alloc, available) · available · price and unused_cost =
/// alloc / Σ alloc · unused · price.
fn oracle(method: SplitMethod, node: &NodeCost, pods: &[PodParts]) -> Vec<(f64, f64)> {
    let list = |p: NodeParts| {
        [p.cpu_milli as f64 / 1e3, p.memory_bytes as f64 / GIB as f64, p.gpu_milli as f64 / 1e3]
    };
    let (available, usd) = (list(node.offered), node.price.usd_micros as f64);
    let hours = node.period_ms as f64 / 3.6e6;
    let weighted = |w: [f64; 3]| {
        let all: f64 = (0..3).map(|r| w[r] * available[r]).sum();
        w.map(|w| usd * w / all)
    };
    let unit = match method {
        SplitMethod::AllIn => [0.0, 0.0, usd / available[2]],
        SplitMethod::AwsSplit => weighted([0.9, 0.1, 9.0]),
        SplitMethod::OpenCost => weighted([0.031611, 0.004237, 0.95]),
        SplitMethod::Datadog => {
            [0.03 * usd / available[0], 0.02 * usd / available[1], 0.95 * usd / available[2]]
        }
        SplitMethod::Residual => {
            let prices = node.list_prices.unwrap();
            let cpu = f64::from(prices.usd_micros_per_vcpu_hour) * hours;
            let memory = f64::from(prices.usd_micros_per_gib_hour) * hours;
            let listed = cpu * available[0] + memory * available[1];
            match usd > listed {
                true => [cpu, memory, (usd - listed) / available[2]],
                false => [cpu * usd / listed, memory * usd / listed, 0.0],
            }
        }
    };
    let alloc = |pod: &PodParts| {
        let (reserved, used) = (list(pod.reserved), list(pod.used.unwrap_or_default()));
        [0, 1, 2].map(|r| f64::max(reserved[r], used[r]))
    };
    let sums = [0, 1, 2].map(|r| pods.iter().map(|pod| alloc(pod)[r]).sum::<f64>());
    let cost = |pod: &PodParts| {
        let mut cost = (0.0, 0.0);
        for r in 0..3 {
            let has = alloc(pod)[r];
            cost.0 += has / sums[r].max(available[r]) * available[r] * unit[r];
            if has > 0.0 {
                cost.1 += has / sums[r] * (available[r] - sums[r]).max(0.0) * unit[r];
            }
        }
        cost
    };
    pods.iter().map(cost).collect()
}

fn some_parts(most: NodeParts) -> impl Strategy<Value = NodeParts> {
    (0..=most.cpu_milli, 0..=most.memory_bytes, 0..=most.gpu_milli).prop_map(
        |(cpu_milli, memory_bytes, gpu_milli)| NodeParts { cpu_milli, memory_bytes, gpu_milli },
    )
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn the_parts_are_the_price_and_each_is_what_the_published_formula_says(
        price in 0i64..100_000_000_000,
        period_ms in 60_000u64..2_700_000_000,
        offered in (1u64..400_000, GIB..4096 * GIB, 0u64..16).prop_map(|(cpu_milli, memory_bytes, gpus)| {
            NodeParts { cpu_milli, memory_bytes, gpu_milli: gpus * 1000 }
        }),
        pods in prop::collection::vec((some_parts(parts(100, 500, 4)), prop::option::of(some_parts(parts(100, 500, 4)))), 0..8),
        teams in prop::collection::vec(0usize..3, 8),
        distributed in any::<bool>(),
    ) {
        let node = NodeCost { price: Money::micros(price), period_ms, offered, ..published_node() };
        let pods: Vec<PodParts> =
            pods.into_iter().map(|(reserved, used)| PodParts { reserved, used }).collect();
        let unused = if distributed { Unused::Distributed } else { Unused::Shown };
        for method in SplitMethod::ALL {
            let found = split_node(method, &node, &pods, unused).unwrap();
            // By team, and the teams together: the same micro-dollars at every level.
            let mut by_team = [Money::ZERO; 3];
            found.pods.iter().zip(&teams).for_each(|(cost, team)| by_team[*team] += cost.total());
            prop_assert_eq!(sum(by_team) + sum(found.unused), node.price);
            if offered.gpu_milli == 0 {
                continue;
            }
            for (cost, (own, of_unused)) in found.pods.iter().zip(oracle(method, &node, &pods)) {
                let near = |money: Money, exact: f64| {
                    (money.usd_micros as f64 - exact).abs() < 8.0 + exact.abs() * 1e-9
                };
                prop_assert!(near(cost.own, own), "{method}: {cost:?} {own}");
                let exact = if distributed { of_unused } else { 0.0 };
                prop_assert!(near(cost.of_unused, exact), "{method}: {cost:?} {exact}");
            }
        }
    }
}
