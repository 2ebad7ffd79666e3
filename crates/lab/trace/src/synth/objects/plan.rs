//! Who runs where: nodes, owners and pods as numbers, before any of them is written.

use super::ObjectsConfig;
use super::PODS_PER_NODE;
use super::pools::{GENERAL, NodePool, POOLS, SERVE, SHARED, SLICES, SMALL, SPOT, TRAIN, sizes};
use super::work::{Family, OwnedWork, Slip};
use crate::synth::random::{Purpose, Random};

/// Names of teams; larger clusters have several groups of each.
pub(super) const TEAMS: [&str; 8] =
    ["search", "ads", "vision", "speech", "research", "robotics", "platform", "forecast"];

/// Pods that a kubelet takes.
const PODS_OF_A_NODE: u32 = 110;

/// How much of a pool pods hold, in percent.
const HELD_PERCENT: u32 = 85;

#[derive(Debug)]
pub(super) struct PlannedNode {
    pub(super) pool: &'static NodePool,
    pub(super) place: usize,
    pub(super) state: NodeState,
}

impl PlannedNode {
    pub(super) fn name(&self, number: usize) -> String {
        format!("ip-10-{}-{}-{}.ec2.internal", self.place, number / 250, number % 250)
    }
}

/// What is special about a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NodeState {
    Fine,
    /// Cordoned nine hours ago.
    Cordoned,
    NotReady,
    /// One of its GPUs is broken.
    Broken,
    /// An annotation keeps it from being removed.
    Kept,
}

/// A pod: its owner, and the node it is on.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlannedPod {
    pub(super) work: u32,
    pub(super) ordinal: u32,
    pub(super) node: Option<u32>,
}

pub(super) struct ClusterPlan {
    pub(super) seed: u64,
    pub(super) nodes: Vec<PlannedNode>,
    pub(super) work: Vec<OwnedWork>,
    pub(super) pods: Vec<PlannedPod>,
    /// Number of namespaces of teams.
    pub(super) teams: usize,
}

impl ClusterPlan {
    pub(super) fn new(config: &ObjectsConfig) -> Self {
        let mut planner = Planner::new(config);
        planner.agents();
        for place in [TRAIN, SPOT] {
            planner.fill(place, &[Family::Train]);
        }
        planner.notebooks_on_whole_gpus();
        planner.fill(SERVE, &[Family::Serve]);
        planner.fill(SMALL, &[Family::Serve, Family::Batch, Family::Serve, Family::Bare]);
        planner.fill(SLICES, &[Family::Notebook]);
        planner.fill(SHARED, &[Family::Notebook, Family::Batch]);
        planner.waiting();
        planner.others();
        planner.plan
    }

    /// The name of a namespace by its place; behind the teams are two of the system.
    pub(super) fn namespace(&self, place: usize) -> String {
        match place.checked_sub(self.teams) {
            None if place < TEAMS.len() => TEAMS[place].to_owned(),
            None => format!("{}-{}", TEAMS[place % TEAMS.len()], place / TEAMS.len() + 1),
            Some(0) => "kube-system".to_owned(),
            Some(_) => "monitoring".to_owned(),
        }
    }

    pub(super) fn node_of(&self, pod: &PlannedPod) -> Option<&PlannedNode> {
        Some(&self.nodes[pod.node? as usize])
    }
}

/// What a node can still take.
#[derive(Debug, Clone, Copy)]
struct RemainingCapacity {
    cpu_milli: u32,
    memory_mib: u32,
    units: u32,
    pods: u32,
}

struct Planner {
    plan: ClusterPlan,
    random: Random,
    rooms: Vec<RemainingCapacity>,
    /// Nodes of each pool: from, to, and where the last pod went.
    pools: [(u32, u32, u32); 7],
    /// Owners of each family so far.
    made: std::collections::BTreeMap<Family, usize>,
}

impl Planner {
    fn new(config: &ObjectsConfig) -> Self {
        let mut plan = ClusterPlan {
            seed: config.seed,
            nodes: Vec::new(),
            work: Vec::new(),
            pods: Vec::new(),
            teams: TEAMS.len() * (1 + config.nodes as usize / 500),
        };
        let mut pools = [(0, 0, 0); 7];
        let mut rooms = Vec::new();
        for (place, size) in sizes(config.nodes).into_iter().enumerate() {
            let (pool, from) = (&POOLS[place], plan.nodes.len() as u32);
            for index in 0..size {
                let state = state(place, index, size);
                plan.nodes.push(PlannedNode { pool, place, state });
                let is_up = state != NodeState::NotReady;
                rooms.push(RemainingCapacity {
                    cpu_milli: pool.cpu_milli,
                    memory_mib: pool.memory_mib,
                    units: pool.units - u32::from(state == NodeState::Broken),
                    pods: if is_up { PODS_OF_A_NODE } else { 0 },
                });
            }
            pools[place] = (from, from + size, from);
        }
        let random = Random::new(config.seed, Purpose::Objects);
        Self { plan, random, rooms, pools, made: Default::default() }
    }

    /// What runs on every node, or on every node with GPUs.
    fn agents(&mut self) {
        let system = self.plan.teams;
        let nodes = self.plan.nodes.len() as u32;
        for (name, namespace, cpu_milli) in [
            ("aws-node", system, 50),
            ("kube-proxy", system, 100),
            ("node-exporter", system + 1, 50),
        ] {
            self.agent(name, namespace, cpu_milli, (0..nodes).collect());
        }
        let has_gpus = |node: &PlannedNode| node.pool.gpus > 0;
        let is_measured = |node: &PlannedNode| node.pool.is_measured;
        let on = |plan: &ClusterPlan, which: &dyn Fn(&PlannedNode) -> bool| -> Vec<u32> {
            (0..nodes).filter(|node| which(&plan.nodes[*node as usize])).collect()
        };
        let (with_gpus, measured) = (on(&self.plan, &has_gpus), on(&self.plan, &is_measured));
        self.agent("nvidia-device-plugin", system, 50, with_gpus);
        self.agent("dcgm-exporter", system + 1, 100, measured);
    }

    fn agent(&mut self, name: &str, namespace: usize, cpu_milli: u32, nodes: Vec<u32>) {
        let number = self.plan.work.len() as u32;
        self.plan.work.push(OwnedWork {
            family: Family::Agent,
            slip: None,
            name: name.to_owned(),
            namespace,
            pool: GENERAL,
            units: 0,
            cpu_milli,
            memory_mib: 200,
            first_pod: self.plan.pods.len() as u32,
            pods: nodes.len() as u32,
            age_minutes: 60 * 24 * 90,
        });
        for (ordinal, node) in nodes.into_iter().enumerate() {
            let room = &mut self.rooms[node as usize];
            room.cpu_milli = room.cpu_milli.saturating_sub(cpu_milli);
            room.memory_mib = room.memory_mib.saturating_sub(200);
            room.pods = room.pods.saturating_sub(1);
            let pod = PlannedPod { work: number, ordinal: ordinal as u32, node: Some(node) };
            self.plan.pods.push(pod);
        }
    }

    /// Work for a pool until so much of it is held, families in turn.
    fn fill(&mut self, place: usize, families: &[Family]) {
        let pool = &POOLS[place];
        let nodes = self.pools[place].1 - self.pools[place].0;
        let wanted = (nodes * pool.units * HELD_PERCENT / 100).max(1);
        let mut held = 0;
        for turn in 0.. {
            if held >= wanted {
                break;
            }
            let family = families[turn % families.len()];
            let (mut units, pods) = self.size(place, family, wanted - held);
            if self.next_slip(family) == Some(Slip::SmallLoad) {
                units = 1;
            }
            let work = self.work(family, place, units);
            held += units * pods.max(1);
            self.start(work, pods);
        }
    }

    /// Units of a pod and number of pods of the next owner.
    fn size(&mut self, place: usize, family: Family, left: u32) -> (u32, u32) {
        let pool = &POOLS[place];
        let draw = |random: &mut Random, sizes: &[u32]| -> u32 {
            *random.weighted(sizes, |size| 1.0 / f64::from(*size))
        };
        let (units, pods) = match (family, place) {
            (Family::Train, _) => {
                let units = if self.random.chance(0.2) { 4 } else { 8 };
                (units, draw(&mut self.random, &[1, 2, 4, 8, 16]))
            }
            (Family::Serve, SERVE) => {
                (draw(&mut self.random, &[1, 2, 4]), draw(&mut self.random, &[1, 2, 3, 4]))
            }
            (Family::Serve, _) => (1, draw(&mut self.random, &[1, 2, 3, 6])),
            (Family::Batch, _) => (1, draw(&mut self.random, &[1, 2, 4, 8])),
            // Notebooks on slices take two, so that a dump has not more notebooks than all else.
            (Family::Notebook, SLICES) => (2, 1),
            _ => (1, 1),
        };
        // In a small cluster no owner has all of a pool.
        let most = self.pools[place].1 - self.pools[place].0;
        let most = (most * pool.units / 4 / units).max(1);
        (units.min(pool.units), pods.min(left.div_ceil(units)).min(most).max(1))
    }

    /// The slip that the next owner of a family has.
    fn next_slip(&self, family: Family) -> Option<Slip> {
        let slips = family.slips();
        slips[self.made.get(&family).copied().unwrap_or(0) % slips.len()]
    }

    /// The next owner of a family, without pods.
    fn work(&mut self, family: Family, place: usize, units: u32) -> OwnedWork {
        let next = self.next_slip(family);
        let made = self.made.entry(family).or_default();
        let number = *made;
        *made += 1;
        let slip = match next {
            _ if family == Family::Train && place == SPOT => Some(Slip::SavesNothing),
            slip => slip,
        };
        let pool = &POOLS[place];
        // Two thirds of the node's share for each unit.
        let share = |all: u32| (all / pool.units.max(1) * 2 / 3 * units).max(500);
        let (mut cpu_milli, mut memory_mib) = match units {
            0 => (500, 1_024),
            _ => (share(pool.cpu_milli) / 250 * 250, share(pool.memory_mib) / 1_024 * 1_024),
        };
        if slip == Some(Slip::TooMuchCpu) {
            cpu_milli *= 2;
        }
        memory_mib = memory_mib.max(512);
        // Half are younger than a day, and none older than a month.
        let hours = (30.0 * self.random.exponential()).min(700.0);
        OwnedWork {
            family,
            slip,
            name: name(family, number),
            namespace: number % self.plan.teams,
            pool: place,
            units,
            cpu_milli,
            memory_mib,
            first_pod: 0,
            pods: 0,
            age_minutes: 26 * 60 + (hours * 60.0) as u64,
        }
    }

    /// Starts the pods of an owner, as many as find a node; one that finds none waits with its
    /// first.
    fn start(&mut self, mut work: OwnedWork, pods: u32) {
        work.first_pod = self.plan.pods.len() as u32;
        let least = match work.slip {
            Some(Slip::KilledForMemory) => 4,
            Some(Slip::NoGang | Slip::BudgetBlocks | Slip::OnePerNode) => 2,
            _ => 1,
        };
        if work.has(Slip::SlowStart) {
            work.age_minutes = 25;
        }
        let number = self.plan.work.len() as u32;
        for ordinal in 0..pods.max(least) {
            let node = self.find(&work);
            if node.is_some() || ordinal == 0 {
                self.plan.pods.push(PlannedPod { work: number, ordinal, node });
            }
            if node.is_none() {
                break;
            }
        }
        work.pods = self.plan.pods.len() as u32 - work.first_pod;
        self.plan.work.push(work);
    }

    /// The next node of the pool with room, as a scheduler that spreads would choose it.
    fn find(&mut self, work: &OwnedWork) -> Option<u32> {
        let (from, to, last) = self.pools[work.pool];
        let after = (last + 1..to).chain(from..=last);
        for node in after.filter(|node| (from..to).contains(node)) {
            let room = &mut self.rooms[node as usize];
            let fits = room.pods > 0
                && room.units >= work.units
                && room.cpu_milli >= work.cpu_milli
                && room.memory_mib >= work.memory_mib;
            // What was cordoned took half of its GPUs before.
            let is_full = self.plan.nodes[node as usize].state == NodeState::Cordoned
                && room.units * 2 <= POOLS[work.pool].units;
            if fits && !is_full {
                room.pods -= 1;
                room.units -= work.units;
                room.cpu_milli -= work.cpu_milli;
                room.memory_mib -= work.memory_mib;
                self.pools[work.pool].2 = node;
                return Some(node);
            }
        }
        None
    }

    /// Notebooks that hold a whole large GPU.
    fn notebooks_on_whole_gpus(&mut self) {
        let (from, to, _) = self.pools[SERVE];
        for _ in 0..((to - from) / 4).max(1) {
            let work = self.work(Family::Notebook, SERVE, 1);
            self.start(work, 1);
        }
    }

    /// Pods that wait, for reasons that are not the same.
    fn waiting(&mut self) {
        // More than what is left of the pool.
        let gang = (self.pools[TRAIN].1 - self.pools[TRAIN].0) / 4 + 2;
        for _ in 0..(self.plan.nodes.len() / 200).max(1) {
            for (slip, place, units, pods) in [
                (Some(Slip::TooLarge), TRAIN, 16, 1),
                (Some(Slip::NoToleration), SLICES, 1, 2),
                (Some(Slip::InPieces), SERVE, 8, 1),
                (None, TRAIN, 8, gang),
            ] {
                let family = if place == SLICES { Family::Batch } else { Family::Train };
                let mut work = self.work(family, place, units.min(POOLS[place].units));
                (work.slip, work.units, work.age_minutes) = (slip, units, 90);
                (work.first_pod, work.pods) = (self.plan.pods.len() as u32, pods);
                let number = self.plan.work.len() as u32;
                let pod = |ordinal| PlannedPod { work: number, ordinal, node: None };
                self.plan.pods.extend((0..pods).map(pod));
                self.plan.work.push(work);
            }
        }
    }

    /// Work without GPUs, until there are as many pods as there should be.
    fn others(&mut self) {
        let wanted = self.plan.nodes.len() as u32 * PODS_PER_NODE;
        for turn in 0.. {
            let left = wanted.saturating_sub(self.plan.pods.len() as u32);
            if left == 0 {
                break;
            }
            let family = if turn % 6 == 5 { Family::Store } else { Family::Web };
            let pods = match family {
                Family::Store => 3,
                _ => *self.random.weighted(&[2, 3, 5, 10, 20, 40], |pods| 1.0 / f64::from(*pods)),
            };
            let mut work = self.work(family, GENERAL, 0);
            if work.has(Slip::BesideGpus) {
                work.pool = SMALL;
            }
            self.start(work, pods.min(left));
        }
    }
}

/// One node in forty has something, and in a small pool the first of it.
fn state(place: usize, index: u32, size: u32) -> NodeState {
    let special = match place {
        TRAIN => NodeState::NotReady,
        SERVE => NodeState::Cordoned,
        SMALL => NodeState::Broken,
        SPOT => NodeState::Kept,
        _ => NodeState::Fine,
    };
    // A pool of one or two nodes keeps them.
    let is_special = index % 40 == 1 % size && (size > 2 || place == SPOT);
    if is_special { special } else { NodeState::Fine }
}

fn name(family: Family, number: usize) -> String {
    const MODELS: [&str; 6] = ["ranker", "embedder", "chat", "vision", "speech", "planner"];
    const SERVICES: [&str; 6] = ["gateway", "billing", "catalogue", "profile", "mail", "session"];
    let of = |names: [&'static str; 6]| names[number % 6];
    match family {
        Family::Train => format!("train-{}-{}", of(MODELS), number / 6 + 1),
        Family::Serve => format!("serve-{}-{}", of(MODELS), number / 6 + 1),
        Family::Batch => format!("score-{}-{}", of(MODELS), number / 6 + 1),
        Family::Notebook => format!("notebook-{}", number + 1),
        Family::Bare => format!("debug-{}", number + 1),
        Family::Web => format!("{}-{}", of(SERVICES), number / 6 + 1),
        Family::Store => format!("store-{}", number + 1),
        Family::Agent => format!("agent-{}", number + 1),
    }
}
