//! Moments by hand, in money.

mod moved;

use std::collections::BTreeMap;

use dovetail_account::device_time::{DeviceState, Span};
use dovetail_account::split::SplitMethod;
use dovetail_cases::cases;
use dovetail_facts::{
    Container, GpuUse, Gpus, HeldGpus, HeldState, Matched, Node, NodeGpus, ObjectRef,
    PendingDemand, Pod, Units, UsagePeriod, Workload, device_states, measure,
};
use dovetail_model::{
    DeviceAmount, DeviceRequest, FreeCause, GpuFraction, GpuParts, Holding, HoldingId,
    HoldingPhase, Job, JobId, Mode, Money, Node as ModelNode, NodeAvailability, Owner, Requirement,
    Resources, Snapshot,
};
use proptest::prelude::*;

use super::*;
use crate::catalogue::{Layer, Worth};

const GPU: &str = "nvidia.com/gpu";
const HOUR_MS: u64 = 3_600_000;
const NOW_MS: u64 = 1_000 * HOUR_MS;

/// Nodes of so many GPUs: ready, cordoned for ten hours, or not ready; and how many of the GPUs
/// pods hold.
fn cluster(nodes: &[(i64, NodeAvailability, i64)]) -> (Facts, Moment) {
    let mut facts = Facts { now_ms: NOW_MS, ..Facts::default() };
    let mut moment = Moment::default();
    let mut world = Snapshot { now_ms: NOW_MS, ..Snapshot::default() };
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
            gpus: BTreeMap::from([(
                GPU.into(),
                Gpus { model: None, built_in: *gpus, allocatable: *gpus, ..Gpus::default() },
            )]),
            cordoned_since_ms: (*condition == NodeAvailability::Cordoned)
                .then_some(NOW_MS - 10 * HOUR_MS),
            ..Node::new(node, ObjectRef::new("NodePool", "", "gpus"))
        });
        let parts = GpuParts::Equal(GpuFraction::WHOLE);
        moment.nodes.push(NodeGpus {
            node: name.clone(),
            model: None,
            gpus: *gpus,
            unavailable_milli: 0,
            layout_rest_milli: 0,
            unknown_milli: 0,
            units: vec![Units {
                resource: GPU.into(),
                count: *gpus,
                parts,
                unknown: 0,
                is_shared: false,
            }],
        });
        moment.held.push(HeldGpus {
            node: name.clone(),
            resource: GPU.into(),
            workload: 0,
            pod: format!("serve-{number}"),
            units: *held,
            gpu_milli: None,
            state: HeldState::Ready,
            gang: None,
            uses: Vec::new(),
        });
        if *held > 0 {
            let pod = Pod { name: format!("serve-{number}"), node: Some(name), ..Pod::default() };
            facts.workloads[0].pods.push(pod);
        }
    }
    // Nothing waits. The engine is not told what is held: its free pieces are cut to what is left.
    moment.demand.push(PendingDemand { resource: GPU.into(), world, ..PendingDemand::default() });
    (facts, moment)
}

fn reported(nodes: &[(i64, NodeAvailability, i64)], prices: &[Option<i64>]) -> AuditReport {
    let (mut facts, moment) = cluster(nodes);
    let states = device_states(&mut facts, &moment).unwrap();
    let prices: Vec<NodePrice> =
        prices.iter().map(|price| NodePrice { usd_micros_per_gpu_hour: *price }).collect();
    report(&facts, &moment, states, &prices, &SuppressionPolicy::default())
}

#[test]
fn a_cordoned_node_costs_what_nobody_holds_of_it() {
    let nodes = [
        (8, NodeAvailability::Cordoned, 3),
        (8, NodeAvailability::Ready, 8),
        (4, NodeAvailability::NotReady, 4),
    ];
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
    // Both stay paid: pods on them need a node.
    assert_eq!(first.brought.worth, Worth::Capacity);
    assert_eq!(last.paid_gpu_milli_ms, hours(20));
    assert_eq!((last.waste.gpu_milli_ms, report.unexplained_gpu_milli_ms()), (0, 0));
}

/// Neither what is free of it nor the node tells when it was cordoned.
#[test]
fn a_node_is_cordoned_since_its_cordon_and_not_since_it_joined() {
    for (held, is_undated) in [(3, false), (8, false), (3, true), (8, true)] {
        let (mut facts, moment) = cluster(&[(8, NodeAvailability::Cordoned, held)]);
        let node = &mut facts.nodes[0];
        (node.joined_ms, node.cordon_is_undated) = (Some(NOW_MS - 900 * HOUR_MS), is_undated);
        let states = device_states(&mut facts, &moment).unwrap();
        let price = NodePrice { usd_micros_per_gpu_hour: Some(1_000_000) };
        let found = report(&facts, &moment, states, &[price], &SuppressionPolicy::default());
        let cordoned = found.findings.iter().find(|of| of.finding.check.id == "AUT-06");
        let since_ms = cordoned.expect("it is cordoned for ten hours").since_ms;
        assert_eq!(since_ms, (!is_undated).then_some(NOW_MS - 10 * HOUR_MS), "{held}");
    }
}

/// What a cluster of one node reports while a job waits for so many GPUs of one node.
fn with_pending_job(facts: &mut Facts, moment: &mut Moment, gpus: u16) -> AuditReport {
    let device = DeviceRequest::Whole { count: gpus, same_island: false };
    let requirement = Requirement { device, ..Requirement::default() };
    let job = Job::single(JobId(7), "train", 0, requirement.into());
    moment.demand[0].world.jobs.push(job);
    let states = device_states(facts, moment).unwrap();
    let price = NodePrice { usd_micros_per_gpu_hour: Some(1_000_000) };
    report(facts, moment, states, &[price], &SuppressionPolicy::default())
}

/// A cordoned node that a pending pod needs is used once it accepts pods, and stays paid.
#[test]
fn a_node_that_pending_pods_need_does_not_leave_the_bill() {
    let removed = |gpus_wanted: u16| {
        let (mut facts, mut moment) = cluster(&[(8, NodeAvailability::Cordoned, 0)]);
        let found = with_pending_job(&mut facts, &mut moment, gpus_wanted);
        let brought = found.findings[0].brought;
        assert_eq!(found.findings[0].finding.check.id, "AUT-06");
        assert_eq!(brought.returned.cost(), Some(Money::micros(5_760_000_000)));
        brought.removed.cost()
    };
    assert_eq!(removed(8), Some(Money::ZERO));
    // No node has so many.
    assert_eq!(removed(16), Some(Money::micros(5_760_000_000)));
}

/// GPUs that need a repair are offered to no pending pod.
#[test]
fn a_cordoned_node_that_needs_a_repair_starts_no_pending_pods() {
    let filled = |marks: &[&str]| {
        let (mut facts, mut moment) = cluster(&[(8, NodeAvailability::Cordoned, 0)]);
        facts.nodes[0].repair_marks = marks.iter().map(|mark| (*mark).to_owned()).collect();
        let found = with_pending_job(&mut facts, &mut moment, 8);
        found.findings[0].brought.filled_gpu_milli_ms > 0
    };
    assert!(filled(&[]));
    assert!(!filled(&["condition GpuNvidiaXidErrors=True"]));
}

/// Half of a gang fits: its node is neither removed nor used before another one is there.
#[test]
fn a_node_that_a_gang_waits_for_stays_on_the_bill_and_returns_nothing() {
    let (mut facts, mut moment) = cluster(&[(8, NodeAvailability::Ready, 0)]);
    let device = DeviceRequest::Whole { count: 8, same_island: false };
    let requirement = Requirement { device, ..Requirement::default() };
    let mut job = Job::single(JobId(7), "team/train", 0, requirement.into());
    (job.pod_sets[0].min, job.pod_sets[0].max) = (2, 2);
    moment.demand[0].world.jobs.push(job);
    let states = device_states(&mut facts, &moment).unwrap();
    let price = NodePrice { usd_micros_per_gpu_hour: Some(1_000_000) };
    let found = report(&facts, &moment, states, &[price], &SuppressionPolicy::default());
    let gang = found.findings.iter().find(|of| of.finding.check.id == "SCH-13");
    let gang = gang.expect("the gang would start with one node more");
    assert_eq!(gang.settled.claimed.cost(), Some(Money::micros(5_760_000_000)));
    let brought = found.findings.iter().map(|of| of.brought);
    assert!(brought.clone().all(|of| of.removed.gpu_milli_ms == 0), "{:#?}", found.findings);
    assert!(brought.clone().all(|of| of.returned.gpu_milli_ms == 0));
}

/// What AUT-06 brings of each pool where jobs wait for so many GPUs each: what comes back, and what
/// leaves the bill, in GPUs.
fn of_cordoned_pools(nodes: &[(i64, NodeAvailability, i64)], jobs: &[u16]) -> Vec<(i128, i128)> {
    let (mut facts, mut moment) = cluster(nodes);
    for (number, node) in facts.nodes.iter_mut().enumerate() {
        node.pool = ObjectRef::new("NodePool", "", &format!("pool-{number}"));
    }
    for (number, count) in jobs.iter().enumerate() {
        let device = DeviceRequest::Whole { count: *count, same_island: false };
        let requirement = Requirement { device, ..Requirement::default() };
        let id = JobId(number as u64 + 1);
        moment.demand[0].world.jobs.push(Job::single(id, "train", 0, requirement.into()));
    }
    let states = device_states(&mut facts, &moment).unwrap();
    let prices = vec![NodePrice { usd_micros_per_gpu_hour: Some(1_000_000) }; nodes.len()];
    let found = report(&facts, &moment, states, &prices, &SuppressionPolicy::default());
    let of_check = found.findings.iter().filter(|priced| priced.finding.check.id == "AUT-06");
    let mut pools: Vec<_> = of_check
        .map(|priced| {
            let gpus = |time: PricedTime| time.gpu_milli_ms / i128::from(720 * HOUR_MS) / 1000;
            let brought = priced.brought;
            (&priced.finding.object.name, gpus(brought.returned), gpus(brought.removed))
        })
        .collect();
    pools.sort();
    pools.into_iter().map(|(_, returned, removed)| (returned, removed)).collect()
}

#[test]
fn each_cordoned_pool_is_judged_by_the_pods_that_it_alone_would_start() {
    let cordoned = (8, NodeAvailability::Cordoned, 0);
    // One pending job needs one of two alike pools; the other can go.
    assert_eq!(of_cordoned_pools(&[cordoned; 2], &[8]), [(8, 0), (8, 8)]);
    assert_eq!(of_cordoned_pools(&[cordoned; 2], &[8, 8]), [(8, 0), (8, 0)]);
    // A node that accepts pods has room for it, so neither pool is needed.
    let ready = (8, NodeAvailability::Ready, 0);
    assert_eq!(of_cordoned_pools(&[cordoned, cordoned, ready], &[8]), [(8, 8), (8, 8)]);
    // Of a node that is needed, what nothing takes only frees GPU-hours.
    assert_eq!(of_cordoned_pools(&[cordoned], &[2]), [(2, 0)]);
    // A node that others hold in part stays on the bill; what pending pods take of it is used.
    assert_eq!(of_cordoned_pools(&[(8, NodeAvailability::Cordoned, 3)], &[]), [(0, 0)]);
    assert_eq!(of_cordoned_pools(&[(8, NodeAvailability::Cordoned, 3)], &[5]), [(5, 0)]);
}

/// An empty node that is paid in advance brings nothing back; another leaves the bill.
#[test]
fn a_node_that_is_paid_in_advance_does_not_leave_the_bill() {
    let removed = |is_prepaid: bool| {
        let (mut facts, moment) = cluster(&[(8, NodeAvailability::Cordoned, 0)]);
        facts.nodes[0].is_prepaid = is_prepaid;
        let states = device_states(&mut facts, &moment).unwrap();
        let price = NodePrice { usd_micros_per_gpu_hour: Some(1_000_000) };
        let found = report(&facts, &moment, states, &[price], &SuppressionPolicy::default());
        found.findings[0].brought.removed.cost()
    };
    assert_eq!(removed(false), Some(Money::micros(5_760_000_000)));
    assert_eq!(removed(true), Some(Money::ZERO));
}

/// What ends by itself is in no state of the month.
#[test]
fn a_gang_that_waits_is_not_in_the_month_of_gpus_without_measurement() {
    let (mut facts, mut moment) =
        cluster(&[(8, NodeAvailability::Ready, 8), (8, NodeAvailability::Ready, 8)]);
    moment.held[1].gang = Some(dovetail_facts::GangCounts { min: 2, placed: 1, pending: 1 });
    let states = device_states(&mut facts, &moment).unwrap();
    let price = NodePrice { usd_micros_per_gpu_hour: Some(1_000_000) };
    let found = report(&facts, &moment, states, &[price; 2], &SuppressionPolicy::default());
    let unmeasured = found.month_of(&DeviceState::Unknown);
    assert_eq!(unmeasured.cost(), Some(Money::micros(5_760_000_000)));
    assert_eq!(found.by_state[&DeviceState::Unknown].cost(), Some(Money::micros(11_520_000_000)));
}

#[test]
fn what_was_measured_is_no_longer_blind_and_is_claimed_once() {
    let day = Span { from_ms: NOW_MS - 24 * HOUR_MS, to_ms: NOW_MS };
    let report_of = |active_h: u64| {
        let (mut facts, mut moment) = cluster(&[(8, NodeAvailability::Ready, 8)]);
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

/// A node of eight GPUs: a server holds two of them all day and never computes. Others compute on
/// the rest, or nobody does; and a job may wait for so many.
fn idle_server(has_busy: bool, waiting: Option<u16>) -> AuditReport {
    let (mut facts, mut moment) = cluster(&[(8, NodeAvailability::Ready, 2)]);
    let limits = |gpus| BTreeMap::from([(GPU.to_owned(), gpus)]);
    let main =
        |gpus| Container { name: "main".into(), limits: limits(gpus), ..Container::default() };
    facts.workloads[0].template.containers.push(main(2));
    if has_busy {
        let pod = Pod { name: "train-0".into(), node: Some("g0".into()), ..Pod::default() };
        let owner = ObjectRef::new("Deployment", "prod", "train");
        let mut train = Workload { owner, pods: vec![pod], ..Workload::default() };
        train.template.containers.push(main(6));
        facts.workloads.push(train);
        let serve = moment.held[0].clone();
        moment.held.push(HeldGpus { workload: 1, pod: "train-0".into(), units: 6, ..serve });
    }
    let world = &mut moment.demand[0].world;
    world.holdings = moment
        .held
        .iter()
        .zip([(1, 0_u16..2), (2, 2..8)])
        .map(|(held, (id, places))| Holding {
            id: HoldingId(id),
            node: "g0".into(),
            owner: Owner::Foreign(format!("prod/{}", held.pod)),
            phase: HoldingPhase::Held { expected_end_ms: None },
            reservation: None,
            resources: Resources::default(),
            devices: places
                .map(|place| {
                    (
                        place,
                        DeviceAmount {
                            mode: Mode::Shared,
                            compute_milli: 1_000,
                            ..DeviceAmount::default()
                        },
                    )
                })
                .collect(),
            counts_into: Default::default(),
            attachments: Default::default(),
        })
        .collect();
    if let Some(count) = waiting {
        let device = DeviceRequest::Whole { count, same_island: false };
        let requirement = Requirement { device, ..Requirement::default() };
        world.jobs.push(Job::single(JobId(1), "waits", 0, requirement.into()));
    }
    let used = |gpu: usize, active_h: u64| GpuUse {
        gpu: gpu.to_string(),
        active_ms: active_h * HOUR_MS,
        idle_ms: (24 - active_h) * HOUR_MS,
        ..GpuUse::default()
    };
    let key = |pod: &str| ("prod".to_owned(), pod.to_owned());
    let uses = BTreeMap::from([
        (key("serve-0"), (0..2).map(|gpu| used(gpu, 0)).collect()),
        (key("train-0"), (0..6).map(|gpu| used(gpu, 24)).collect::<Vec<_>>()),
    ]);
    let span = Span { from_ms: NOW_MS - 24 * HOUR_MS, to_ms: NOW_MS };
    measure(&mut facts, &mut moment, UsagePeriod { span, step_ms: 60_000 }, &uses);
    let states = device_states(&mut facts, &moment).unwrap();
    let price = NodePrice { usd_micros_per_gpu_hour: Some(1_000_000) };
    report(&facts, &moment, states, &[price], &SuppressionPolicy::default())
}

#[test]
fn money_comes_back_where_a_node_can_go_or_waiting_work_fits_and_nowhere_else() {
    let hours = |gpus: i128| gpus * 1000 * i128::from(30 * 24 * HOUR_MS);
    let found = |report: &AuditReport| {
        let first = &report.findings[0];
        assert_eq!(first.finding.check.id, "REQ-05");
        assert_eq!(first.settled.claimed.gpu_milli_ms, hours(2));
        let last = report.ladder.last().unwrap();
        let left = (last.paid_gpu_milli_ms, last.allocated_gpu_milli_ms);
        (first.brought.worth, first.brought.returned.gpu_milli_ms, left)
    };
    // Others hold the node, and nobody waits: somebody has to use what is freed.
    assert_eq!(found(&idle_server(true, None)), (Worth::Capacity, 0, (hours(8), hours(8))));
    // Nobody else is there: what was held is not paid any more. Free GPUs that nobody claims are.
    assert_eq!(found(&idle_server(false, None)), (Worth::Returned, hours(2), (hours(6), 0)));
    // Work that waits takes the room: one GPU of the two, or both; not three.
    for (count, taken) in [(1, 1), (2, 2), (3, 0)] {
        let worth = if taken > 0 { Worth::Returned } else { Worth::Capacity };
        let expected = (worth, hours(taken), (hours(8), hours(8)));
        assert_eq!(found(&idle_server(true, Some(count))), expected, "{count}");
    }
}

/// What pods of one owner hold where GPUs are shared out.
struct Sharer {
    pod: &'static str,
    units: i64,
    gpu_milli: Option<i64>,
    /// Its units in the world of what waits.
    world: std::ops::Range<u16>,
    /// Of each unit that was measured, for how long it computed in a day.
    active_h: Vec<u64>,
}

/// A node of so many GPUs in units of a resource, of which so many units of another name are all
/// (or of the same), and a job that waits for these.
fn shared_out(
    gpus: i64,
    units: Units,
    (resource, all): (&str, i64),
    sharers: Vec<Sharer>,
    waiting: u16,
) -> AuditReport {
    let (mut facts, mut moment) = cluster(&[(gpus, NodeAvailability::Ready, 0)]);
    let offered = |count| Gpus { built_in: count, allocatable: count, ..Gpus::default() };
    facts.nodes[0].gpus = BTreeMap::from([
        (units.resource.clone(), offered(units.count)),
        (resource.to_owned(), offered(all)),
    ]);
    (facts.workloads, moment.held) = Default::default();
    let world = &mut moment.demand[0].world;
    world.nodes[0] = ModelNode::plain("g0", 96_000, 1 << 40, usize::try_from(all).unwrap(), "H100");
    let mut uses = BTreeMap::new();
    for (number, sharer) in sharers.into_iter().enumerate() {
        let owner = ObjectRef::new("Deployment", "prod", sharer.pod);
        let pod = Pod { name: sharer.pod.into(), node: Some("g0".into()), ..Pod::default() };
        let mut workload = Workload { owner, pods: vec![pod], ..Workload::default() };
        let limits = BTreeMap::from([(resource.to_owned(), sharer.world.len() as i64)]);
        workload.template.containers.push(Container { limits, ..Container::default() });
        facts.workloads.push(workload);
        moment.held.push(HeldGpus {
            node: "g0".into(),
            resource: units.resource.clone(),
            workload: number,
            pod: sharer.pod.into(),
            units: sharer.units,
            gpu_milli: sharer.gpu_milli,
            state: HeldState::Ready,
            gang: None,
            uses: Vec::new(),
        });
        let amount =
            DeviceAmount { mode: Mode::Shared, compute_milli: 1_000, ..DeviceAmount::default() };
        world.holdings.push(Holding {
            id: HoldingId(number as u64 + 1),
            node: "g0".into(),
            owner: Owner::Foreign(format!("prod/{}", sharer.pod)),
            phase: HoldingPhase::Held { expected_end_ms: None },
            reservation: None,
            resources: Resources::default(),
            devices: sharer.world.map(|place| (place, amount.clone())).collect(),
            counts_into: Default::default(),
            attachments: Default::default(),
        });
        let used = |(gpu, active_h): (usize, &u64)| GpuUse {
            gpu: format!("{}-{gpu}", sharer.pod),
            active_ms: active_h * HOUR_MS,
            idle_ms: (24 - active_h) * HOUR_MS,
            ..GpuUse::default()
        };
        let of_pod = sharer.active_h.iter().enumerate().map(used).collect::<Vec<_>>();
        uses.insert(("prod".to_owned(), sharer.pod.to_owned()), of_pod);
    }
    let device = DeviceRequest::Whole { count: waiting, same_island: false };
    let requirement = Requirement { device, ..Requirement::default() };
    world.jobs.push(Job::single(JobId(1), "waits", 0, requirement.into()));
    moment.demand[0].resource = resource.to_owned();
    moment.nodes[0].units = vec![units];
    let span = Span { from_ms: NOW_MS - 24 * HOUR_MS, to_ms: NOW_MS };
    measure(&mut facts, &mut moment, UsagePeriod { span, step_ms: 60_000 }, &uses);
    let states = device_states(&mut facts, &moment).unwrap();
    let price = NodePrice { usd_micros_per_gpu_hour: Some(1_000_000) };
    report(&facts, &moment, states, &[price], &SuppressionPolicy::default())
}

/// What the finding of a check brings: its worth, and how much comes back, in milli-GPU.
fn brings(report: &AuditReport, id: &str) -> (Worth, i128) {
    let found = report.findings.iter().find(|priced| priced.finding.check.id == id);
    let brought = found.unwrap_or_else(|| panic!("{id}")).brought;
    (brought.worth, brought.returned.gpu_milli_ms / i128::from(30 * 24 * HOUR_MS))
}

#[test]
fn room_is_reckoned_by_shares_and_not_by_the_units_that_pods_ask_for() {
    let units = |resource: &str, count, of| Units {
        resource: resource.into(),
        count,
        parts: GpuParts::Equal(GpuFraction { part: 1, of }),
        unknown: 0,
        is_shared: false,
    };
    let sharer = |pod, units, gpu_milli, world, active_h: &[u64]| Sharer {
        pod,
        units,
        gpu_milli,
        world,
        active_h: active_h.to_vec(),
    };
    // Two GPUs in halves. Two halves that are said to be all of both GPUs: one of them never
    // computes. A GPU that is left is one half as pods ask for them, so with the two that nobody
    // asked for three fit. By units it would be two halves, and four.
    let halves = |waiting| {
        let all = sharer("serve", 2, Some(2_000), 0..2, &[0, 24]);
        shared_out(2, units(GPU, 4, 2), (GPU, 4), vec![all], waiting)
    };
    assert_eq!(brings(&halves(3), "REQ-04"), (Worth::Returned, 1_000));
    assert_eq!(brings(&halves(4), "REQ-04"), (Worth::Capacity, 0));
    // One of ten parts that is said to be 3% of the compute: whoever leaves it leaves the part. By
    // units it is less than one.
    let tenths = {
        let little = sharer("serve", 1, Some(30), 0..1, &[0]);
        let rest = sharer("train", 9, None, 1..10, &[24; 9]);
        shared_out(1, units(GPU, 10, 10), (GPU, 10), vec![little, rest], 1)
    };
    assert_eq!(brings(&tenths, "REQ-05"), (Worth::Returned, 30));
    // Cores of Neuron chips are held under the name of the chips.
    let chip = "aws.amazon.com/neuron";
    let cores = {
        let idle = sharer("serve", 1, Some(1_000), 0..2, &[0]);
        let busy = sharer("train", 1, Some(1_000), 2..4, &[24]);
        let core = ("aws.amazon.com/neuroncore", 4);
        shared_out(2, units(chip, 2, 1), core, vec![idle, busy], 2)
    };
    assert_eq!(brings(&cores, "REQ-05"), (Worth::Returned, 1_000));
}

/// Two GPUs measured for 25 minutes, never computing: 50 GPU-minutes, and no month.
#[test]
fn what_was_measured_for_minutes_is_minutes() {
    let (mut facts, mut moment) = cluster(&[(2, NodeAvailability::Ready, 2)]);
    let limits = BTreeMap::from([(GPU.to_owned(), 2)]);
    let main = Container { name: "main".into(), limits, ..Container::default() };
    facts.workloads[0].template.containers.push(main);
    let minutes = |minutes: u64| minutes * 60_000;
    let mut report_of = |measured_ms: u64| {
        let of_gpu = |gpu: usize| GpuUse {
            gpu: gpu.to_string(),
            idle_ms: measured_ms,
            idle_since_ms: Some(NOW_MS - measured_ms),
            ..GpuUse::default()
        };
        let key = ("prod".to_owned(), "serve-0".to_owned());
        let uses = BTreeMap::from([(key, (0..2).map(of_gpu).collect())]);
        let span = Span { from_ms: NOW_MS - measured_ms, to_ms: NOW_MS };
        measure(&mut facts, &mut moment, UsagePeriod { span, step_ms: 60_000 }, &uses);
        let states = device_states(&mut facts, &moment).unwrap();
        let price = NodePrice { usd_micros_per_gpu_hour: Some(6_000_000) };
        report(&facts, &moment, states, &[price], &SuppressionPolicy::default())
    };
    let short = report_of(minutes(25));
    assert_eq!(short.waste, PricedTime::default());
    assert_eq!(short.waste_so_far().cost(), Some(Money::micros(2 * 25 * 100_000)));
    // It was measured, and is no month.
    assert_eq!(short.blind, PricedTime::default());
    assert_eq!(short.open.gpu_milli_ms, short.installed.gpu_milli_ms);
    assert_eq!(short.now[&DeviceState::Idle], short.installed.gpu_milli_ms);
    let long = report_of(minutes(12 * 60));
    assert_eq!(long.waste.cost(), Some(Money::micros(2 * 720 * 6_000_000)));
    assert_eq!(long.waste_so_far(), PricedTime::default());
    // It says since when.
    assert_eq!(long.findings[0].since_ms, Some(NOW_MS - minutes(12 * 60)));
}

/// Eight GPUs for a dollar each and hour, unmeasured: nothing uses them once their containers have
/// ended, whatever still runs in the pod.
#[test]
fn gpus_of_a_pod_whose_work_is_over_are_idle_since_it_ended() {
    let after = |minutes: u64| {
        let (mut facts, mut moment) = cluster(&[(8, NodeAvailability::Ready, 8)]);
        let limits = BTreeMap::from([(GPU.to_owned(), 8)]);
        let main = Container { name: "main".into(), limits, ..Container::default() };
        let ended_ms = NOW_MS - minutes * 60_000;
        let serve = &mut facts.workloads[0];
        serve.template.containers.push(main);
        serve.pods[0].is_done_but_for_helpers = true;
        serve.pods[0].work_ended_ms = Some(ended_ms);
        // It was never ready, which does not matter any more.
        moment.held[0].state = HeldState::Starting;
        let states = device_states(&mut facts, &moment).unwrap();
        let price = NodePrice { usd_micros_per_gpu_hour: Some(1_000_000) };
        let report = report(&facts, &moment, states, &[price], &SuppressionPolicy::default());
        let of = report.findings.into_iter().find(|of| of.finding.check.id == "IDL-04");
        let of = of.expect("its GPUs stay allocated");
        assert_eq!(of.since_ms, Some(ended_ms));
        [of.settled.claimed, of.so_far].map(|time| time.gpu_milli_ms / i128::from(HOUR_MS))
    };
    assert_eq!(after(10 * 60), [8 * 1000 * 720, 0]);
    // Half an hour is no month.
    assert_eq!(after(30), [0, 8 * 1000 / 2]);
}

#[test]
fn who_starts_for_long_stays_and_its_node_cannot_go() {
    let (mut facts, mut moment) = cluster(&[(8, NodeAvailability::Ready, 8)]);
    let limits = BTreeMap::from([(GPU.to_owned(), 8)]);
    let main = Container { name: "main".into(), limits, ..Container::default() };
    let serve = &mut facts.workloads[0];
    serve.template.containers.push(main);
    (serve.pods[0].is_starting, serve.pods[0].placed_since_ms) = (true, Some(NOW_MS - HOUR_MS));
    moment.held[0].state = HeldState::Starting;
    let states = device_states(&mut facts, &moment).unwrap();
    let price = NodePrice { usd_micros_per_gpu_hour: Some(1_000_000) };
    let report = report(&facts, &moment, states, &[price], &SuppressionPolicy::default());
    let first = &report.findings[0];
    assert_eq!((first.finding.check.id, first.brought.worth), ("IDL-05", Worth::Capacity));
    // Eight GPUs for an hour, and no month: a start ends by itself.
    assert_eq!(first.so_far.gpu_milli_ms, 8 * 1000 * i128::from(HOUR_MS));
    assert_eq!(first.settled.claimed, PricedTime::default());
    assert_eq!(first.brought.returned, PricedTime::default());
}

#[test]
fn the_lowest_figure_is_that_of_the_month_and_not_720_times_a_cut_off_hour() {
    let report = idle_server(true, None);
    let headline = report.headline.unwrap();
    assert_eq!(headline.lowest.0, SplitMethod::AwsSplit);
    // 8 GPUs, 96 vCPUs and 1 TiB weigh 9 · 8, 0.9 · 96 and 0.1 · 1024; $5,760 a month, two GPUs of
    // eight idle.
    let by_hand = 5_760_000_000.0 * 72.0 / 260.8 / 4.0;
    let found = headline.lowest.1.usd_micros as f64;
    assert!((found - by_hand).abs() <= 1.0, "{found}, by hand {by_hand}");
}

fn condition() -> impl Strategy<Value = NodeAvailability> {
    prop::sample::select(vec![
        NodeAvailability::Ready,
        NodeAvailability::Cordoned,
        NodeAvailability::NotReady,
    ])
}

proptest! {
    #![proptest_config(cases(256))]

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
            NodeAvailability::NotReady => 0,
            _ => *held.min(gpus),
        }).sum();
        prop_assert_eq!(report.blind.gpu_milli_ms, i128::from(held) * 1000 * month);
        let money = |time: PricedTime| time.cost().unwrap_or(Money::ZERO);
        let claimed: Money = report.findings.iter().map(|f| money(f.settled.claimed)).sum();
        prop_assert!(claimed <= money(report.waste) && money(report.waste) <= money(report.installed));
        prop_assert!(report.unexplained_gpu_milli_ms() >= 0);
        let parts = [report.returned, report.freed, report.unexplained];
        let sum = parts.iter().fold(PricedTime::default(), |sum, part| sum + part.time);
        prop_assert_eq!(sum, report.waste);
        for range in parts.iter().filter_map(|part| part.range) {
            prop_assert!(range.lowest.1 <= range.cost && range.cost <= range.highest.1);
        }
        for rung in &report.ladder {
            let (held, paid) = (rung.allocated_gpu_milli_ms, rung.paid_gpu_milli_ms);
            prop_assert!(0 <= held && held <= paid, "{rung:?}");
        }
    }
}
