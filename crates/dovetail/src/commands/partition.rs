//! `dovetail partition`: how GPUs are cut into MIG instances, and how few of them a demand needs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::{ArgGroup, Args, Subcommand};
use dovetail_account::Priced;
use dovetail_console::app::App;
use dovetail_console::connection::connection_runtime;
use dovetail_model::{MigTable, canonical_gpu_model};
use dovetail_partitioning::apply::{AskedChange, WorkloadName};
use dovetail_partitioning::fleet::{model_of, tables};
use dovetail_partitioning::planned::{Basis, Planned};
use dovetail_partitioning::{
    apply, cluster, measured, plan, planned, policy, setup, show, size, world_file,
};
use dovetail_price::PriceBook;
use dovetail_settings::errors::UsageError;
use dovetail_settings::form::Output;
use dovetail_sharing::{PolicySpec, Timing};
use dovetail_sources::kubeconfig::ConnectionFlags;
use dovetail_sources::node_prices::NodeToPrice;
use dovetail_sources::objects::ObjectFlags;
use dovetail_sources::prices::PriceFlags;
use dovetail_sources::prometheus::{ServerChoice, WayFlags};
use dovetail_units::duration::parse_duration;

/// How far back the use of pods is measured, and how far at least.
const WINDOW_MS: u64 = 7 * 86_400_000;
const SHORTEST_WINDOW_MS: u64 = 2 * 86_400_000;

/// How often a node that changes is read.
const POLL_MS: u64 = 1_000;

/// Commands for GPUs that several pods share.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Plan MIG layouts for pending pods: the new layout of each GPU, and the pods that would fit
    Plan(Box<PlanFlags>),
    /// Show the layout of every GPU, and the pods on its node that use GPUs
    Show(ShowFlags),
    /// Apply SharingPolicies, one node at a time; pods move only where a policy allows it
    Apply(Box<ApplyFlags>),
    /// Undo the last change to the layout of nodes, or to the resource requests of workloads
    Rollback(Box<RollbackFlags>),
    /// Compute the minimum number of GPUs of a model that can provide the given MIG instances, or
    /// how many pods can share each GPU
    Size(Box<SizeFlags>),
    /// Print the objects and patches that let the NVIDIA and AMD GPU operators read dovetail's
    /// layouts
    Setup(SetupFlags),
}

#[derive(Debug, Args)]
pub(crate) struct ShowFlags {
    #[command(flatten)]
    source: ObjectFlags,
}

#[derive(Debug, Args)]
pub(crate) struct SetupFlags {
    #[command(flatten)]
    connection: ConnectionFlags,
    #[command(flatten)]
    operator: OperatorFlags,
}

/// Where NVIDIA's GPU Operator runs.
#[derive(Debug, Args)]
struct OperatorFlags {
    /// Namespace of NVIDIA's GPU Operator
    #[arg(long, value_name = "NAMESPACE", default_value = "gpu-operator")]
    operator_namespace: String,
}

/// How nodes change.
#[derive(Debug, Args)]
struct ChangeFlags {
    #[command(flatten)]
    connection: ConnectionFlags,
    #[command(flatten)]
    operator: OperatorFlags,
    /// How long to wait after tainting a node, so that schedulers see the taint, before checking
    /// the node for pods again
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_duration)]
    settle: u64,
    /// How long kubelets may take to update a changed ConfigMap in the GPU Operator's pods
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = parse_duration)]
    config_delay: u64,
    /// Print what would change without changing it
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ApplyFlags {
    #[command(flatten)]
    change: ChangeFlags,
    /// YAML or JSON file with a SharingPolicy [default: the SharingPolicies of the cluster]
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// Make the pods of a Deployment or StatefulSet request RESOURCE instead of the GPU or slice
    /// that they request now, such as prod/Deployment/chat=nvidia.com/mig-1g.10gb; repeatable
    #[arg(long, value_name = "NAMESPACE/KIND/NAME=RESOURCE", num_args = 1..)]
    workload: Vec<AskedChange>,
    /// Plan only for pods that have been pending at least this long
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = parse_duration)]
    pending_for: u64,
    /// How long to wait for a pod that cannot be evicted yet; after that, apply exits, and the next
    /// run resumes the change
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = parse_duration)]
    move_wait: u64,
    /// URL of Prometheus, Thanos, Mimir or VictoriaMetrics, without /api/v1, for policies that have
    /// a guard; `auto` searches the cluster for a server, `none` uses no server
    #[arg(long, value_name = "URL", default_value = "auto")]
    prometheus: ServerChoice,
    #[command(flatten)]
    way: WayFlags,
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("changed").args(["node", "workload"]).required(true).multiple(true))]
pub(crate) struct RollbackFlags {
    #[command(flatten)]
    change: ChangeFlags,
    /// Node to roll back; repeatable
    #[arg(long, value_name = "NAME", num_args = 1..)]
    node: Vec<String>,
    /// Workload to roll back to its previous resource request, such as prod/Deployment/chat;
    /// repeatable
    #[arg(long, value_name = "NAMESPACE/KIND/NAME", num_args = 1..)]
    workload: Vec<WorkloadName>,
}

#[derive(Debug, Args)]
pub(crate) struct PlanFlags {
    #[command(flatten)]
    source: ObjectFlags,
    /// JSON file that describes the cluster: MIG instances in use on each GPU, and pending pods by
    /// profile
    #[arg(long, value_name = "FILE", conflicts_with_all = ["from", "example", "kubeconfig"])]
    world: Option<PathBuf>,
    /// YAML or JSON file with a SharingPolicy of mode mig: nodes and profiles to plan with, and
    /// GPUs that stay whole
    #[arg(long, value_name = "FILE", conflicts_with = "world")]
    policy: Option<PathBuf>,
    /// Plan only for pods that have been pending at least this long
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = parse_duration)]
    pending_for: u64,
    /// URL of Prometheus, Thanos, Mimir or VictoriaMetrics, without /api/v1, that has the metrics
    /// of DCGM Exporter: with them, GPUs without pods can change even if other GPUs of
    /// their node are in use
    #[arg(long, value_name = "URL", conflicts_with_all = ["from", "example", "world"])]
    prometheus: Option<String>,
    #[command(flatten)]
    way: WayFlags,
    #[command(flatten)]
    prices: PriceFlags,
}

/// What to hold.
#[derive(Debug, Args)]
pub(crate) struct SizeFlags {
    /// GPU model, such as A100-80GB
    #[arg(long, value_name = "MODEL")]
    gpu: String,
    /// Instances to provide, such as 1g.10gb=50; repeatable [required without --prometheus]
    #[arg(long, value_name = "PROFILE=COUNT", required_unless_present = "prometheus", num_args = 1..)]
    demand: Vec<String>,
    /// URL of a server with the metrics of DCGM Exporter, instead of --demand: computes how many of
    /// the pods that now have a whole GPU of the model can share each GPU (time-slicing or MPS)
    #[arg(long, value_name = "URL", conflicts_with = "demand")]
    prometheus: Option<String>,
    #[command(flatten)]
    way: WayFlags,
    /// With --prometheus: only pods of this namespace; repeatable
    #[arg(short, long, value_name = "NAMESPACE", requires = "prometheus")]
    namespace: Vec<String>,
    /// With --prometheus: how far back to measure what pods use, at least 2d [default: 7d]
    #[arg(long, value_name = "DURATION", requires = "prometheus", value_parser = parse_duration)]
    window: Option<u64>,
    #[command(flatten)]
    prices: PriceFlags,
}

impl Command {
    pub(crate) fn run(self, app: &App) -> Result<()> {
        match self {
            Self::Plan(flags) => flags.run(app),
            Self::Show(flags) => flags.run(app),
            Self::Apply(flags) => flags.run(app),
            Self::Rollback(flags) => flags.run(app),
            Self::Size(flags) => flags.run(app),
            Self::Setup(flags) => flags.run(app),
        }
    }
}

/// Price of a GPU-hour in micro-USD, if it is known.
fn per_hour(price: &Priced) -> Option<i64> {
    match price {
        Priced::Known(price) => Some(price.usd_micros_per_gpu_hour),
        Priced::Unknown => None,
    }
}

/// Price of a GPU-hour of each model.
fn hour_prices(
    app: &App,
    flags: &PriceFlags,
    models: BTreeSet<String>,
) -> Result<BTreeMap<String, Option<i64>>> {
    let priced = flags.of_models(models.into_iter().map(Some).collect(), &app.settings)?;
    let known = priced.into_iter().filter_map(|(model, price)| Some((model?, per_hour(&price))));
    Ok(known.collect())
}

impl PlanFlags {
    fn run(&self, app: &App) -> Result<()> {
        let output = app.output("partition plan")?;
        let tables = tables(app);
        let policy = match &self.policy {
            Some(path) => policy::read_mig(path, &tables)?,
            None => PolicySpec::default(),
        };
        let found = match &self.world {
            Some(path) => planned::Planned::of(world_file::read(path, &tables)?)?,
            None => {
                let prometheus =
                    self.prometheus.clone().map_or(ServerChoice::None, ServerChoice::At);
                let basis = Basis { young_ms: self.pending_for, prometheus, way: &self.way };
                planned::read(app, &self.source, &basis, &policy, &tables)?
            }
        };
        let document = plan::document(&found, &self.hour_prices(app, &found)?);
        match output {
            Output::Json => app.print_json(&document),
            _ => app.print(&plan::text(&document, &found.fleet)),
        }
    }

    /// Price of a GPU-hour of each node, as `dovetail cost` has it.
    fn hour_prices(&self, app: &App, found: &Planned) -> Result<plan::HourPrices> {
        if self.world.is_none() {
            let (names, nodes): (Vec<&str>, Vec<NodeToPrice<'_>>) = found.nodes_to_price().unzip();
            let prices = self.prices.of_nodes(&nodes, &app.settings)?;
            let of_nodes = names.into_iter().zip(&prices);
            return Ok(of_nodes.map(|(node, price)| (node.to_owned(), per_hour(price))).collect());
        }
        // A file says nothing of its node but the model.
        let fleet = &found.fleet;
        let of_models = hour_prices(app, &self.prices, fleet.models.iter().cloned().collect())?;
        let named = fleet.names.iter().zip(&fleet.models);
        let price = |model: &String| of_models.get(model).copied().flatten();
        Ok(named.map(|((node, _), model)| (node.clone(), price(model))).collect())
    }
}

impl ShowFlags {
    fn run(&self, app: &App) -> Result<()> {
        let output = app.output("partition show")?;
        let document = show::document(app, &self.source, &tables(app))?;
        match output {
            Output::Json => app.print_json(&document),
            _ => app.print(&show::text(&document)),
        }
    }
}

impl SetupFlags {
    fn run(&self, app: &App) -> Result<()> {
        let output = app.output("partition setup")?;
        let namespace = &self.operator.operator_namespace;
        let tables = tables(app);
        let document = setup::document(app, &self.connection, namespace, &tables);
        let document = connection_runtime()?.block_on(document)?;
        match output {
            Output::Json => app.print_json(&document.json()),
            _ => app.print(&document.text()),
        }
    }
}

impl ChangeFlags {
    fn options(&self) -> apply::Options {
        apply::Options {
            connection: self.connection.clone(),
            operator_namespace: self.operator.operator_namespace.clone(),
            timing: Timing {
                settle_ms: self.settle,
                mount_ms: self.config_delay,
                ..Timing::default()
            },
            young_ms: cluster::YOUNG_MS,
            move_wait_ms: 0,
            workloads: Vec::new(),
            poll_ms: POLL_MS,
            is_dry_run: self.dry_run,
            prometheus: ServerChoice::None,
            way: WayFlags::default(),
        }
    }
}

impl ApplyFlags {
    fn run(&self, app: &App) -> Result<()> {
        let output = app.output("partition apply")?;
        let tables = tables(app);
        let policy = self.policy.as_deref().map(|path| policy::read(path, &tables)).transpose()?;
        let options = apply::Options {
            young_ms: self.pending_for,
            move_wait_ms: self.move_wait,
            workloads: self.workload.clone(),
            prometheus: self.prometheus.clone(),
            way: self.way.clone(),
            ..self.change.options()
        };
        let applied = apply::entry::apply(app, &options, policy, &tables);
        told(app, output, connection_runtime()?.block_on(applied)?)
    }
}

impl RollbackFlags {
    fn run(&self, app: &App) -> Result<()> {
        let output = app.output("partition rollback")?;
        let tables = tables(app);
        let options = self.change.options();
        let returned = apply::entry::rollback(app, &options, &self.node, &self.workload, &tables);
        let document = connection_runtime()?.block_on(returned)?;
        told(app, output, document)
    }
}

/// Prints what became of nodes and workloads; a node that did not come to its layout is a failure,
/// and so is a workload that may not change, and what ended the work on a policy.
fn told(app: &App, output: Output, document: apply::Document) -> Result<()> {
    match output {
        Output::Json => app.print_json(&document)?,
        _ => app.print(&apply::text(&document))?,
    }
    let stuck = document.stuck();
    ensure!(stuck.is_empty(), "the layout of {} could not be rolled back", stuck.join(", "));
    let refused = document.refused();
    ensure!(refused.is_empty(), "{} may not be changed: see the reason above", refused.join(", "));
    document.into_result()
}

impl SizeFlags {
    fn run(&self, app: &App) -> Result<()> {
        let output = app.output("partition size")?;
        let tables = tables(app);
        if let [one, .., other] = &sizes_of(&tables, &self.gpu)[..] {
            let gpu = &self.gpu;
            let text = format!("--gpu {gpu}: add its memory size, such as {one} or {other}");
            return Err(UsageError(text).into());
        }
        if let Some(prometheus) = &self.prometheus {
            return self.run_measured(app, output, prometheus);
        }
        let (model, table) = model_of(&tables, &self.gpu).ok_or_else(|| {
            UsageError(format!(
                "--gpu {}: its MIG profiles are unknown; use one of {}, or describe it under \
                 `[[mig.table]]` in dovetail.toml",
                self.gpu,
                models_with_mig(&tables)
            ))
        })?;
        let demand = self.demand.iter().map(|text| asked(text)).collect::<Result<Vec<_>>>()?;
        let prices = hour_prices(app, &self.prices, BTreeSet::from([model.clone()]))?;
        let price = prices.get(&model).copied().flatten();
        let document = size::document((&model, table), &tables, &demand, price)?;
        match output {
            Output::Json => app.print_json(&document),
            _ => app.print(&size::text(&document)),
        }
    }

    fn run_measured(&self, app: &App, output: Output, prometheus: &str) -> Result<()> {
        let window_ms = self.window.unwrap_or(WINDOW_MS);
        if window_ms < SHORTEST_WINDOW_MS {
            let text = "--window: use at least 2d: pods that were measured for less than a day are \
                        not counted";
            return Err(UsageError(text.to_owned()).into());
        }
        let model = canonical_gpu_model(&self.gpu);
        let prices = hour_prices(app, &self.prices, BTreeSet::from([model.clone()]))?;
        let question = measured::Question {
            model: &model,
            namespaces: &self.namespace,
            window_ms,
            prometheus,
            way: &self.way,
        };
        let price = prices.get(&model).copied().flatten();
        let document = connection_runtime()?.block_on(measured::document(&question, price))?;
        match output {
            Output::Json => app.print_json(&document),
            _ => app.print(&measured::text(&document)),
        }
    }
}

/// Models that differ from a name by their memory alone, where the name is no model itself.
pub(crate) fn sizes_of(tables: &[MigTable], gpu: &str) -> Vec<String> {
    let known = tables.iter().map(|table| table.name.clone());
    let book = PriceBook::built_in();
    let known: BTreeSet<String> =
        known.chain(book.gpu_models().into_iter().map(str::to_owned)).collect();
    if known.iter().any(|model| model.eq_ignore_ascii_case(gpu)) {
        return Vec::new();
    }
    let start = format!("{}-", gpu.to_ascii_uppercase());
    let is_size = |model: &String| {
        model.strip_prefix(&start).is_some_and(|rest| {
            rest.strip_suffix("GB").is_some_and(|digits| digits.parse::<u32>().is_ok())
        })
    };
    known.into_iter().filter(is_size).collect()
}

/// The GPU models whose MIG profiles are known, for messages.
pub(crate) fn models_with_mig(tables: &[MigTable]) -> String {
    let book = PriceBook::built_in();
    let alike = book.gpu_models();
    let alike = alike.iter().filter(|model| MigTable::of_model(model).is_some());
    let named = tables.iter().map(|table| table.name.as_str());
    let known: BTreeSet<&str> = named.chain(alike.copied()).collect();
    known.into_iter().collect::<Vec<_>>().join(", ")
}

fn asked(text: &str) -> Result<(String, u64)> {
    let parts = text.split_once('=');
    let count = parts.and_then(|(_, count)| count.parse().ok()).filter(|count| *count > 0);
    match (parts, count) {
        (Some((name, _)), Some(count)) => {
            // Pods request `nvidia.com/mig-1g.10gb`.
            let profile = name.strip_prefix("nvidia.com/").unwrap_or(name);
            Ok((profile.strip_prefix("mig-").unwrap_or(profile).to_owned(), count))
        }
        _ => {
            let text = format!("--demand {text}: write PROFILE=COUNT, such as 1g.10gb=50");
            Err(UsageError(text).into())
        }
    }
}
