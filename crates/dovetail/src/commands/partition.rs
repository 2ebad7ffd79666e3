//! `dovetail partition`: how GPUs are cut into MIG instances, and how few of them a demand needs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, Subcommand};
use dovetail_account::Priced;
use dovetail_console::app::App;
use dovetail_model::MigTable;
use dovetail_partition::Rules;
use dovetail_partitioning::fleet::{Tables, model_of};
use dovetail_partitioning::policy::{self, Policy};
use dovetail_partitioning::{cluster, plan, size, world_file};
use dovetail_price::PriceBook;
use dovetail_settings::errors::UsageError;
use dovetail_settings::form::Output;
use dovetail_sources::objects::ObjectFlags;
use dovetail_sources::prices::PriceFlags;

/// Commands for GPUs that several pods share.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Plan MIG layouts for pending pods: what each GPU would become, which pods would fit
    Plan(Box<PlanFlags>),
    /// Compute how few GPUs of a model hold a list of MIG instances
    Size(Box<SizeFlags>),
}

#[derive(Debug, Args)]
pub(crate) struct PlanFlags {
    #[command(flatten)]
    source: ObjectFlags,
    /// A world in one JSON file: instances in use on each GPU, and pending pods by profile
    #[arg(long, value_name = "FILE", conflicts_with_all = ["from", "example", "kubeconfig"])]
    world: Option<PathBuf>,
    /// A SharingPolicy as JSON: nodes and profiles to plan with, GPUs that stay whole
    #[arg(long, value_name = "FILE", conflicts_with = "world")]
    policy: Option<PathBuf>,
    #[command(flatten)]
    prices: PriceFlags,
}

/// What to hold.
#[derive(Debug, Args)]
pub(crate) struct SizeFlags {
    /// GPU model, such as A100-80GB
    #[arg(long, value_name = "MODEL")]
    gpu: String,
    /// Instances to hold, such as 1g.10gb=50; can be given several times
    #[arg(long, value_name = "PROFILE=COUNT", required = true, num_args = 1..)]
    demand: Vec<String>,
    #[command(flatten)]
    prices: PriceFlags,
}

impl Command {
    pub(crate) fn run(self, app: &App) -> Result<()> {
        match self {
            Self::Plan(flags) => flags.run(app),
            Self::Size(flags) => flags.run(app),
        }
    }
}

/// Own tables before the built-in ones.
fn tables(app: &App) -> Tables {
    app.settings.mig_tables.iter().cloned().chain(MigTable::all()).collect()
}

/// Dollars of a GPU-hour of each model.
fn hour_prices(
    app: &App,
    flags: &PriceFlags,
    models: BTreeSet<String>,
) -> Result<BTreeMap<String, Option<i64>>> {
    let priced = flags.of_models(models.into_iter().map(Some).collect(), &app.settings)?;
    let known = priced.into_iter().filter_map(|(model, price)| {
        let price = match price {
            Priced::Known(price) => Some(price.usd_micros_per_gpu_hour),
            Priced::Unknown => None,
        };
        Some((model?, price))
    });
    Ok(known.collect())
}

impl PlanFlags {
    fn run(&self, app: &App) -> Result<()> {
        let output = app.output("partition plan")?;
        let tables = tables(app);
        let policy = match &self.policy {
            Some(path) => policy::read(path, &tables)?,
            None => Policy::default(),
        };
        let fleet = match &self.world {
            Some(path) => world_file::read(path, &tables)?,
            None => cluster::read(app, &self.source, &policy, &tables)?,
        };
        let prices = hour_prices(app, &self.prices, fleet.models.iter().cloned().collect())?;
        let rules = Rules { keep_whole: fleet.keep_whole.clone(), ..Rules::default() };
        let document = plan::document(&fleet, &rules, &prices)?;
        match output {
            Output::Json => app.print_json(&document),
            _ => app.print(&plan::text(&document, &fleet)),
        }
    }
}

impl SizeFlags {
    fn run(&self, app: &App) -> Result<()> {
        let output = app.output("partition size")?;
        let tables = tables(app);
        let (model, table) = model_of(&tables, &self.gpu).ok_or_else(|| {
            let book = PriceBook::built_in();
            let alike = book.gpu_models();
            let alike = alike.iter().filter(|model| MigTable::of_model(model).is_some());
            let named = tables.iter().map(|table| table.name.as_str());
            let known: BTreeSet<&str> = named.chain(alike.copied()).collect();
            let known: Vec<&str> = known.into_iter().collect();
            UsageError(format!(
                "--gpu {}: no table says how MIG cuts it: use one of {}, or describe it under \
                 `[[mig.table]]` in dovetail.toml",
                self.gpu,
                known.join(", ")
            ))
        })?;
        let demand = self.demand.iter().map(|text| asked(text)).collect::<Result<Vec<_>>>()?;
        let prices = hour_prices(app, &self.prices, BTreeSet::from([model.clone()]))?;
        let price = prices.get(&model).copied().flatten();
        let document = size::document(&model, table, &demand, price)?;
        match output {
            Output::Json => app.print_json(&document),
            _ => app.print(&size::text(&document)),
        }
    }
}

fn asked(text: &str) -> Result<(String, u64)> {
    let parts = text.split_once('=');
    let count = parts.and_then(|(_, count)| count.parse().ok()).filter(|count| *count > 0);
    match (parts, count) {
        (Some((profile, _)), Some(count)) => Ok((profile.to_owned(), count)),
        _ => {
            let text = format!("--demand {text}: write PROFILE=COUNT, such as 1g.10gb=50");
            Err(UsageError(text).into())
        }
    }
}
