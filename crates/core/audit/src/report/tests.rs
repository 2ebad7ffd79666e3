//! Moments by hand, in money.

use std::collections::BTreeMap;

use dovetail_ledger::FreeCause;
use dovetail_ledger::device_time::{DeviceState, Span};
use dovetail_model::{Condition, Money, Node as ModelNode, Snapshot};
use proptest::prelude::*;

use super::*;
use crate::catalogue::Layer;
use crate::facts::{Container, Gpus, Node, ObjectRef, Pod, Workload};
use crate::moment::{Demand, Held, HeldState, NodeGpus, Slice, Units, device_states};
use crate::usage::{GpuUse, Matched, UsagePeriod, measure};

const GPU: &str = "nvidia.com/gpu";
const HOUR_MS: u64 = 3_600_000;
const NOW_MS: u64 = 1_000 * HOUR_MS;

/// Nodes of so many GPUs: ready, cordoned for ten hours, or not ready; and how many of the GPUs pods hold.
fn cluster(nodes: &[(i64, Condition, i64)]) -> (Facts, Moment) {
    let mut facts = Facts { now_ms: NOW_MS, ..Facts::default() };
    let mut moment = Moment::default();
    let mut world = Snapshot::default();
    facts.workloads.push(Workload {
        owner: ObjectRef::new("Deployment", "prod", "serve"),
        exports_gpu_metrics: true,
        ..Workload::default()
    });
    for (number, (gpus, condition, held)) in nodes.iter().enumerate() {
        let name = format!("g{number}");
        let mut node =
            ModelNode::plain(&name, 96_000, 1 << 40, usize::try_from(*gpus).unwrap(), "H100");
        node.condition = *condition;
        world.nodes.push(node.clone());
        facts.nodes.push(Node {
            node,
            pool: ObjectRef::new("NodePool", "", "gpus"),
            gpus: BTreeMap::from([(
                GPU.into(),
                Gpus { model: None, built_in: *gpus, allocatable: *gpus },
            )]),
            scale_down_held_by: None,
            is_spot: None,
            cordoned_since_ms: (*condition == Condition::Cordoned).then_some(NOW_MS - 10 * HOUR_MS),
            without_gpu_pods_since_ms: None,
            uncounted_gpus: 0,
            numa_policy: None,
            cheapest_region: None,
            devices: Vec::new(),
        });
        let slice = Slice { part: 1, of: 1 };
        moment.nodes.push(NodeGpus {
            node: name.clone(),
            model: None,
            gpus: *gpus,
            unavailable_milli: 0,
            units: vec![Units { resource: GPU.into(), count: *gpus, slice }],
        });
        moment.held.push(Held {
            node: name.clone(),
            resource: GPU.into(),
            workload: 0,
            pod: format!("serve-{number}"),
            units: *held,
            state: HeldState::Ready,
            uses: Vec::new(),
        });
        let pod = Pod { name: format!("serve-{number}"), node: Some(name), ..Pod::default() };
        facts.workloads[0].pods.push(pod);
    }
    // Nothing waits. The engine is not told what is held: its free pieces are cut to what is left.
    moment.demand.push(Demand { resource: GPU.into(), world });
    (facts, moment)
}

fn reported(nodes: &[(i64, Condition, i64)], prices: &[Option<i64>]) -> Report {
    let (mut facts, moment) = cluster(nodes);
    let states = device_states(&mut facts, &moment).unwrap();
    let prices: Vec<NodePrice> =
        prices.iter().map(|price| NodePrice { usd_micros_per_gpu_hour: *price }).collect();
    report(&facts, &moment, states, &prices, &SuppressionPolicy::default())
}

#[test]
fn a_cordoned_node_costs_what_nobody_holds_of_it() {
    let nodes =
        [(8, Condition::Cordoned, 3), (8, Condition::Ready, 8), (4, Condition::NotReady, 4)];
    let report = reported(&nodes, &[Some(2_500_000), Some(1_000_000), None]);
    let hours = |gpus: i128| gpus * 1000 * i128::from(30 * 24 * HOUR_MS);
    assert_eq!(report.installed.gpu_milli_ms, hours(20));
    // Five free of the cordoned node, four of the lost one; of eleven held ones nobody knows.
    assert_eq!((report.waste.gpu_milli_ms, report.blind.gpu_milli_ms), (hours(9), hours(11)));
    let cordoned = DeviceState::Free(Some(FreeCause::DrainingOrCordoned));
    assert_eq!(report.by_state[&cordoned].cost(), Some(Money::micros(9_000_000_000)));
    assert_eq!(report.by_state[&DeviceState::Unavailable].cost(), None);
    let first = &report.findings[0];
    assert_eq!(first.finding.check.id, "AUT-06");
    assert_eq!(first.settled.claimed.cost(), Some(Money::micros(9_000_000_000)));
    // All of the node on its GPUs is the most that any method puts there.
    let headline = report.headline.unwrap();
    assert_eq!(headline.cost, Money::micros(9_000_000_000));
    assert_eq!(
        (headline.highest.0, headline.lowest.0),
        (SplitMethod::AllIn, SplitMethod::AwsSplit)
    );
    let rungs: Vec<_> = report.ladder.iter().map(|rung| (rung.layer, rung.findings)).collect();
    assert!(rungs.contains(&(Some(Layer::Guard), 2)), "{rungs:?}");
    let last = report.ladder.last().unwrap();
    // The free part of the one and all of the other can go.
    assert_eq!(last.paid_gpu_milli_ms, hours(11));
    assert_eq!((last.waste.gpu_milli_ms, report.unexplained_gpu_milli_ms()), (0, 0));
}

#[test]
fn what_was_measured_is_no_longer_blind_and_is_claimed_once() {
    let day = Span { from_ms: NOW_MS - 24 * HOUR_MS, to_ms: NOW_MS };
    let report_of = |active_h: u64| {
        let (mut facts, mut moment) = cluster(&[(8, Condition::Ready, 8)]);
        let limits = BTreeMap::from([(GPU.to_owned(), 8)]);
        let main = Container { name: "main".into(), limits, ..Container::default() };
        facts.workloads[0].template.containers.push(main);
        let of_gpu = |number: usize| GpuUse {
            gpu: number.to_string(),
            active_ms: active_h * HOUR_MS,
            idle_ms: (24 - active_h) * HOUR_MS,
            ..GpuUse::default()
        };
        let key = ("prod".to_owned(), "serve-0".to_owned());
        let gone = ("prod".to_owned(), "gone".to_owned());
        let uses = BTreeMap::from([(key, (0..8).map(of_gpu).collect()), (gone, Vec::new())]);
        let period = UsagePeriod { span: day, step_ms: 60_000 };
        let matched = measure(&mut facts, &mut moment, period, &uses);
        assert_eq!(matched, Matched { pods: 1, others: 1 });
        let states = device_states(&mut facts, &moment).unwrap();
        let price = NodePrice { usd_micros_per_gpu_hour: Some(1_000_000) };
        report(&facts, &moment, states, &[price], &SuppressionPolicy::default())
    };
    let hours = |gpu_hours: i128| gpu_hours * 1000 * i128::from(HOUR_MS);
    let never = report_of(0);
    assert_eq!((never.waste.gpu_milli_ms, never.blind.gpu_milli_ms), (hours(8 * 720), 0));
    let first = &never.findings[0];
    assert_eq!(first.finding.check.id, "REQ-05");
    assert_eq!(first.settled.claimed.cost(), Some(Money::micros(8 * 720 * 1_000_000)));
    assert_eq!(never.unexplained_gpu_milli_ms(), 0);
    // A quarter of the day is a quarter of the month, and no finding has it.
    let mostly = report_of(18);
    assert_eq!(mostly.by_state[&DeviceState::Idle].gpu_milli_ms, hours(2 * 720));
    assert_eq!(mostly.unexplained_gpu_milli_ms(), hours(2 * 720));
    assert_eq!(mostly.blind.gpu_milli_ms, 0);
}

fn condition() -> impl Strategy<Value = Condition> {
    prop::sample::select(vec![Condition::Ready, Condition::Cordoned, Condition::NotReady])
}

proptest! {
    #[test]
    fn findings_are_never_more_than_the_waste_and_the_waste_never_more_than_the_bill(
        nodes in prop::collection::vec((1i64..9, condition(), 0i64..12), 1..6),
        prices in prop::collection::vec(prop::option::of(1i64..9_000_000), 6),
    ) {
        let report = reported(&nodes, &prices[..nodes.len()]);
        let gpus: i64 = nodes.iter().map(|(gpus, ..)| gpus).sum();
        let month = i128::from(30 * 24 * HOUR_MS);
        prop_assert_eq!(report.installed.gpu_milli_ms, i128::from(gpus) * 1000 * month);
        let by_state: i128 = report.by_state.values().map(|time| time.gpu_milli_ms).sum();
        prop_assert_eq!(by_state, report.installed.gpu_milli_ms);
        let held: i64 = nodes.iter().map(|(gpus, condition, held)| match condition {
            Condition::NotReady => 0,
            _ => *held.min(gpus),
        }).sum();
        prop_assert_eq!(report.blind.gpu_milli_ms, i128::from(held) * 1000 * month);
        let money = |time: PricedTime| time.cost().unwrap_or(Money::ZERO);
        let claimed: Money = report.findings.iter().map(|f| money(f.settled.claimed)).sum();
        prop_assert!(claimed <= money(report.waste) && money(report.waste) <= money(report.installed));
        prop_assert!(report.unexplained_gpu_milli_ms() >= 0);
    }
}
