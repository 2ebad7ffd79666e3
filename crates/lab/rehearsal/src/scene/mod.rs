//! What there is in a history, and what happens in it besides the scheduler: drawn from the seed
//! alone.

mod extras;

use dovetail_order::Turns;

use crate::dice::DrawSequence;
use crate::recipe::Extras;
use extras::LEARNED_STREAM;

/// A history before it is played.
#[derive(Clone, Debug)]
pub(crate) struct Scene {
    pub(crate) nodes: Vec<NodeSpec>,
    pub(crate) options: Options,
    pub(crate) queues: Vec<QueueSpec>,
    pub(crate) steps: Vec<SceneEvent>,
    /// Nothing goes wrong, and between two steps everything comes to rest.
    pub(crate) is_slow: bool,
    /// From then on nothing goes wrong any more.
    pub(crate) calm_ms: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeSpec {
    pub(crate) gpus: u64,
}

/// What a queue is given of GPUs.
#[derive(Clone, Debug)]
pub(crate) struct QueueSpec {
    pub(crate) name: String,
    pub(crate) parent: Option<String>,
    pub(crate) guaranteed: u64,
    pub(crate) limit: Option<u64>,
    pub(crate) borrows: bool,
}

/// How the scheduler and the world around it behave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    pub(crate) preempts: bool,
    /// No pod is evicted beyond what budgets allow.
    pub(crate) respects_budgets: bool,
    /// Weights of order `dovetail`; `None`: jobs start as they were submitted, or behind.
    pub(crate) turns: Option<Turns>,
    /// How many jobs have a reservation at a time.
    pub(crate) heads: u32,
    /// What is learned outlives the process.
    pub(crate) keeps_learned: bool,
    /// How many of a thousand requests go wrong.
    pub(crate) faults: u64,
    /// Usual and greatest delay of a message.
    pub(crate) delay_ms: (u64, u64),
    /// Binds on their way at once.
    pub(crate) binds: usize,
    /// Changes of a kind that the server remembers.
    pub(crate) history: usize,
    /// From admission to Running, and from deletion to the end.
    pub(crate) start_ms: u64,
    pub(crate) terminate_ms: u64,
    pub(crate) complete_within_ms: u64,
    pub(crate) keep_for_ms: u64,
    /// Speed of the two candidates' own clocks, in thousandths.
    pub(crate) rates: [u64; 2],
}

/// Something that happens.
#[derive(Clone, Debug)]
pub(crate) struct SceneEvent {
    pub(crate) at_ms: u64,
    pub(crate) what: What,
}

#[derive(Clone, Debug)]
pub(crate) enum What {
    /// An owner makes pods, and makes anew what it loses.
    Submit(SceneWorkload),
    /// An owner and its pods go.
    Withdraw { workload: String },
    /// A user deletes a pod.
    DeletePod { workload: String, at: u64 },
    /// A node goes, and comes back.
    NodeGone { node: usize, for_ms: u64 },
    /// A node takes no new pods for a while.
    Cordon { node: usize, for_ms: u64 },
    /// Another scheduler binds a pod of its own where it sees room.
    Foreign { gpus: u64, node: usize },
    /// A candidate dies, and another one is started in its place.
    Kill { slot: usize, for_ms: u64 },
    /// A candidate does nothing for a while.
    Freeze { slot: usize, for_ms: u64 },
    /// The wall clock of a candidate is set.
    Jump { slot: usize, by_ms: i64 },
    /// Watches of a kind end, and must list again.
    Relist { is_of_pods: bool },
    /// The server does not let the pods of a workload be deleted by the scheduler.
    Refuse { workload: String, for_ms: u64, code: u16 },
    /// A queue is given something else.
    Quota(QueueSpec),
}

/// Pods that belong together.
#[derive(Clone, Debug)]
pub(crate) struct SceneWorkload {
    pub(crate) name: String,
    pub(crate) pods: u64,
    /// Smallest size of a gang; 0: each pod starts by itself.
    pub(crate) min: u64,
    /// The gang is a PodGroup; else labels say so.
    pub(crate) is_native: bool,
    pub(crate) gpus: u64,
    pub(crate) priority: i64,
    /// After so long pods end by themselves.
    pub(crate) run_ms: Option<u64>,
    /// How long they run, as their owner says.
    pub(crate) says_ms: Option<u64>,
    /// What is made anew has the old name.
    pub(crate) keeps_names: bool,
    /// How long its pods may take to stop.
    pub(crate) grace_s: u64,
    /// The queue that its pods name.
    pub(crate) queue: Option<String>,
    /// How many of its pods its disruption budget wants to run; `None`: it has none.
    pub(crate) available: Option<u64>,
}

/// Steps begin within this time.
const SCENE_MS: u64 = 20_000;

impl Scene {
    /// What follows from a seed.
    pub(crate) fn of(seed: u64, extras: Extras) -> Self {
        let mut row = DrawSequence::new(seed);
        let nodes: Vec<NodeSpec> =
            (0..row.between(2, 5)).map(|_| NodeSpec { gpus: row.of(&[2, 4, 8, 8]) }).collect();
        let options = options(&mut row);
        let mut steps = Vec::new();
        for at in 0..row.between(2, 7) {
            let at_ms = if row.once_in(2) { 0 } else { row.below(SCENE_MS) };
            let workload = workload(&mut row, at);
            steps.push(SceneEvent { at_ms, what: What::Submit(workload) });
        }
        let names: Vec<String> = steps.iter().filter_map(SceneEvent::submits).collect();
        for _ in 0..row.below(9) {
            let at_ms = row.below(SCENE_MS);
            let what = trouble(&mut row, &names, nodes.len());
            steps.push(SceneEvent { at_ms, what });
        }
        steps.sort_by_key(|step| step.at_ms);
        let (queues, is_slow, calm_ms) = (Vec::new(), false, SCENE_MS);
        let mut scene = Self { nodes, options, queues, steps, is_slow, calm_ms };
        if extras != Extras::None {
            scene.add_extras(seed);
        }
        if extras == Extras::All {
            scene.add_order(seed);
            scene.options.keeps_learned = DrawSequence::new(seed ^ LEARNED_STREAM).once_in(4);
        }
        let ends = scene.steps.iter().map(|step| step.at_ms + step.lasts_ms());
        scene.calm_ms = ends.max().unwrap_or_default().max(SCENE_MS);
        scene
    }
}

impl Scene {
    /// Whether one of these steps may take a pod from its gang while others of it go on.
    pub(crate) fn takes_pods(&self, steps: &[String]) -> bool {
        let named = self.steps.iter().enumerate();
        let mut happened = named.filter(|(at, _)| steps.contains(&format!("step {at}")));
        happened.any(|(_, step)| {
            matches!(
                step.what,
                What::DeletePod { .. } | What::NodeGone { .. } | What::Foreign { .. }
            )
        })
    }
}

impl SceneEvent {
    fn submits(&self) -> Option<String> {
        match &self.what {
            What::Submit(workload) => Some(workload.name.clone()),
            _ => None,
        }
    }

    /// For how long what it begins lasts.
    pub(crate) fn lasts_ms(&self) -> u64 {
        match self.what {
            What::NodeGone { for_ms, .. }
            | What::Cordon { for_ms, .. }
            | What::Kill { for_ms, .. }
            | What::Freeze { for_ms, .. }
            | What::Refuse { for_ms, .. } => for_ms,
            _ => 0,
        }
    }
}

fn options(row: &mut DrawSequence) -> Options {
    Options {
        preempts: row.once_in(2),
        respects_budgets: false,
        turns: None,
        heads: 0,
        keeps_learned: false,
        faults: row.of(&[0, 20, 100, 300]),
        delay_ms: row.of(&[(2, 10), (10, 100), (10, 1_500), (50, 4_500)]),
        binds: row.of(&[1, 2, 16]),
        history: row.of(&[8, 30, 10_000]),
        start_ms: row.of(&[0, 200, 2_000]),
        terminate_ms: row.of(&[0, 200, 3_000]),
        complete_within_ms: row.of(&[500, 3_000, 20_000]),
        keep_for_ms: row.of(&[500, 3_000]),
        rates: [row.between(992, 1_008), row.between(992, 1_008)],
    }
}

fn workload(row: &mut DrawSequence, at: u64) -> SceneWorkload {
    let is_gang = row.once_in(2);
    let pods = if is_gang { row.between(2, 5) } else { row.between(1, 4) };
    let min = match is_gang {
        false => 0,
        true if row.once_in(3) => row.between(2, pods),
        true => pods,
    };
    SceneWorkload {
        name: format!("w{at}"),
        pods,
        min,
        is_native: row.once_in(3),
        gpus: row.of(&[1, 1, 2, 2, 4, 8]),
        priority: row.of(&[0, 0, 5, 10]),
        run_ms: row.once_in(3).then(|| row.between(100, 10_000)),
        says_ms: None,
        keeps_names: row.once_in(2),
        grace_s: row.of(&[0, 2, 30]),
        queue: None,
        available: None,
    }
}

fn trouble(row: &mut DrawSequence, names: &[String], nodes: usize) -> What {
    let workload = names[row.below(names.len() as u64) as usize].clone();
    let node = row.below(nodes as u64) as usize;
    let slot = row.below(2) as usize;
    let for_ms = row.between(50, 15_000);
    match row.below(16) {
        0 => What::Withdraw { workload },
        1 | 2 => What::DeletePod { workload, at: row.below(5) },
        3 | 4 => What::NodeGone { node, for_ms },
        5 => What::Cordon { node, for_ms },
        6 | 7 => What::Foreign { gpus: row.of(&[1, 2, 4]), node },
        8 | 9 => What::Kill { slot, for_ms },
        10 | 11 => What::Freeze { slot, for_ms },
        12 => What::Jump { slot, by_ms: row.of(&[-5_000, -500, 700, 30_000]) },
        13 | 14 => What::Relist { is_of_pods: row.once_in(2) },
        _ => What::Refuse { workload, for_ms, code: row.of(&[403, 422, 429, 500]) },
    }
}
