//! The regimes: every world in which policies are compared, with its name, family and recipe.
//!
//! docs/arena.md says the same in plain English.

use dovetail_plan::Order;
use dovetail_trace::synth::{PROFILES, SynthProfile};

use crate::arena::figures::{ALLOCATION, DELIVERED, GPU_WEIGHTED_WAIT};
use crate::arena::machines::Pool;
use crate::arena::recipe::{ArrivalRecipe, Recipe, TimedRecipe, Twist, Work};
use crate::arena::streams::Tide;
use crate::arena::transform::{Arrival, Transform};

/// Lists of openb pods, as their files are named.
pub const OPENB_LISTS: [&str; 14] = [
    "default",
    "cpu050",
    "cpu100",
    "cpu200",
    "cpu250",
    "gpushare40",
    "gpushare80",
    "gpushare100",
    "gpuspec10",
    "gpuspec20",
    "gpuspec33",
    "multigpu20",
    "multigpu40",
    "multigpu50",
];

const TRANSFORMS: [Transform; 9] = [
    Transform::CoresPerGpu(1),
    Transform::CoresPerGpu(2),
    Transform::CoresPerGpu(4),
    Transform::HalfCpu,
    Transform::NoCpu,
    Transform::NoMemory,
    Transform::MoreMemory,
    Transform::OneModel("P100"),
    Transform::FewerNodes,
];

const ADVERSARIAL: [Arrival; 4] = [
    Arrival::LargeLast,
    Arrival::CpuOnlyFirst,
    Arrival::SharesLast,
    Arrival::ManyGpusInTheLastFifth,
];

const SMALL_CLUSTERS: [usize; 3] = [5, 10, 20];
/// Small clusters differ much from draw to draw: each seed stands for so many.
const DRAWS_PER_SEED: u64 = 32;

const LOADS: [f64; 3] = [0.7, 0.9, 1.1];
/// Machines with the length of the stream in days: small clusters need longer ones for as many jobs.
const SIZES: [(u32, u32); 4] = [(10, 28), (50, 21), (300, 14), (1_200, 7)];
/// Machines and days of the regimes that are special in some other way.
const SPECIAL: (u32, u32) = (50, 21);

/// A kind of world in which policies are compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Regime {
    /// Its name, unique.
    pub name: String,
    /// Regimes that ask the same question.
    pub family: &'static str,
    /// How its worlds are made.
    pub recipe: Recipe,
    /// Whether it is in the quick subset.
    pub is_quick: bool,
}

/// What a regime is judged by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figure {
    /// Key of the figure of a run.
    pub key: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// Whether more is better.
    pub higher_is_better: bool,
}

impl Regime {
    /// What it is judged by: allocation where nothing ends, GPU-hours where there is more work than
    /// GPUs, else the GPU-weighted wait.
    pub fn figure(&self) -> Figure {
        match &self.recipe {
            Recipe::Arrivals(_) => {
                Figure { key: ALLOCATION, unit: "percent", higher_is_better: true }
            }
            Recipe::Timed(recipe) if recipe.load >= 1.0 => {
                Figure { key: DELIVERED, unit: "GPU-hours", higher_is_better: true }
            }
            Recipe::Timed(_) => {
                Figure { key: GPU_WEIGHTED_WAIT, unit: "hours", higher_is_better: false }
            }
        }
    }

    /// How many seeds of its own each seed that was asked for stands for.
    pub fn draws_per_seed(&self) -> u64 {
        match &self.recipe {
            Recipe::Arrivals(ArrivalRecipe { nodes: Some(_), .. }) => DRAWS_PER_SEED,
            _ => 1,
        }
    }

    /// How many orders of the machines are run, of those that were asked for: draws of small clusters
    /// vary more than orders do.
    pub fn orders(&self, asked: u64) -> u64 {
        if self.draws_per_seed() > 1 { 1 } else { asked }
    }
}

/// All regimes, those without outside data included.
pub fn regimes() -> Vec<Regime> {
    let mut all = arrivals();
    all.extend(profiles());
    all.extend(published());
    all.extend(changing());
    all.extend(special());
    all
}

fn arrivals() -> Vec<Regime> {
    let regime = |family, name, recipe| Regime {
        name,
        family,
        recipe: Recipe::Arrivals(recipe),
        is_quick: false,
    };
    let mut all = Vec::new();
    for list in OPENB_LISTS {
        let recipe = |transform, arrival, nodes| ArrivalRecipe {
            list: list.to_owned(),
            transform,
            arrival,
            nodes,
        };
        let plain = |arrival, nodes| recipe(Transform::Plain, arrival, nodes);
        let name = |what: &str| format!("openb/{list}/{what}");
        all.push(regime("plain", name("plain"), plain(Arrival::Random, None)));
        for transform in TRANSFORMS {
            let changed = recipe(transform, Arrival::Random, None);
            all.push(regime("transformed", name(&transform.name()), changed));
        }
        for arrival in ADVERSARIAL {
            all.push(regime("adversarial", name(arrival.name()), plain(arrival, None)));
        }
        for count in SMALL_CLUSTERS {
            let small = plain(Arrival::Random, Some(count));
            all.push(regime("small", name(&format!("{count}-nodes")), small));
        }
    }
    const QUICK: [&str; 6] = [
        "openb/default/plain",
        "openb/default/1-cores-per-gpu",
        "openb/gpushare100/1-cores-per-gpu",
        "openb/default/large-last",
        "openb/multigpu50/large-last",
        "openb/default/10-nodes",
    ];
    for regime in &mut all {
        regime.is_quick = QUICK.contains(&regime.name.as_str());
    }
    all
}

fn timed(family: &'static str, name: String, recipe: TimedRecipe) -> Regime {
    Regime { name, family, recipe: Recipe::Timed(recipe), is_quick: false }
}

fn order_name(order: Order) -> &'static str {
    match order {
        Order::Fifo => "fifo",
        Order::FifoSkip => "fifo-skip",
        Order::ShortestFirst => "sjf",
        Order::DominantShare => "dominant-share",
    }
}

/// Generated streams: every profile, load and size in the order `fifo-skip`, and the other orders at
/// load 0.9 on 50 and 300 machines.
fn profiles() -> Vec<Regime> {
    let mut all = Vec::new();
    for profile in PROFILES {
        let family = match profile {
            SynthProfile::Mixed => "mixed",
            SynthProfile::Training => "training",
            SynthProfile::Sharing => "sharing",
        };
        for (nodes, days) in SIZES {
            for load in LOADS {
                for order in [Order::FifoSkip, Order::Fifo, Order::DominantShare] {
                    let is_wanted =
                        order == Order::FifoSkip || load == 0.9 && (nodes == 50 || nodes == 300);
                    if !is_wanted {
                        continue;
                    }
                    let work = Work::Profile(profile, nodes);
                    let recipe = TimedRecipe { work, load, days, order, twist: Twist::None };
                    let name = format!("{family}/{nodes}-nodes/load-{load}/{}", order_name(order));
                    let mut regime = timed(family, name, recipe);
                    regime.is_quick = nodes == 50 && load >= 0.9 && order != Order::DominantShare;
                    all.push(regime);
                }
            }
        }
    }
    all
}

/// Published jobs: Philly and ITP on three kinds of machines, openb pods with run times of Philly.
fn published() -> Vec<Regime> {
    const DAYS: u32 = 10;
    let mut all = Vec::new();
    for pool in [Pool::Uniform, Pool::Mixed, Pool::CpuTight] {
        for (trace, work) in [("philly", Work::Philly(pool)), ("itp", Work::Itp(pool))] {
            for load in [0.7, 0.9] {
                let order = Order::FifoSkip;
                let recipe = TimedRecipe { work, load, days: DAYS, order, twist: Twist::None };
                let name = format!("{trace}/{}/load-{load}", pool.name());
                let mut regime = timed("philly-itp", name, recipe);
                regime.is_quick = load == 0.9 && trace == "philly";
                all.push(regime);
            }
        }
    }
    for nodes in [20, 60] {
        for load in LOADS {
            let work = Work::OpenbPods(nodes);
            let order = Order::FifoSkip;
            let recipe = TimedRecipe { work, load, days: DAYS, order, twist: Twist::None };
            let name = format!("openb-timed/{nodes}-nodes/load-{load}");
            let mut regime = timed("openb-timed", name, recipe);
            regime.is_quick = nodes == 60 && load == 0.9;
            all.push(regime);
        }
    }
    all
}

/// Work that does not come evenly.
fn changing() -> Vec<Regime> {
    let (nodes, days) = SPECIAL;
    let recipe =
        |work, load| TimedRecipe { work, load, days, order: Order::FifoSkip, twist: Twist::None };
    let mut all = Vec::new();
    for load in [0.7, 0.9] {
        let tide = |tide| Work::Tide(SynthProfile::Mixed, nodes, tide);
        let kinds = [
            ("bursts", tide(Tide::Bursts)),
            ("daily", tide(Tide::Daily)),
            ("mix-change", Work::MixChange(nodes)),
        ];
        for (name, work) in kinds {
            let name = format!("{name}/{nodes}-nodes/load-{load}");
            let mut regime = timed("changing", name, recipe(work, load));
            regime.is_quick = load == 0.9;
            all.push(regime);
        }
    }
    all
}

/// Gangs, priorities, failures, estimates and weighted queues.
fn special() -> Vec<Regime> {
    let (nodes, days) = SPECIAL;
    let regime = |family, name: &str, profile, order, twist| {
        let work = Work::Profile(profile, nodes);
        let recipe = TimedRecipe { work, load: 0.9, days, order, twist };
        timed(family, format!("{name}/{nodes}-nodes/load-0.9"), recipe)
    };
    let (mixed, training) = (SynthProfile::Mixed, SynthProfile::Training);
    let skip = Order::FifoSkip;
    let mut all = vec![
        regime("gangs-and-failures", "gangs-in-one-rack", training, skip, Twist::GangsInOneRack),
        regime("gangs-and-failures", "preemption", mixed, skip, Twist::Preemption),
        regime("gangs-and-failures", "failing-nodes", mixed, skip, Twist::FailingNodes),
        regime("gangs-and-failures", "autoscaled-pool", mixed, skip, Twist::AutoscaledPool),
        regime("estimates", "right-estimates", mixed, skip, Twist::RightEstimates),
        regime("estimates", "no-estimates", mixed, skip, Twist::NoEstimates),
        regime("estimates", "wrong-estimates", mixed, skip, Twist::WrongEstimates),
        regime("queues", "weighted-queues", mixed, Order::DominantShare, Twist::WeightedQueues),
    ];
    for regime in &mut all {
        regime.is_quick = regime.family != "estimates";
    }
    all
}
