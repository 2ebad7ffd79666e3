//! Many replays: policies x traces x seeds, in parallel, with results in a fixed order.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use dovetail_console::app::App;
use dovetail_console::progress::Progress;
use dovetail_order::{ModelWeights, Turns};
use dovetail_plan::ReserveConfig;
use dovetail_settings::errors::{UsageError, refuse_twice};
use dovetail_sim::baseline::StartOverheads;
use dovetail_sim::timed::Estimates;
use dovetail_sources::prices::{PriceFlags, Prices};
use dovetail_trace::fgd::trace_name;
use dovetail_trace::{StopCosts, TraceCluster};
use rayon::prelude::*;

use crate::commands::sim::page::Section;
use crate::commands::sim::run::Protocol;
use crate::commands::sim::run_timed::EstimatesName;
use dovetail_replays::check::Check;
use dovetail_replays::fgd_replay;
use dovetail_replays::figures::{FgdFigures, Figures, ReplayResult};
use dovetail_replays::impossible;
use dovetail_replays::input::baseline;
use dovetail_replays::input::cluster::NodesFlag;
use dovetail_replays::input::faults::FaultFlags;
use dovetail_replays::input::fgd_world::FgdTrace;
use dovetail_replays::input::policy;
use dovetail_replays::input::queues_file::QueueFlags;
use dovetail_replays::input::seeds::Seeds;
use dovetail_replays::input::trace_file::{self, RowFlags};
use dovetail_replays::limits::{self, PolicyBound};
use dovetail_replays::money::{self, BriefBill};
use dovetail_replays::timed_replay::{self, OrderName, TimedPlan};
use dovetail_sim::fgd::prefixes;
use dovetail_sim::timed::Impossible;

/// Flags as written, of every command that replays more than once.
#[derive(Debug, Args)]
pub(crate) struct GridFlags {
    /// How the traces are replayed
    #[arg(long, value_enum, value_name = "NAME")]
    pub(crate) protocol: Protocol,
    /// Nodes: a CSV file, or COUNTxGPUS such as 8x8 or 4x8,2x4 (these nodes have ample CPU and
    /// memory)
    #[arg(long, value_name = "FILE|SIZES")]
    pub(crate) nodes: NodesFlag,
    /// fgd: files with pods, one trace each [required with fgd]
    #[arg(long, value_name = "FILE", num_args = 1.., required_if_eq("protocol", "fgd"))]
    pub(crate) pods: Vec<PathBuf>,
    /// timed: files with jobs, one trace each [required with timed]
    #[arg(long, value_name = "FILE", num_args = 1.., required_if_eq("protocol", "timed"))]
    pub(crate) jobs: Vec<PathBuf>,
    /// How to choose nodes; comma-separated [default: kube-default,kube-most-allocated,dovetail for
    /// fgd, first-fit for timed]
    #[arg(long, alias = "policy", value_name = "NAMES", value_delimiter = ',')]
    #[arg(value_parser = policy::names())]
    pub(crate) policies: Vec<String>,
    /// timed: order in which pending jobs start; comma-separated [required with timed]
    #[arg(long, alias = "order", value_enum, value_name = "NAMES", value_delimiter = ',')]
    #[arg(required_if_eq("protocol", "timed"))]
    pub(crate) orders: Vec<OrderName>,
    /// Seeds such as 42-46 or 1,2,7 [default: --seed and the next four for fgd, --seed for timed]
    #[arg(long, value_name = "LIST")]
    pub(crate) seeds: Option<Seeds>,
    /// timed: CSV file with the seconds lost at every start, by GPU count and trained model, such
    /// as vgg16 (srtf, srsf, las, las-placed)
    #[arg(long, value_name = "FILE")]
    pub(crate) start_overhead: Option<PathBuf>,
    /// timed: what the engine knows about run times [default: truth for sjf, else trace]
    #[arg(long, value_enum, value_name = "SOURCE")]
    pub(crate) estimates: Option<EstimatesName>,
    #[command(flatten)]
    pub(crate) faults: FaultFlags,
    /// How often to recompute and check all totals; each action is checked as well, except with
    /// `off`
    #[arg(long, value_enum, value_name = "WHEN", default_value_t)]
    pub(crate) check: Check,
    #[command(flatten)]
    pub(crate) rows: RowFlags,
    #[command(flatten)]
    pub(crate) prices: PriceFlags,
}

/// Seeds of the `fgd` protocol where none are given.
const FGD_SEEDS: u64 = 5;

/// What is replayed, resolved from flags and read from files.
pub(crate) struct Grid {
    pub(crate) cluster: TraceCluster,
    /// Names of traces, in the order given.
    pub(crate) traces: Vec<String>,
    /// Names of what is compared, in the order given.
    pub(crate) variants: Vec<String>,
    pub(crate) seeds: Vec<u64>,
    /// Jobs of each trace that can never start; none under `fgd`, which drops what does not fit.
    pub(crate) impossible: Vec<Impossible>,
    work: GridWork,
    threads: usize,
}

/// What each protocol needs.
enum GridWork {
    Fgd { traces: Vec<FgdTrace>, check: Check },
    Timed { traces: Vec<dovetail_trace::Trace>, plans: Vec<TimedPlan>, prices: Prices },
}

/// One point of the grid, as indices.
#[derive(Clone, Copy, Debug)]
struct Point {
    trace: usize,
    variant: usize,
    seed: usize,
}

impl Grid {
    /// Reads everything; a mistake shows before the first replay starts.
    pub(crate) fn new(app: &App, flags: &GridFlags) -> Result<Self> {
        flags.refuse_repeated()?;
        match flags.protocol {
            Protocol::Fgd => fgd_grid(app, flags),
            Protocol::Timed => timed_grid(app, flags),
        }
    }

    /// Replays every point; rows come by trace, then variant, then seed. With `limits`, each row
    /// also knows its distance to what no policy can exceed.
    pub(crate) fn run(&self, limits: bool) -> Result<Vec<ReplayResult>> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(self.threads).build()?;
        let points = self.points();
        let limit_steps = if limits { self.traces.len() * self.seeds.len() } else { 0 };
        let progress = Progress::new("replays", (points.len() + limit_steps) as u64);
        pool.install(|| {
            let mut rows: Vec<ReplayResult> = points
                .par_iter()
                .map(|point| self.row(*point, &progress))
                .collect::<Result<_>>()?;
            if limits {
                self.add_limits(&mut rows, &progress)?;
            }
            Ok(rows)
        })
    }

    /// Rows by trace, for a page.
    pub(crate) fn sections<'r>(
        &'r self,
        rows: &'r [ReplayResult],
        against: &'r str,
    ) -> Vec<Section<'r>> {
        let (nodes, gpus) = (self.cluster.nodes.len(), self.cluster.total_gpus());
        let seeds = self.seeds.len();
        let of_trace = rows.chunks(self.variants.len() * seeds);
        let of_trace = of_trace.zip(&self.impossible);
        let section =
            |(rows, impossible)| Section { nodes, gpus, rows, seeds, against, impossible };
        of_trace.map(section).collect()
    }

    fn points(&self) -> Vec<Point> {
        let mut points = Vec::new();
        for trace in 0..self.traces.len() {
            for variant in 0..self.variants.len() {
                points.extend((0..self.seeds.len()).map(|seed| Point { trace, variant, seed }));
            }
        }
        points
    }

    fn row(&self, point: Point, progress: &Progress) -> Result<ReplayResult> {
        let seed = self.seeds[point.seed];
        let steps = Progress::silent();
        let mut usage = None;
        let figures = match &self.work {
            GridWork::Fgd { traces, check } => {
                let trace = &traces[point.trace];
                let orders = trace.orders(&self.cluster, seed)?;
                let world = trace.world(&self.cluster, &orders);
                let policy = policy::seeded(&self.variants[point.variant], seed);
                let replay = fgd_replay::replay(&world, policy, *check, None, &steps)?;
                let figures = FgdFigures::of(&replay, seed, world.cluster_milli());
                Figures::Fgd(Box::new(figures))
            }
            GridWork::Timed { traces, plans, prices } => {
                let mut plan = plans[point.variant].clone();
                plan.policy.seed = seed;
                if let Some(faults) = &mut plan.faults {
                    faults.seed = seed;
                }
                let trace = &traces[point.trace];
                let files = timed_replay::Files::default();
                let figures = timed_replay::replay(trace, &self.cluster, &plan, files, &steps)?;
                let priced = figures.usage.as_ref();
                usage = priced.map(|priced| money::priced(trace, priced, prices)).transpose()?;
                Figures::Timed(Box::new(figures))
            }
        };
        progress.advance(1);
        let trace = self.traces[point.trace].clone();
        let variant = self.variants[point.variant].clone();
        let bill = usage.as_ref().map(BriefBill::of);
        // Replays of a grid start knowing nothing.
        let learning_started_from = policy::started_from_nothing(&variant);
        Ok(ReplayResult {
            trace,
            variant,
            seed,
            figures,
            bill,
            usage,
            learning_started_from,
            limit: None,
        })
    }

    /// Limits depend on trace and seed alone: each is computed once.
    fn add_limits(&self, rows: &mut [ReplayResult], progress: &Progress) -> Result<()> {
        let keys: Vec<(usize, usize)> = (0..self.traces.len())
            .flat_map(|trace| (0..self.seeds.len()).map(move |seed| (trace, seed)))
            .collect();
        let found: Vec<Option<PolicyBound>> = keys
            .par_iter()
            .map(|(trace, seed)| {
                let limit = self.limit(*trace, self.seeds[*seed]);
                progress.advance(1);
                limit
            })
            .collect::<Result<_>>()?;
        let per_trace = self.variants.len() * self.seeds.len();
        for (number, row) in rows.iter_mut().enumerate() {
            let (trace, seed) = (number / per_trace, number % self.seeds.len());
            row.limit = found[trace * self.seeds.len() + seed];
        }
        Ok(())
    }

    fn limit(&self, trace: usize, seed: u64) -> Result<Option<PolicyBound>> {
        match &self.work {
            GridWork::Fgd { traces, .. } => {
                let orders = traces[trace].orders(&self.cluster, seed)?;
                let bounds = prefixes(&traces[trace].world(&self.cluster, &orders), false)?;
                Ok(Some(PolicyBound::from(&bounds)))
            }
            GridWork::Timed { traces, .. } => {
                let limits = limits::times(&traces[trace], &self.cluster, &self.impossible[trace])?;
                Ok(limits.map(PolicyBound::from))
            }
        }
    }
}

fn fgd_grid(app: &App, flags: &GridFlags) -> Result<Grid> {
    flags.refuse(
        "timed",
        &[
            ("--jobs", !flags.jobs.is_empty()),
            ("--orders", !flags.orders.is_empty()),
            ("--start-overhead", flags.start_overhead.is_some()),
            ("--estimates", flags.estimates.is_some()),
            (flags.faults.given().unwrap_or_default(), flags.faults.given().is_some()),
            (flags.prices.given().unwrap_or_default(), flags.prices.given().is_some()),
        ],
    )?;
    let cluster = flags.nodes.cluster(app, flags.rows)?;
    let read = |path: &PathBuf| FgdTrace::read(app, path, flags.rows);
    let traces = flags.pods.iter().map(read).collect::<Result<Vec<_>>>()?;
    let first = app.settings.seed.value;
    let five = || (first..first.saturating_add(FGD_SEEDS)).collect();
    Ok(Grid {
        cluster,
        traces: traces.iter().map(|trace| trace.name.clone()).collect(),
        variants: flags.policies(&["kube-default", "kube-most-allocated", "dovetail"]),
        seeds: flags.seeds.as_ref().map_or_else(five, |seeds| seeds.0.clone()),
        impossible: vec![Impossible::default(); traces.len()],
        work: GridWork::Fgd { traces, check: flags.check },
        threads: app.settings.threads.value as usize,
    })
}

fn timed_grid(app: &App, flags: &GridFlags) -> Result<Grid> {
    flags.refuse("fgd", &[("--pods", !flags.pods.is_empty())])?;
    let cluster = flags.nodes.cluster(app, flags.rows)?;
    let read = |path: &PathBuf| trace_file::jobs_with_times(app, path, flags.rows, baseline::TIMED);
    let traces = flags.jobs.iter().map(read).collect::<Result<Vec<_>>>()?;
    // Published orders know one pool of GPUs, and refuse what is larger.
    let by_engine = flags.orders.iter().any(|order| !order.is_preemptive());
    let impossible = traces.iter().map(|trace| match by_engine {
        true => Ok(Impossible::of(&cluster.nodes, &trace.jobs)?),
        false => Ok(Impossible::default()),
    });
    let impossible = impossible.collect::<Result<Vec<_>>>()?;
    traces.iter().zip(&impossible).for_each(|(trace, jobs)| impossible::tell(jobs, app, trace));
    let seed = app.settings.seed.value;
    let overheads = flags.start_overhead.as_deref().map(StartOverheads::open).transpose()?;
    let prices = flags.prices.of(&cluster, &app.settings)?;
    let cluster_events = flags.faults.events(&cluster)?;
    let mut plans = Vec::new();
    let mut variants = Vec::new();
    for order in &flags.orders {
        let policies = flags.policies(&["first-fit"]);
        // A preemptive order knows no policy and stands for itself.
        let wanted = if order.is_preemptive() { &policies[..1] } else { &policies[..] };
        for name in wanted {
            let name_of = |order: &OrderName| match order.is_preemptive() {
                true => order.name().to_owned(),
                false => format!("{}/{name}", order.name()),
            };
            variants.push(name_of(order));
            plans.push(TimedPlan {
                order: *order,
                policy: policy::seeded(name, seed),
                estimates: flags.estimates.map(Estimates::from),
                overheads: overheads.clone().filter(|_| order.is_preemptive()),
                cluster_events: cluster_events.clone(),
                faults: flags.faults.model(seed),
                preemption: false,
                turns: Turns::preset("fair").unwrap_or_default(),
                model_weights: ModelWeights::default(),
                queues: QueueFlags::default(),
                stop_costs: StopCosts::default(),
                charges_baselines: false,
                reserve: ReserveConfig::default(),
                bookings: Vec::new(),
                forecast_every_ms: None,
                check: flags.check,
            });
        }
    }
    if let Some(flag) = flags.faults.given()
        && let Some(order) = flags.orders.iter().find(|order| order.is_preemptive())
    {
        let text = format!(
            "{flag}: --order {} does not support node failures; remove one of the two flags",
            order.name()
        );
        return Err(UsageError(text).into());
    }
    Ok(Grid {
        cluster,
        traces: flags.jobs.iter().map(|path| trace_name(path)).collect(),
        variants,
        seeds: flags.seeds.as_ref().map_or_else(|| vec![seed], |seeds| seeds.0.clone()),
        impossible,
        work: GridWork::Timed { traces, plans, prices },
        threads: app.settings.threads.value as usize,
    })
}

impl GridFlags {
    /// A name that is there twice would be replayed twice and count as evidence twice.
    fn refuse_repeated(&self) -> Result<()> {
        let orders: Vec<&str> = self.orders.iter().map(|order| order.name()).collect();
        let policies: Vec<&str> = self.policies.iter().map(String::as_str).collect();
        let names = |paths: &[PathBuf]| -> Vec<String> {
            paths.iter().map(|path| path.display().to_string()).collect()
        };
        let (pods, jobs) = (names(&self.pods), names(&self.jobs));
        refuse_twice("--policies", policies)?;
        refuse_twice("--orders", orders)?;
        refuse_twice("--pods", pods.iter().map(String::as_str))?;
        refuse_twice("--jobs", jobs.iter().map(String::as_str))
    }

    fn policies(&self, default: &[&str]) -> Vec<String> {
        match self.policies.is_empty() {
            true => default.iter().map(|name| (*name).to_owned()).collect(),
            false => self.policies.clone(),
        }
    }

    /// Refuses flags that mean something in the other protocol alone.
    fn refuse(&self, other: &str, given: &[(&str, bool)]) -> Result<()> {
        match given.iter().find(|(_, is_given)| *is_given) {
            None => Ok(()),
            Some((flag, _)) => {
                let text = format!("{flag} requires --protocol {other}; omit it");
                Err(UsageError(text).into())
            }
        }
    }
}
