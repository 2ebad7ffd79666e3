//! The regimes: every world in which policies are compared, with its name, family and recipe.
//!
//! docs/arena.md says the same in plain English.

use dovetail_plan::Order;
use dovetail_trace::synth::{PROFILES, SynthProfile};

use crate::arena::arrivals::{ArrivalNodes, ArrivalRecipe};
use crate::arena::figures::{ALLOCATION, DELIVERED, GPU_WEIGHTED_WAIT};
use crate::arena::machines::MachinePool;
use crate::arena::recipe::{CountedJobs, Recipe, TimedRecipe, Twist, WorkSource};
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

/// Arrivals after which a policy that learns is compared.
const FIRST: [usize; 3] = [64, 256, 1_024];
/// Arrivals before and after a change of the mix.
const AFTER_CHANGE: usize = 500;
/// Machines on which the first jobs meet, days of their streams and load.
const EARLY_NODES: [u32; 3] = [10, 10, 50];
const EARLY_DAYS: u32 = 14;
const EARLY_LOAD: f64 = 0.9;
/// Lists of pods that follow each other.
const MIX_CHANGES: [(&str, &str); 4] = [
    ("gpushare100", "multigpu50"),
    ("multigpu50", "gpushare100"),
    ("default", "gpuspec33"),
    ("cpu050", "cpu250"),
];

const SMALL_CLUSTERS: [usize; 3] = [5, 10, 20];
/// Small clusters differ much from draw to draw: each seed stands for so many.
const DRAWS_PER_SEED: u64 = 32;

const LOADS: [f64; 3] = [0.7, 0.9, 1.1];
/// Machines with the length of the stream in days: small clusters need longer ones for as many
/// jobs.
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
    pub recipe: Recipe,
    /// Whether it is in the quick subset.
    pub is_quick: bool,
}

/// What a regime is judged by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegimeFigure {
    /// Key of the figure of a run.
    pub key: &'static str,
    pub unit: &'static str,
    pub higher_is_better: bool,
}

impl Regime {
    /// What it is judged by: allocation where nothing ends, GPU-hours where there is more work than
    /// GPUs, else the GPU-weighted wait.
    pub fn figure(&self) -> RegimeFigure {
        match &self.recipe {
            Recipe::Arrivals(_) => {
                RegimeFigure { key: ALLOCATION, unit: "percent", higher_is_better: true }
            }
            Recipe::Timed(recipe) if recipe.load >= 1.0 => {
                RegimeFigure { key: DELIVERED, unit: "GPU-hours", higher_is_better: true }
            }
            Recipe::Timed(_) => {
                RegimeFigure { key: GPU_WEIGHTED_WAIT, unit: "hours", higher_is_better: false }
            }
        }
    }

    /// What it shares a bound with: the transform, the order of arrival or the size where pods
    /// stay, else the family.
    pub fn group(&self) -> &str {
        match (&self.recipe, self.name.rsplit_once('/')) {
            (Recipe::Arrivals(_), Some((_, what))) => what,
            _ => self.family,
        }
    }

    /// How many seeds of its own each seed that was asked for stands for.
    pub fn draws_per_seed(&self) -> u64 {
        match &self.recipe {
            Recipe::Arrivals(recipe) if recipe.is_small() => DRAWS_PER_SEED,
            _ => 1,
        }
    }

    /// How many orders of the machines are run, of those that were asked for: draws of small
    /// clusters vary more than orders do.
    pub fn orders(&self, asked: u64) -> u64 {
        if self.draws_per_seed() > 1 { 1 } else { asked }
    }
}

/// Families of regimes, each once, in the order of the first of its regimes.
pub fn families<'r>(regimes: impl IntoIterator<Item = &'r Regime>) -> Vec<&'static str> {
    let mut families = Vec::new();
    for regime in regimes {
        if !families.contains(&regime.family) {
            families.push(regime.family);
        }
    }
    families
}

/// All regimes, those without outside data included.
pub fn regimes() -> Vec<Regime> {
    let mut all = arrivals();
    all.extend(profiles());
    all.extend(published());
    all.extend(changing());
    all.extend(early());
    all.push(demo_month());
    all.extend(special());
    all.extend(learned_run_times());
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
        let recipe = |transform, arrival, machines| ArrivalRecipe {
            list: list.to_owned(),
            transform,
            arrival,
            machines,
        };
        let plain = |arrival, machines| recipe(Transform::Plain, arrival, machines);
        let name = |what: &str| format!("openb/{list}/{what}");
        all.push(regime("plain", name("plain"), plain(Arrival::Random, ArrivalNodes::All)));
        for transform in TRANSFORMS {
            let changed = recipe(transform, Arrival::Random, ArrivalNodes::All);
            all.push(regime("transformed", name(&transform.name()), changed));
        }
        for arrival in ADVERSARIAL {
            all.push(regime(
                "adversarial",
                name(arrival.name()),
                plain(arrival, ArrivalNodes::All),
            ));
        }
        for count in SMALL_CLUSTERS {
            let small = plain(Arrival::Random, ArrivalNodes::Drawn(count));
            all.push(regime("small", name(&format!("{count}-nodes")), small));
        }
        for count in FIRST {
            let first = plain(Arrival::Random, ArrivalNodes::FilledBy(count));
            all.push(regime("early", name(&format!("first-{count}-arrivals")), first));
        }
        for (_, other) in MIX_CHANGES.iter().filter(|(before, _)| *before == list) {
            let both = ArrivalNodes::FilledByBoth(AFTER_CHANGE, (*other).to_owned());
            let name = format!("openb/{list}-then-{other}/mix-change");
            all.push(regime("mix-change", name, plain(Arrival::Random, both)));
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
        Order::Dovetail => "dovetail",
    }
}

/// Generated streams: every profile, load and size in the order `fifo-skip`, and the other orders
/// at load 0.9 on 50 and 300 machines.
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
                    let work = WorkSource::Profile(profile, nodes);
                    let recipe = TimedRecipe { order, ..TimedRecipe::new(work, load, days) };
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
    for pool in [MachinePool::Uniform, MachinePool::Mixed, MachinePool::CpuTight] {
        for (trace, work) in [("philly", WorkSource::Philly(pool)), ("itp", WorkSource::Itp(pool))]
        {
            for load in [0.7, 0.9] {
                let recipe = TimedRecipe::new(work, load, DAYS);
                let name = format!("{trace}/{}/load-{load}", pool.name());
                let mut regime = timed("philly-itp", name, recipe);
                regime.is_quick = load == 0.9 && trace == "philly";
                all.push(regime);
            }
        }
    }
    for nodes in [20, 60] {
        for load in LOADS {
            let work = WorkSource::OpenbPods(nodes);
            let recipe = TimedRecipe::new(work, load, DAYS);
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
    let mut all = Vec::new();
    for load in [0.7, 0.9] {
        let tide = |tide| WorkSource::Tide(SynthProfile::Mixed, nodes, tide);
        let kinds = [
            ("bursts", tide(Tide::Bursts)),
            ("daily", tide(Tide::Daily)),
            ("mix-change", WorkSource::MixChange(nodes)),
        ];
        for (name, work) in kinds {
            let name = format!("{name}/{nodes}-nodes/load-{load}");
            let mut regime = timed("changing", name, TimedRecipe::new(work, load, days));
            regime.is_quick = load == 0.9;
            all.push(regime);
        }
    }
    all
}

/// What `dovetail demo` replays.
fn demo_month() -> Regime {
    let work = WorkSource::Profile(SynthProfile::Mixed, 1_200);
    let recipe = TimedRecipe::new(work, 0.9, 30);
    timed("demo-month", "demo-month/1200-nodes/load-0.9".to_owned(), recipe)
}

/// Waits of the jobs that come before anything is learned, and of those that come after a change of
/// mix.
fn early() -> Vec<Regime> {
    let (nodes, days) = SPECIAL;
    let regime = |name: String, work, days, counted| {
        let recipe = TimedRecipe { counted, ..TimedRecipe::new(work, EARLY_LOAD, days) };
        timed("early-jobs", format!("{name}/load-{EARLY_LOAD}"), recipe)
    };
    let mixed = |nodes| WorkSource::Profile(SynthProfile::Mixed, nodes);
    let mut all: Vec<Regime> = FIRST
        .into_iter()
        .zip(EARLY_NODES)
        .map(|(count, nodes)| {
            let name = format!("first-{count}-jobs/{nodes}-nodes");
            regime(name, mixed(nodes), EARLY_DAYS, CountedJobs::First(count))
        })
        .collect();
    let name = format!("{AFTER_CHANGE}-jobs-after-mix-change/{nodes}-nodes");
    let changed = CountedJobs::FromMiddle(AFTER_CHANGE);
    all.push(regime(name, WorkSource::MixChange(nodes), days, changed));
    all
}

/// Estimates in an order that reads them. On nodes of their own: without any estimate this order is
/// `fifo-skip`, and no world should count twice.
const ESTIMATED: (u32, u32) = (30, 21);

/// The order `dovetail` with learned run times and reservations, on worlds of other families.
fn learned_run_times() -> Vec<Regime> {
    let synthetic = |profile| WorkSource::Profile(profile, SPECIAL.0);
    let published = (MachinePool::Uniform, 10);
    [
        ("mixed/50-nodes", synthetic(SynthProfile::Mixed), SPECIAL.1),
        ("training/50-nodes", synthetic(SynthProfile::Training), SPECIAL.1),
        ("sharing/50-nodes", synthetic(SynthProfile::Sharing), SPECIAL.1),
        ("philly/uniform", WorkSource::Philly(published.0), published.1),
        ("itp/uniform", WorkSource::Itp(published.0), published.1),
        ("openb-timed/60-nodes", WorkSource::OpenbPods(60), published.1),
        ("demo-month/1200-nodes", WorkSource::Profile(SynthProfile::Mixed, 1_200), 30),
    ]
    .into_iter()
    .map(|(name, work, days)| {
        let recipe = TimedRecipe { order: Order::Dovetail, ..TimedRecipe::new(work, 0.9, days) };
        timed("learned-run-times", format!("learned-run-times/{name}/load-0.9"), recipe)
    })
    .collect()
}

/// Gangs, priorities, failures, estimates and weighted queues.
fn special() -> Vec<Regime> {
    let regime = |family, name: &str, profile, order, twist| {
        let (nodes, days) = if family == "estimates" { ESTIMATED } else { SPECIAL };
        let work = WorkSource::Profile(profile, nodes);
        let recipe = TimedRecipe { order, twist, ..TimedRecipe::new(work, 0.9, days) };
        timed(family, format!("{name}/{nodes}-nodes/load-0.9"), recipe)
    };
    let (mixed, training) = (SynthProfile::Mixed, SynthProfile::Training);
    let (skip, shortest) = (Order::FifoSkip, Order::ShortestFirst);
    let mut all = vec![
        regime("gangs-and-failures", "gangs-in-one-rack", training, skip, Twist::GangsInOneRack),
        regime("gangs-and-failures", "preemption", mixed, skip, Twist::Preemption),
        regime("gangs-and-failures", "failing-nodes", mixed, skip, Twist::FailingNodes),
        regime("gangs-and-failures", "autoscaled-pool", mixed, skip, Twist::AutoscaledPool),
        regime("estimates", "right-estimates", mixed, shortest, Twist::RightEstimates),
        regime("estimates", "no-estimates", mixed, shortest, Twist::NoEstimates),
        regime("estimates", "wrong-estimates", mixed, shortest, Twist::WrongEstimates),
        regime("queues", "weighted-queues", mixed, Order::DominantShare, Twist::WeightedQueues),
    ];
    for regime in &mut all {
        regime.is_quick = regime.family != "estimates";
    }
    all
}
