//! One small world of each kind, made by hand: both searches and the judge agree on what is placed,
//! and it is what one would do with pencil and paper.

use std::sync::Arc;

use dovetail_check::Judge;
use dovetail_model::job::EstimateSource;
use dovetail_model::{
    Action, Device, DeviceAmount, DeviceRequest, Estimate, Event, HeldDevices, Holding, HoldingId,
    HoldingPhase, Job, JobId, Knowledge, MigTable, Mode, Node, NodeAvailability, Owner,
    PendingReason, Plan, PodSet, Requirement, ReservationId, Resources, Snapshot, Taint,
    TaintEffect, Toleration, TopologyRequest,
};
use dovetail_plan::engine::EngineConfig;
use dovetail_plan::{Engine, PolicySpec, PreemptionConfig, TargetPod, View};

use crate::recipe::{mig_table, queue};

/// Both searches over one world, watched by the judge.
pub(crate) struct World {
    pub(crate) engines: [Engine; 2],
    judge: Judge,
    pub(crate) now_ms: u64,
    next_job: u64,
}

/// Where a pod went, as (ordinal, node, devices).
pub(crate) type Placed = Vec<(u32, String, HeldDevices)>;

impl World {
    pub(crate) fn of(snapshot: &Snapshot) -> Self {
        Self::with(snapshot, PreemptionConfig::default())
    }

    pub(crate) fn with(snapshot: &Snapshot, preemption: PreemptionConfig) -> Self {
        let policy = PolicySpec::named("best-fit");
        Self::under(EngineConfig { policy, preemption, ..EngineConfig::default() }, snapshot)
    }

    pub(crate) fn under(config: EngineConfig, snapshot: &Snapshot) -> Self {
        let engine = |naive| Engine::new(EngineConfig { naive, ..config.clone() }, snapshot);
        Self {
            engines: [false, true].map(|naive| engine(naive).expect("a good world")),
            judge: Judge::new(snapshot).with_lent_percent(config.reserve.lent_percent),
            now_ms: snapshot.now_ms,
            next_job: 1,
        }
    }

    pub(crate) fn nodes(nodes: Vec<Node>) -> Self {
        let mig_tables = vec![mig_table()];
        Self::of(&Snapshot { nodes, mig_tables, ..Snapshot::default() })
    }

    pub(crate) fn step(&mut self, event: Event) -> Plan {
        let plans = self.engines.each_mut().map(|engine| {
            engine.step(event.clone(), self.now_ms).expect("an event that makes sense")
        });
        assert_eq!(plans[0], plans[1]);
        self.judge.event(&event, self.now_ms);
        let [plan, _] = plans;
        assert_eq!(self.judge.plan(&plan), []);
        assert_eq!(self.judge.compare(&self.engines[0].snapshot()), []);
        plan
    }

    pub(crate) fn submit(
        &mut self,
        change: impl FnOnce(&mut Job),
        requirement: Requirement,
    ) -> Plan {
        let id = self.next_job;
        self.next_job += 1;
        let mut job = Job::single(JobId(id), "by-hand", self.now_ms, Arc::new(requirement));
        change(&mut job);
        self.step(Event::Submitted(Box::new(job)))
    }

    /// Number of the newest job.
    pub(crate) fn last_job(&self) -> u64 {
        self.next_job - 1
    }

    /// Submits a job of one pod; its devices, or `None` if it waits.
    fn start(&mut self, device: DeviceRequest) -> Option<HeldDevices> {
        let placed = placed(&self.submit(|_| {}, asks(device)));
        placed.into_iter().next().map(|(_, _, devices)| devices)
    }

    pub(crate) fn end(&mut self, job: u64) -> Plan {
        self.step(Event::ended(JobId(job)))
    }

    fn would_go(&mut self, job: &Job, view: &View) -> Option<Vec<String>> {
        let answers = self.engines.each_mut().map(|engine| {
            let before = engine.snapshot();
            let answer = engine.ask().what_if_job(job, view).expect("levels that exist");
            assert_eq!(before, engine.snapshot(), "a question changes nothing");
            answer.map(|pods| pods.into_iter().map(|pod| pod.node.to_string()).collect())
        });
        assert_eq!(answers[0], answers[1]);
        answers.into_iter().next().flatten()
    }
}

pub(crate) fn placed(plan: &Plan) -> Placed {
    let bound = plan.actions.iter().filter_map(|action| match action {
        Action::Bind { pod, node, devices } => {
            Some((pod.ordinal, node.to_string(), devices.clone()))
        }
        _ => None,
    });
    bound.collect()
}

/// Jobs of pods that are bound, pod by pod.
pub(crate) fn started(plan: &Plan) -> Vec<u64> {
    let of = |action: &Action| match action {
        Action::Bind { pod, .. } => Some(pod.job.0),
        _ => None,
    };
    plan.actions.iter().filter_map(of).collect()
}

/// Jobs of pods that are preempted, pod by pod.
pub(crate) fn victims(plan: &Plan) -> Vec<u64> {
    let of = |action: &Action| match action {
        Action::Preempt { victims, .. } => victims.clone(),
        _ => Vec::new(),
    };
    plan.actions.iter().flat_map(of).map(|pod| pod.job.0).collect()
}

pub(crate) fn asks(device: DeviceRequest) -> Requirement {
    Requirement { resources: Resources::pod(100, 0), device, ..Requirement::default() }
}

pub(crate) fn whole(count: u16) -> DeviceRequest {
    DeviceRequest::Whole { count, same_island: false }
}

fn node(name: &str, devices: Vec<Device>) -> Node {
    Node { devices, ..Node::plain(name, 64_000, 1000, 0, "") }
}

fn gpus(name: &str, count: usize) -> Node {
    node(name, vec![Device::plain("A", 0); count])
}

#[test]
fn mig_slices_leave_room_for_the_others() {
    let cut = Device { mig_table: Some("eight".into()), ..Device::plain("A", 40) };
    let mut world = World::nodes(vec![node("n", vec![cut; 2])]);
    let slice = |profile: &str| DeviceRequest::Slice { profile: profile.into() };
    let mask = |held: Option<HeldDevices>| held.map(|held| (held[0].0, held[0].1.slice_mask));
    // The small one keeps the halves whole: 4g needs the lower one, 3g either.
    let small = mask(world.start(slice("1g"))).expect("room");
    assert_eq!(small.0, 0);
    assert!(small.1 >= 1 << 4, "the half that 4g can start in stays free: {small:?}");
    assert_eq!(mask(world.start(slice("4g"))), Some((0, 0b0000_1111)));
    // Two compute slices are left of device 0, so 3g opens device 1; then whole devices have no
    // room.
    let (device, _) = mask(world.start(slice("3g"))).expect("room");
    assert_eq!(device, 1);
    assert_eq!(world.start(whole(1)), None);
    assert_eq!(mask(world.start(slice("7g"))), None);
    world.end(1);
    // Device 0 is empty once the 4g has gone too: the whole-device job starts there.
    let freed = placed(&world.end(2));
    assert_eq!(freed, [(0, "n".to_owned(), vec![(0, DeviceAmount::share(1000, 40))])]);
}

#[test]
fn a_gpu_gives_its_media_engines_once() {
    let table = MigTable::of_model("A100-40GB").expect("a table");
    let cut = Device { mig_table: Some(table.name.clone()), ..Device::plain("A", 40) };
    let nodes = vec![node("n", vec![cut; 2])];
    let snapshot = Snapshot { nodes, mig_tables: vec![table], ..Snapshot::default() };
    let mut world = World::of(&snapshot);
    let slice = |profile: &str| DeviceRequest::Slice { profile: profile.into() };
    let device = |held: Option<HeldDevices>| held.map(|held| held[0].0);
    let first = device(world.start(slice("1g.5gb+me"))).expect("room");
    let second = device(world.start(slice("1g.5gb+me"))).expect("room");
    assert_ne!(first, second);
    assert_eq!(device(world.start(slice("1g.5gb+me"))), None);
    // What has none is not kept off.
    assert!(world.start(slice("1g.5gb")).is_some());
}

#[test]
fn absurd_requests_cost_nothing_and_keep_nobody_out() {
    let snapshot = Snapshot { nodes: vec![gpus("n", 8)], ..Snapshot::default() };
    let mut engine = Engine::new(EngineConfig::default(), &snapshot).expect("a good world");
    let mut submit = |number: u64, cpu_milli: i64| {
        let resources = Resources::pod(cpu_milli, 0);
        let requirement = Requirement { resources, ..asks(whole(1)) };
        let job = Job::single(JobId(number), "absurd", 0, Arc::new(requirement));
        engine.step(Event::Submitted(Box::new(job)), 0).expect("a step")
    };
    for number in 0..600 {
        assert_eq!(placed(&submit(number, i64::MAX / 1_000_000)), []);
    }
    assert_eq!(placed(&submit(600, 1000)).len(), 1);
}

#[test]
fn the_first_of_those_alike_is_told_what_helps_and_the_others_to_wait_their_turn() {
    let mut world = World::nodes(vec![gpus("n", 1)]);
    assert!(world.start(whole(1)).is_some());
    let told = |plan: Plan| -> Vec<(u64, PendingReason)> {
        let waits = plan.actions.into_iter().filter_map(|action| match action {
            Action::Wait { job, reason } => Some((job.0, reason)),
            _ => None,
        });
        waits.collect()
    };
    let (first, turn) = (PendingReason::Unschedulable, PendingReason::WaitingForTurn);
    assert_eq!(told(world.submit(|_| {}, asks(whole(1)))), [(2, first)]);
    assert_eq!(told(world.submit(|_| {}, asks(whole(1)))), [(3, turn)]);
    assert_eq!(told(world.end(2)), [(3, first)], "it is first in line now");
    assert_eq!(told(world.end(3)), []);
    assert_eq!(told(world.submit(|_| {}, asks(whole(1)))), [(4, first)], "nobody is before it");
    let resumed = world.engines[0].snapshot();
    assert_eq!(resumed.sleeping.len(), 1);
    let mut resumed = World::of(&resumed);
    assert_eq!(resumed.engines[0].snapshot(), world.engines[0].snapshot());
    resumed.next_job = 5;
    assert_eq!(told(resumed.submit(|_| {}, asks(whole(1)))), [(5, turn)]);
    assert_eq!(placed(&resumed.end(1)).len(), 1, "what is freed wakes them");
}

#[test]
fn devices_of_one_island_come_from_the_smallest_that_suffices() {
    let mut here = gpus("n", 5);
    here.devices.iter_mut().skip(3).for_each(|device| device.island = 1);
    let mut world = World::nodes(vec![here]);
    let together = |count| DeviceRequest::Whole { count, same_island: true };
    let indices = |held: Option<HeldDevices>| -> Option<Vec<u16>> {
        held.map(|held| held.into_iter().map(|(index, _)| index).collect())
    };
    assert_eq!(indices(world.start(together(4))), None, "no island has four");
    assert_eq!(indices(world.start(together(2))), Some(vec![3, 4]));
    assert_eq!(indices(world.start(together(1))), Some(vec![0]));
    assert_eq!(indices(world.start(together(2))), Some(vec![1, 2]));
}

#[test]
fn time_slicing_fills_a_device_before_the_next() {
    let sliced = Device { replicas: 4, ..Device::plain("A", 0) };
    let mut world = World::nodes(vec![node("n", vec![sliced; 2])]);
    let replicas = |count| DeviceRequest::Replicas { count };
    let amount = |replicas| DeviceAmount { mode: Mode::Replicated, replicas, ..Default::default() };
    assert_eq!(world.start(replicas(3)), Some(vec![(0, amount(3))]));
    assert_eq!(world.start(replicas(2)), Some(vec![(1, amount(2))]));
    assert_eq!(world.start(replicas(1)), Some(vec![(0, amount(1))]));
    assert_eq!(world.start(replicas(3)), None);
    assert_eq!(world.start(whole(1)), None, "a device in this mode is not empty");
    let freed = placed(&world.end(2));
    assert_eq!(freed, [(0, "n".to_owned(), vec![(1, amount(3))])]);
}

#[test]
fn dra_counters_are_shared_out_by_name() {
    let counters = vec![("lanes".to_owned(), 4), ("banks".to_owned(), 6)];
    let device = Device { counters, ..Device::plain("A", 0) };
    let mut world = World::nodes(vec![gpus("plain", 1), node("n", vec![device])]);
    let some = |lanes: i64, banks: i64| DeviceRequest::Counters {
        amounts: vec![("banks".to_owned(), banks), ("lanes".to_owned(), lanes)],
    };
    let amount = |lanes, banks| DeviceAmount {
        mode: Mode::Counted,
        counters: vec![lanes, banks],
        ..Default::default()
    };
    assert_eq!(world.start(some(3, 1)), Some(vec![(0, amount(3, 1))]));
    assert_eq!(world.start(some(2, 1)), None, "one lane is left");
    assert_eq!(world.start(some(1, 5)), Some(vec![(0, amount(1, 5))]));
    let other = DeviceRequest::Counters { amounts: vec![("engines".to_owned(), 1)] };
    assert_eq!(world.start(other), None, "no device counts engines");
    assert_eq!(placed(&world.end(1)).len(), 1);
}

#[test]
fn spot_nodes_take_who_tolerates_them_and_go_with_all_they_held() {
    let mut spot = gpus("spot", 4);
    spot.interruption_ppm_per_hour = Some(50_000);
    spot.price_usd_micros_per_hour = Some(3_000_000);
    spot.taints.push(Taint {
        key: "spot".into(),
        value: String::new(),
        effect: TaintEffect::NoSchedule,
    });
    let mut steady = gpus("steady", 1);
    steady.price_usd_micros_per_hour = None;
    let mut world = World::nodes(vec![spot, steady]);
    let toleration = Toleration { key: "spot".into(), any_value: true, ..Default::default() };
    let tolerant = || Requirement { tolerations: vec![toleration.clone()], ..asks(whole(2)) };
    assert_eq!(placed(&world.submit(|_| {}, tolerant()))[0].1, "spot");
    assert_eq!(placed(&world.submit(|_| {}, asks(whole(1))))[0].1, "steady");
    assert_eq!(world.start(whole(1)), None, "the other one is not tolerated");
    let gang = |job: &mut Job| {
        job.pod_sets[0] = PodSet::fixed("w", Arc::new(tolerant()), 1);
    };
    assert_eq!(placed(&world.submit(gang, tolerant())).len(), 1);
    let lost = world.step(Event::NodeRemoved { node: "spot".into() });
    let expected = [1, 4].map(|job| Action::Lost { job: JobId(job) });
    assert_eq!(lost.actions, expected);
}

#[test]
fn elastic_jobs_take_what_there_is_within_quota() {
    let snapshot = Snapshot {
        nodes: vec![gpus("a", 2), gpus("b", 3)],
        queues: vec![queue("team", Some("all"), None), queue("all", None, Some(4000))],
        ..Snapshot::default()
    };
    let mut world = World::of(&snapshot);
    let elastic = |queue: &'static str| {
        move |job: &mut Job| {
            job.queue = queue.to_owned();
            job.pod_sets[0].min = 2;
            job.pod_sets[0].max = 9;
        }
    };
    let plan = world.submit(elastic("team"), asks(whole(1)));
    assert_eq!(placed(&plan).len(), 4, "five would fit, four are within the limit");
    let waits = world.submit(elastic(""), asks(whole(1)));
    let reason = PendingReason::Unschedulable;
    assert_eq!(
        waits.actions,
        [Action::Wait { job: JobId(2), reason }],
        "one is free, two are asked"
    );
    let waits = world.submit(|job| job.queue = "team".into(), asks(whole(1)));
    let reason = PendingReason::WaitingForQuota;
    assert_eq!(waits.actions, [Action::Wait { job: JobId(3), reason }]);
    let freed = world.end(1);
    assert_eq!(placed(&freed).len(), 5, "the elder takes all five");
}

#[test]
fn views_show_the_world_after_someone_has_gone() {
    let mut world = World::nodes(vec![gpus("a", 4), gpus("b", 4)]);
    let estimate = |p50_ms| {
        move |job: &mut Job| {
            let source = EstimateSource::User;
            job.estimate = Some(Estimate { p50_ms, p90_ms: 2 * p50_ms, source });
        }
    };
    // Best fit fills a node before the next: a takes 3 + 1, b takes 3.
    assert_eq!(placed(&world.submit(estimate(100), asks(whole(3))))[0].1, "a");
    assert_eq!(placed(&world.submit(estimate(50), asks(whole(3))))[0].1, "b");
    assert_eq!(placed(&world.submit(|_| {}, asks(whole(1)))).len(), 1);
    let mut gang = Job::single(JobId(99), "gang", 0, Arc::new(asks(whole(2))));
    gang.pod_sets[0] = PodSet::fixed("w", Arc::new(asks(whole(2))), 2);
    assert_eq!(world.would_go(&gang, &View::Now), None);
    let b_b = Some(vec!["b".to_owned(), "b".to_owned()]);
    // Defragmentation: without the job on b (and the one-GPU job, wherever it is) b takes the gang.
    let snapshot = world.engines[0].snapshot();
    let on_b = snapshot.holdings.iter().filter(|holding| &*holding.node == "b");
    let victims: Vec<HoldingId> = on_b.map(|holding| holding.id).collect();
    assert_eq!(world.would_go(&gang, &View::Without(victims.clone())), b_b);
    assert_eq!(world.would_go(&gang, &View::Without(vec![])), None);
    assert_eq!(world.would_go(&gang, &View::Without(vec![HoldingId(77)])), None);
    // Time: b's job is expected to end at 50, a's at 100.
    let at = |time_ms| View::At { time_ms };
    assert_eq!(world.would_go(&gang, &at(49)), None);
    let mut three = gang.clone();
    three.pod_sets[0] = PodSet::fixed("w", Arc::new(asks(whole(3))), 2);
    assert_eq!(world.would_go(&three, &at(50)), None);
    assert!(world.would_go(&three, &at(100)).is_some());
    assert!(world.would_go(&gang, &at(50)).is_some());
    // Releasing counts for the view only, until it is over.
    world.now_ms = 10;
    world.step(Event::Ending { job: JobId(2), expected_end_ms: Some(20) });
    assert_eq!(world.would_go(&gang, &View::Now), None);
    assert!(world.would_go(&gang, &View::AfterReleasing).is_some());
    world.now_ms = 20;
    world.step(Event::Tick);
    assert_eq!(world.would_go(&gang, &View::AfterReleasing), None, "it is late");
    assert_eq!(world.would_go(&gang, &at(20)), None, "what is late may stay");
    assert_eq!(world.would_go(&gang, &at(19)), None);
    let waits = world.submit(|job| job.pod_sets = gang.pod_sets.clone(), asks(whole(2)));
    assert_eq!(placed(&waits), []);
    world.now_ms = 22;
    assert_eq!(placed(&world.end(2)).len(), 2);
}

#[test]
fn which_model_was_met_first_decides_nothing() {
    let device = |model: &str| Device::plain(model, 0);
    let nodes = vec![
        node("gone", vec![device("C")]),
        node("mixed", vec![device("A"), device("C")]),
        node("alike", vec![device("A"), device("A")]),
    ];
    let mut policy = PolicySpec::named("fgd");
    policy.target_mix = vec![TargetPod {
        cpu_milli: 100,
        gpu_count: 1,
        gpu_milli: 1000,
        gpu_models: ["A".to_owned()].into(),
        weight: 1.0,
    }];
    let config = EngineConfig { policy, ..EngineConfig::default() };
    let snapshot = Snapshot { nodes, ..Snapshot::default() };
    let mut engine = Engine::new(config.clone(), &snapshot).expect("a good world");
    engine.step(Event::NodeRemoved { node: "gone".into() }, 0).expect("it is there");
    let mut restarted = Engine::new(config, &engine.snapshot()).expect("its own snapshot");
    let job = Job::single(JobId(1), "one", 0, Arc::new(asks(whole(1))));
    let plan = engine.step(Event::Submitted(Box::new(job.clone())), 0).expect("a good job");
    assert_eq!(plan, restarted.step(Event::Submitted(Box::new(job)), 0).expect("a good job"));
    // Taking A of `mixed` would leave no A there.
    assert_eq!(placed(&plan)[0].1, "alike");
}

#[test]
fn reservations_keep_room_that_only_their_view_shows() {
    let kept = Holding {
        id: HoldingId(0),
        node: "a".into(),
        owner: Owner::Reservation,
        phase: HoldingPhase::Held { expected_end_ms: None },
        reservation: Some(ReservationId(3)),
        resources: Resources::pod(100, 0),
        devices: vec![(0, DeviceAmount::share(1000, 0)), (1, DeviceAmount::share(1000, 0))],
        counts_into: Default::default(),
        attachments: Default::default(),
    };
    let snapshot =
        Snapshot { nodes: vec![gpus("a", 2)], holdings: vec![kept], ..Snapshot::default() };
    let mut world = World::of(&snapshot);
    let job = Job::single(JobId(9), "two", 0, Arc::new(asks(whole(2))));
    assert_eq!(world.would_go(&job, &View::Now), None);
    let theirs = View::Holding(ReservationId(3));
    assert_eq!(world.would_go(&job, &theirs), Some(vec!["a".to_owned()]));
    assert_eq!(world.would_go(&job, &View::Holding(ReservationId(4))), None);
    assert_eq!(world.start(whole(2)), None);
    let ended = world.step(Event::ReservationEnded { reservation: ReservationId(3) });
    assert_eq!(placed(&ended).len(), 1);
}

#[test]
fn counted_devices_are_told_apart_by_number_only() {
    let mut counted = gpus("n", 3);
    counted.knowledge = Knowledge::Counted;
    counted.devices[2].island = 1;
    let mut world = World::nodes(vec![counted.clone()]);
    let together = |count| DeviceRequest::Whole { count, same_island: true };
    assert_eq!(world.start(together(2)), None, "the kubelet may choose over two islands");
    assert!(world.start(together(1)).is_some());
    // Others hold one more, on the device that the engine had in mind: two are left of three, then
    // one.
    let foreign = Holding {
        id: HoldingId(0),
        node: "n".into(),
        owner: Owner::Foreign("static".into()),
        phase: HoldingPhase::Held { expected_end_ms: None },
        reservation: None,
        resources: Resources::pod(0, 0),
        devices: vec![(0, DeviceAmount::share(1000, 0))],
        counts_into: Default::default(),
        attachments: Default::default(),
    };
    world.step(Event::ForeignHeld(Box::new(foreign)));
    assert_eq!(world.start(whole(2)), None);
    assert!(world.start(whole(1)).is_some());
    // A device is lost: three are held of two. No device is given out until two of them are free
    // again.
    counted.devices[2].healthy = false;
    world.step(Event::NodeChanged(Box::new(counted.clone())));
    assert!(world.start(DeviceRequest::None).is_some(), "it asks for none of what is short");
    assert_eq!(world.start(whole(1)), None);
    let healed = world.step(Event::ForeignReleased { name: "static".into() });
    assert_eq!(placed(&healed), []);
    counted.devices[2].healthy = true;
    let back = world.step(Event::NodeChanged(Box::new(counted)));
    assert_eq!(placed(&back).len(), 1);
}

#[test]
fn allocatable_of_zero_evicts_nobody() {
    let mut world = World::nodes(vec![gpus("n", 2)]);
    assert!(world.start(whole(1)).is_some());
    let mut gone = gpus("n", 2);
    gone.allocatable = Resources::default();
    assert_eq!(world.step(Event::NodeChanged(Box::new(gone))).actions, []);
    assert_eq!(world.start(whole(1)), None);
    let back = world.step(Event::NodeChanged(Box::new(gpus("n", 2))));
    assert_eq!(placed(&back).len(), 1);
}

#[test]
fn a_cordon_outlives_a_drain_window() {
    let window = dovetail_model::node::DrainWindow { from_ms: 10, to_ms: 20 };
    let drained = Node { drain_window: Some(window), ..gpus("n", 3) };
    let mut world = World::nodes(vec![drained]);
    assert!(world.start(whole(1)).is_some());
    world.now_ms = 10;
    assert_eq!(world.start(whole(1)), None, "the window is open");
    let told = |condition| Event::NodeCondition { node: "n".into(), condition };
    assert_eq!(
        placed(&world.step(told(NodeAvailability::Ready))),
        [],
        "ready, and still in its window"
    );
    world.step(told(NodeAvailability::Cordoned));
    world.now_ms = 20;
    assert_eq!(placed(&world.step(Event::Tick)), [], "the window is over, the cordon is not");
    assert_eq!(placed(&world.step(told(NodeAvailability::Ready))).len(), 1);
}

#[test]
fn a_set_with_a_level_of_its_own_spreads_where_one_domain_does_not_do() {
    let label = |name: &str, rack: &str| {
        let mut node = gpus(name, 2);
        node.labels.insert("rack".into(), rack.into());
        node
    };
    let level = dovetail_model::topology::Level { name: "rack".into(), label: "rack".into() };
    let snapshot = Snapshot {
        topology: dovetail_model::Topology { levels: vec![level] },
        nodes: vec![label("a", "1"), label("b", "2"), label("c", "2")],
        ..Snapshot::default()
    };
    let gang = |preferred: Option<&'static str>, required: Option<&'static str>, pods| {
        move |job: &mut Job| {
            job.pod_sets[0] = PodSet {
                topology: TopologyRequest {
                    required: required.map(str::to_owned),
                    preferred: preferred.map(str::to_owned),
                },
                ..PodSet::fixed("w", Arc::clone(&job.pod_sets[0].requirement), pods)
            };
        }
    };
    let mut world = World::of(&snapshot);
    assert_eq!(placed(&world.submit(gang(Some("rack"), None, 5), asks(whole(1)))).len(), 5);
    world.end(1);
    assert_eq!(placed(&world.submit(gang(None, Some("rack"), 5), asks(whole(1)))), []);
    let four = placed(&world.submit(gang(None, Some("rack"), 4), asks(whole(1))));
    assert!(four.len() == 4 && four.iter().all(|(_, node, _)| node != "a"), "{four:?}");
}
