//! The index against one built anew from the last objects, and against the judge.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_cases::cases;
use dovetail_check::Judge;
use dovetail_cluster::queues::shown_name;
use dovetail_cluster::world::{Change, Settings, World};
use dovetail_model::{
    Action, Event, Holding, HoldingPhase, Job, JobId, NodeName, Owner, PodId, Queue, QueueName,
    Snapshot,
};
use dovetail_objects::Kind;
use dovetail_plan::engine::EngineConfig;
use dovetail_plan::{Batch, Engine};
use proptest::prelude::*;
use serde_json::json;

use crate::history::{Choices, bind, happen};
use crate::server::Server;

/// After everything that histories create.
const START_MS: u64 = 1_900_000_000_000;

/// A scheduler in miniature: index, engine and judge, and binds under way.
struct Scheduler {
    world: World,
    engine: Engine,
    judge: Judge,
    in_flight: Vec<(PodId, NodeName)>,
    now_ms: u64,
    binds: usize,
    gangs: usize,
}

impl Scheduler {
    /// From the first lists, each kind's in its turn.
    fn start(server: &mut Server) -> Self {
        let mut world = World::new(Settings::default());
        world.pass(START_MS);
        for kind in Kind::ALL {
            assert!(!world.is_ready(), "before the list of {kind:?}");
            for change in server.list(kind) {
                assert_eq!(world.apply(change), [], "told before every kind is listed");
            }
        }
        assert!(world.is_ready());
        let snapshot = world.snapshot(START_MS);
        let engine = Engine::new(EngineConfig::default(), &snapshot).unwrap();
        let judge = Judge::new(&snapshot);
        assert_eq!(judge.recheck_all(), []);
        Self { world, engine, judge, in_flight: Vec::new(), now_ms: START_MS, binds: 0, gangs: 0 }
    }

    fn take(&mut self, change: Change) {
        self.now_ms += 1;
        let events = self.world.pass(self.now_ms);
        self.tell(events);
        let events = self.world.apply(change);
        self.tell(events);
    }

    /// Time passes.
    fn pass(&mut self, ms: u64) {
        self.now_ms += ms;
        let events = self.world.pass(self.now_ms);
        self.tell(events);
    }

    /// Tells the engine and the judge; nothing is decided.
    fn tell(&mut self, events: Vec<Event>) {
        for event in events {
            self.now_ms += 1;
            self.judge.event(&event, self.now_ms);
            let text = format!("{event:?}");
            let plan = self.engine.step(Batch::pending(event), self.now_ms);
            let plan = plan.unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(self.judge.plan(&plan), [], "{text}");
        }
    }

    fn decide(&mut self) {
        let plan = self.engine.step(Batch::decision(), self.now_ms).expect("a decision");
        assert_eq!(self.judge.plan(&plan), []);
        let mut jobs: BTreeMap<JobId, Vec<(PodId, NodeName)>> = BTreeMap::new();
        for action in plan.actions {
            if let Action::Bind { pod, node, .. } = action {
                jobs.entry(pod.job).or_default().push((pod, node));
            }
        }
        self.gangs += jobs.values().filter(|binds| binds.len() > 1).count();
        let binds: Vec<(PodId, NodeName)> = jobs.into_values().flatten().collect();
        self.binds += binds.len();
        let events = self.world.assumed(&binds, |_| 0);
        self.tell(events);
        self.in_flight.extend(binds);
    }

    /// One bind reaches the server, or is lost on the way.
    fn carry_out(&mut self, server: &mut Server, choose: &mut Choices) {
        if self.in_flight.is_empty() {
            return;
        }
        let (pod, node) = self.in_flight.swap_remove(choose.below(self.in_flight.len()));
        let Some(object) = self.world.pods().pod_of(pod) else { return };
        let meta = object.meta.clone();
        let lost = choose.once_in(5);
        if lost || !bind(server, &meta.namespace, &meta.name, &meta.uid, &node) {
            let events = self.world.bind_failed(&[pod]);
            self.tell(events);
        }
    }
}

/// What two engines can agree in: names instead of numbers, no device numbers, and of jobs that run
/// only what their pods hold, whatever job these belong to.
#[derive(Debug)]
struct Comparable {
    nodes: BTreeMap<NodeName, dovetail_model::Node>,
    jobs: BTreeMap<String, Job>,
    holdings: BTreeMap<String, Holding>,
    /// Those that are there. What is known of one that was deleted depends on who saw it.
    queues: BTreeMap<QueueName, Queue>,
    /// The queue that each pod that holds something is counted for.
    counted: BTreeMap<String, QueueName>,
}

impl Comparable {
    fn of(snapshot: &Snapshot, world: &World) -> Self {
        let mut jobs = BTreeMap::new();
        for job in &snapshot.jobs {
            if job.start_ms.is_some() {
                continue;
            }
            let mut job = job.clone();
            job.id = JobId(0);
            // Whether it replaces another, its identity says; before it runs nobody stops it.
            job.preemption.is_protected = false;
            assert!(jobs.insert(job.name.clone(), job).is_none(), "two jobs of one name");
        }
        let queue_of: BTreeMap<JobId, &QueueName> =
            snapshot.jobs.iter().map(|job| (job.id, &job.queue)).collect();
        let (mut holdings, mut counted) = (BTreeMap::new(), BTreeMap::new());
        for holding in &snapshot.holdings {
            let mut holding = holding.clone();
            let holder = match &holding.owner {
                Owner::Pod(pod) => {
                    let meta = &world.pods().pod_of(*pod).expect("a pod that holds something").meta;
                    let name = format!("{}/{}", meta.namespace, meta.name);
                    counted.insert(name.clone(), queue_of[&pod.job].clone());
                    name
                }
                Owner::Foreign(name) => format!("foreign {name}"),
                Owner::Reservation => "reservation".to_owned(),
            };
            // By when who stops is to have gone counts from when an engine first hears of it.
            if matches!(holding.phase, HoldingPhase::Releasing { .. }) {
                holding.phase = HoldingPhase::Releasing { expected_end_ms: None };
            }
            holding.id = dovetail_model::HoldingId(0);
            holding.owner = Owner::Reservation;
            holding.devices.iter_mut().for_each(|(index, _)| *index = 0);
            holding.resources.extended.retain(|_, amount| *amount != 0);
            assert!(holdings.insert(holder, holding).is_none(), "one holder holds twice");
        }
        let nodes = snapshot.nodes.iter().map(|node| (node.name.clone(), node.clone())).collect();
        let told: BTreeSet<&str> = snapshot.queues.iter().map(|queue| &*queue.name).collect();
        let is_told = |queue: &QueueName| matches!(&**queue, "" | "/") || told.contains(&**queue);
        assert!(counted.values().all(is_told), "{counted:?} count for more than {told:?}");
        let is_there = |queue: &&Queue| world.queues().get(shown_name(&queue.name)).is_some();
        let queues = snapshot.queues.iter().filter(is_there);
        let queues = queues.map(|queue| (queue.name.clone(), queue.clone())).collect();
        Self { nodes, jobs, holdings, queues, counted }
    }
}

impl Comparable {
    /// Says no more than what differs.
    fn is_that_of(&self, other: &Self, whose: &str) {
        fn same<K: Ord + std::fmt::Debug, V: PartialEq + std::fmt::Debug>(
            anew: &BTreeMap<K, V>,
            other: &BTreeMap<K, V>,
            whose: &str,
        ) {
            for key in anew.keys().chain(other.keys()) {
                let (anew, other) = (anew.get(key), other.get(key));
                assert!(anew == other, "{key:?}: {whose} has\n{other:?}\ninstead of\n{anew:?}");
            }
        }
        same(&self.nodes, &other.nodes, whose);
        same(&self.jobs, &other.jobs, whose);
        same(&self.holdings, &other.holdings, whose);
        same(&self.queues, &other.queues, whose);
        same(&self.counted, &other.counted, whose);
    }
}

/// How often what the histories are to contain happened.
#[derive(Debug, Default)]
struct Seen {
    binds: usize,
    waiting: usize,
    refused: usize,
    running: usize,
    foreign: usize,
    /// Gangs of two or more pods, started at once.
    gangs: usize,
    /// Pods that run in a queue other than the default one.
    in_queues: usize,
}

fn follow(seed: u64, steps: usize) -> Seen {
    let choose = &mut Choices(seed);
    let mut server = Server::default();
    for _ in 0..20 {
        happen(&mut server, choose);
    }
    let mut scheduler = Scheduler::start(&mut server);
    for _ in 0..steps {
        match choose.below(10) {
            0..3 => happen(&mut server, choose),
            3..7 => {
                let kind = *choose.of(&Kind::ALL);
                let kind = if choose.once_in(2) { Kind::Pod } else { kind };
                if let Some(message) = server.next(kind) {
                    scheduler.take(message.change());
                    // What a watch delivers twice tells nothing.
                    assert_eq!(scheduler.world.apply(message.change()), []);
                }
            }
            7 => {
                if let Some(late) = server.again(choose.below(1 << 20)) {
                    scheduler.take(late.change());
                }
            }
            8 if choose.once_in(4) => {
                for change in server.list(*choose.of(&Kind::ALL)) {
                    scheduler.take(change);
                }
            }
            8 => scheduler.carry_out(&mut server, choose),
            _ => scheduler.decide(),
        }
    }
    while !scheduler.in_flight.is_empty() {
        scheduler.carry_out(&mut server, choose);
    }
    while server.has_news() {
        if let Some(message) = server.next(*choose.of(&Kind::ALL)) {
            scheduler.take(message.change());
        }
    }
    compare(&mut server, &mut scheduler)
}

fn compare(server: &mut Server, scheduler: &mut Scheduler) -> Seen {
    let mut fresh = Scheduler::start(server);
    // Gangs of which not all pods are there are given all the time they get.
    scheduler.pass(100_000);
    fresh.pass(100_000);
    let (followed, anew) = (scheduler.engine.snapshot(), fresh.engine.snapshot());
    let told = scheduler.world.snapshot(scheduler.now_ms);
    let anew = Comparable::of(&anew, &fresh.world);
    anew.is_that_of(&Comparable::of(&followed, &scheduler.world), "the engine");
    anew.is_that_of(&Comparable::of(&told, &scheduler.world), "what was told");
    assert_eq!(scheduler.judge.compare(&followed), []);
    assert_eq!(scheduler.judge.recheck_all(), []);
    let refused = |world: &World| -> Vec<(String, String)> {
        world
            .pods()
            .refused()
            .map(|(pod, why)| (pod.meta.name.to_string(), why.to_string()))
            .collect()
    };
    assert_eq!(refused(&scheduler.world), refused(&fresh.world));
    let assumed = followed.holdings.iter().filter(|h| h.phase == HoldingPhase::Assumed).count();
    assert_eq!(assumed, 0, "all binds are seen or failed");
    let running = followed.jobs.iter().filter(|job| job.start_ms.is_some()).count();
    Seen {
        binds: scheduler.binds,
        waiting: followed.jobs.len() - running,
        refused: refused(&fresh.world).len(),
        running,
        gangs: scheduler.gangs,
        foreign: followed.holdings.len() - running,
        in_queues: anew.counted.values().filter(|queue| !queue.is_empty()).count(),
    }
}

proptest! {
    #![proptest_config(cases(100))]

    #[test]
    fn the_engine_ends_where_one_made_from_the_last_objects_begins(
        seed in any::<u64>(),
        steps in 0usize..250,
    ) {
        follow(seed, steps);
    }
}

#[test]
fn the_histories_contain_what_they_are_for() {
    let mut all = Seen::default();
    for seed in 0..240 {
        let seen = follow(seed, 200);
        all.binds += seen.binds;
        all.waiting += seen.waiting;
        all.refused += seen.refused;
        all.running += seen.running;
        all.foreign += seen.foreign;
        all.gangs += seen.gangs;
        all.in_queues += seen.in_queues;
    }
    let each =
        [all.binds, all.waiting, all.refused, all.running, all.foreign, all.gangs, all.in_queues];
    let least = each.into_iter().min();
    assert!(least >= Some(30), "{all:?}");
}

/// A pod that is deleted and made again under its name, while its bind is under way.
#[test]
fn a_new_pod_of_the_same_name_is_another_pod() {
    let mut server = Server::default();
    let spec = json!({"spec": {"schedulerName": "dovetail"}});
    let status = json!({"allocatable": {"pods": "10"}});
    server.apply(Kind::Node, "", "n0", json!({"status": status}));
    server.apply(Kind::Pod, "blue", "p", spec.clone());
    let mut scheduler = Scheduler::start(&mut server);
    scheduler.decide();
    let (pod, node) = scheduler.in_flight[0].clone();
    let old = scheduler.world.pods().pod_of(pod).unwrap().meta.clone();
    server.delete(&(Kind::Pod, "blue".to_owned(), "p".to_owned()));
    server.apply(Kind::Pod, "blue", "p", spec);
    let gone = server.next(Kind::Pod).unwrap();
    scheduler.take(server.next(Kind::Pod).unwrap().change());
    scheduler.take(gone.change());
    assert!(!bind(&mut server, "blue", "p", &old.uid, &node), "the server compares identities");
    assert_eq!(scheduler.world.bind_failed(&[pod]), []);
    let job = scheduler.world.pods().job_of("blue", "p").unwrap();
    assert_ne!(job, pod.job);
    scheduler.decide();
    assert_eq!(scheduler.binds, 2);
}
