//! `dovetail sim run`.

use std::path::PathBuf;

use anyhow::Result;
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, ValueEnum};
use dovetail_console::app::App;
use dovetail_console::places::refuse_shared;
use dovetail_settings::errors::UsageError;
use dovetail_sources::prices::PriceFlags;
use dovetail_units::duration::parse_duration;

use crate::commands::sim::reserve_flags::ReserveFlags;
use crate::commands::sim::slices_flags::SlicesFlags;
use crate::commands::sim::{run_fgd, run_slices, run_timed};
use dovetail_replays::check::Check;
use dovetail_replays::input::cluster::NodesFlag;
use dovetail_replays::input::faults::FaultFlags;
use dovetail_replays::input::fgd_world::OrderFlags;
use dovetail_replays::input::policy::{self, LearningFlags};
use dovetail_replays::input::queues_file::QueueFlags;
use dovetail_replays::input::stop_costs::StopCostFlags;
use dovetail_replays::input::trace_file::RowFlags;
use dovetail_replays::input::weights_file::WeightFlags;
use dovetail_replays::pause::PauseFlags;
use dovetail_replays::timed_replay::OrderName;

/// How a trace is replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Protocol {
    /// Pods arrive one at a time and never finish; pods that do not fit are rejected (USENIX ATC
    /// 2023)
    Fgd,
    /// Jobs are submitted, wait, run and finish
    Timed,
}

impl Protocol {
    /// The name for the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Fgd => "fgd",
            Self::Timed => "timed",
        }
    }
}

/// What `sim run` runs: a trace, or generated requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RunProtocol {
    /// Pods arrive one at a time and never finish; pods that do not fit are rejected (USENIX ATC
    /// 2023)
    Fgd,
    /// Jobs are submitted, wait, run and finish
    Timed,
    /// Pods request MIG slices, run and finish; a pod that fits nowhere is rejected
    Slices,
}

/// The policies, for the command line, with the one that chooses slices alone.
fn policy_names() -> PossibleValuesParser {
    let slices = PossibleValue::new(LEAST_ROOM_LOST)
        .help("For slices: the GPU and placement that leave the most room (arXiv 2511.18906)");
    PossibleValuesParser::new(policy::values().chain([slices]))
}

/// A rule of `--protocol slices` that is no policy of the engine.
const LEAST_ROOM_LOST: &str = "least-room-lost";

/// Flags as written.
#[derive(Debug, Args)]
pub(crate) struct RunFlags {
    /// How the trace is replayed
    #[arg(long, value_enum, value_name = "NAME")]
    pub(crate) protocol: RunProtocol,
    /// Nodes: a CSV file, or COUNTxGPUS such as 8x8 or 4x8,2x4 (these nodes have ample CPU and
    /// memory) [required, unless --scenario]
    #[arg(long, value_name = "FILE|SIZES", required_unless_present = "scenario")]
    pub(crate) nodes: Option<NodesFlag>,
    /// fgd: file with the pods [required with fgd]
    #[arg(long, value_name = "FILE", required_if_eq("protocol", "fgd"))]
    pub(crate) pods: Option<PathBuf>,
    /// timed: file with the jobs [required with timed, unless --scenario]
    #[arg(long, value_name = "FILE")]
    pub(crate) jobs: Option<PathBuf>,
    /// timed: file with nodes, jobs and the costs of preemption, instead of --nodes and --jobs
    #[arg(long, value_name = "FILE", conflicts_with_all = ["nodes", "jobs"])]
    pub(crate) scenario: Option<PathBuf>,
    /// How to choose nodes [default: dovetail for fgd and slices, first-fit for timed]
    #[arg(long, value_name = "NAME", value_parser = policy_names())]
    pub(crate) policy: Option<String>,
    /// timed: order in which pending jobs start [required with timed]
    #[arg(long, value_enum, value_name = "NAME", required_if_eq("protocol", "timed"))]
    pub(crate) order: Option<OrderName>,
    #[command(flatten)]
    pub(crate) weights: WeightFlags,
    #[command(flatten)]
    pub(crate) queues: QueueFlags,
    /// timed: CSV file with the seconds lost at every start, by GPU count and trained model, such
    /// as vgg16 (srtf, srsf, las, las-placed)
    #[arg(long, value_name = "FILE")]
    pub(crate) start_overhead: Option<PathBuf>,
    /// timed: what the engine knows about run times [default: truth for sjf, else trace]
    #[arg(long, value_enum, value_name = "SOURCE")]
    pub(crate) estimates: Option<run_timed::EstimatesName>,
    /// timed: jobs of higher priority preempt others; preempted jobs continue from their last
    /// checkpoint, from the work that they saved on notice (--save-on-notice), or from scratch
    #[arg(long)]
    pub(crate) preemption: bool,
    #[command(flatten)]
    pub(crate) stops: StopCostFlags,
    #[command(flatten)]
    pub(crate) reserve: ReserveFlags,
    /// timed: forecast the starts of pending jobs at this interval, such as 6h, and report how
    /// accurate the forecasts were
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    #[arg(conflicts_with_all = ["pause_at", "from_checkpoint"])]
    pub(crate) start_estimates: Option<u64>,
    #[command(flatten)]
    pub(crate) faults: FaultFlags,
    #[command(flatten)]
    pub(crate) slices: SlicesFlags,
    #[command(flatten)]
    pub(crate) orders: OrderFlags,
    #[command(flatten)]
    pub(crate) learning: LearningFlags,
    /// Write the inputs and decisions of the engine to a recording; gzip if its name ends in .gz
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) pause: PauseFlags,
    /// How often to recompute and check all totals; each action is checked as well, except with
    /// `off`
    #[arg(long, value_enum, value_name = "WHEN", default_value_t)]
    pub(crate) check: Check,
    #[command(flatten)]
    pub(crate) rows: RowFlags,
    #[command(flatten)]
    pub(crate) prices: PriceFlags,
}

/// Replays one trace.
pub(crate) fn run(app: &App, flags: &RunFlags) -> Result<()> {
    flags.refuse_shared_files()?;
    let (fgd, timed, slices) = (flags.of_fgd(), flags.of_timed(), flags.of_slices());
    match flags.protocol {
        RunProtocol::Fgd => {
            refuse(timed.or(slices))?;
            run_fgd::run(app, flags)
        }
        RunProtocol::Timed => {
            refuse(fgd.or(slices))?;
            flags.stops.check()?;
            run_timed::run(app, flags)
        }
        RunProtocol::Slices => {
            refuse(fgd.or(timed))?;
            run_slices::run(app, flags)
        }
    }
}

/// A flag that was given, and the protocol to which it belongs.
type Foreign = (&'static str, &'static str);

/// Refuses a flag that means something in another protocol alone.
fn refuse(foreign: Option<Foreign>) -> Result<()> {
    let Some((flag, protocol)) = foreign else { return Ok(()) };
    let text = format!("{flag} requires --protocol {protocol}; omit it");
    Err(UsageError(text).into())
}

fn first(given: &[(&'static str, bool)]) -> Option<&'static str> {
    given.iter().find(|(_, is_given)| *is_given).map(|(flag, _)| *flag)
}

impl RunFlags {
    /// Refuses outputs that are one file or would replace an input. A simulation may be paused into
    /// the checkpoint it was resumed from.
    fn refuse_shared_files(&self) -> Result<()> {
        let [queues, history] = self.queues.files();
        let inputs = [
            self.nodes.as_ref().map_or(("--nodes", None), NodesFlag::file),
            ("--scenario", self.scenario.as_deref()),
            ("--pods", self.pods.as_deref()),
            ("--jobs", self.jobs.as_deref()),
            ("--start-overhead", self.start_overhead.as_deref()),
            ("--arrivals", self.orders.arrivals.as_deref()),
            ("--node-order", self.orders.node_order.as_deref()),
            self.faults.file(),
            self.prices.file(),
            self.weights.file(),
            self.reserve.file(),
            queues,
            history,
        ];
        let outputs = [
            ("--record", self.record.as_deref()),
            ("--checkpoint", self.pause.checkpoint.as_deref()),
            self.learning.written(),
        ];
        refuse_shared(&inputs, &outputs)
    }

    /// The first flag of `fgd` alone that was given.
    fn of_fgd(&self) -> Option<Foreign> {
        let own = first(&[("--pods", self.pods.is_some())]);
        own.or(self.orders.given()).map(|flag| (flag, "fgd"))
    }

    /// The first flag of `timed` alone that was given.
    fn of_timed(&self) -> Option<Foreign> {
        let own = first(&[
            ("--jobs", self.jobs.is_some()),
            ("--scenario", self.scenario.is_some()),
            ("--order", self.order.is_some()),
            ("--start-overhead", self.start_overhead.is_some()),
            ("--estimates", self.estimates.is_some()),
            ("--preemption", self.preemption),
            ("--start-estimates", self.start_estimates.is_some()),
        ]);
        let parts = [
            self.weights.given(),
            self.queues.given(),
            self.reserve.given(),
            self.faults.given(),
            self.stops.given(),
            self.pause.given(),
            self.prices.given(),
        ];
        let of_part = || parts.into_iter().flatten().next();
        own.or_else(of_part).map(|flag| (flag, "timed"))
    }

    /// The first flag of `slices` alone that was given.
    fn of_slices(&self) -> Option<Foreign> {
        let is_rule = self.policy.as_deref() == Some(LEAST_ROOM_LOST);
        let rule = first(&[("--policy least-room-lost", is_rule)]);
        rule.or(self.slices.given()).map(|flag| (flag, "slices"))
    }
}
