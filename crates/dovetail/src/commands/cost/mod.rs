//! `dovetail cost`: who pays what for GPUs, and for what.

mod account;
mod billed;
mod dimension;
mod document;
mod focus;
mod from_objects;
#[cfg(feature = "scheduler")]
mod from_prometheus;
#[cfg(feature = "scheduler")]
mod from_store;
mod names;
#[cfg(feature = "scheduler")]
mod reading;
mod rows_csv;
mod statement;
mod teams;
mod terminal;

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;
use clap::{ArgAction, Args, ValueEnum};
use dovetail_audit::MONTH_MS;
use dovetail_bill::focus::Version;
use dovetail_kube::facts::Gathered;
use dovetail_ledger::device_time::Span;
use dovetail_ledger::split::{ListPrices, SplitMethod, Unused};
use dovetail_price::parse_usd_micros;

use crate::app::App;
use crate::exit::UsageError;
use crate::input::node_prices::{NodePriceFlags, NodeToPrice};
use crate::input::objects::ObjectFlags;
#[cfg(feature = "scheduler")]
use crate::input::prometheus::{Asker, Chosen, ServerChoice, ServerFlags};
use crate::input::uses::{UsageFileFlags, apply};
use crate::output::Output;
use crate::output::table::counted;
use account::Account;
use dimension::Dimension;
use document::Document;
use statement::Statement;
use teams::Teams;

const HOUR_MS: u64 = 3_600_000;

/// Flags as written.
#[derive(Debug, Args)]
pub(crate) struct CostFlags {
    #[command(flatten)]
    objects: ObjectFlags,
    #[command(flatten)]
    measured: UsageFileFlags,
    /// Address of Prometheus, Thanos, Mimir or VictoriaMetrics, without /api/v1: the bill of a period; `auto`
    /// looks for one in the cluster of --kubeconfig, `none` looks at objects alone
    #[cfg(feature = "scheduler")]
    #[arg(long, value_name = "URL", default_value = "auto", conflicts_with = "usage")]
    prometheus: ServerChoice,
    #[cfg(feature = "scheduler")]
    #[command(flatten)]
    server: ServerFlags,
    /// A ledger: a file, or postgres://USER@HOST/DATABASE. What is read of --prometheus is kept in it, only what
    /// it does not have of the period is read, and the answer comes out of it; without --prometheus nothing
    /// is read
    #[cfg(feature = "scheduler")]
    #[arg(long, value_name = "LEDGER", conflicts_with_all = ["focus", "bill", "usage", "example"])]
    store: Option<String>,
    /// One row for each of these; several, separated by commas, such as team,cause
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "WHAT",
        default_value = "namespace"
    )]
    by: Vec<Dimension>,
    /// How a node's price is split over CPU, memory and GPUs: all-in, residual, aws-split, opencost,
    /// datadog [default: residual where CPU and memory have list prices, else all-in]
    #[arg(long, value_name = "NAME")]
    method: Option<SplitMethod>,
    /// Who pays for what nobody has
    #[arg(long, value_enum, value_name = "WHO", default_value = "shown")]
    unused: UnusedFlag,
    /// Label that names the team, first the namespace's, then the pod's; can be given several times
    /// [default: team, cost-center, owner, ...]
    #[arg(long, value_name = "LABEL", action = ArgAction::Append)]
    team_label: Vec<String>,
    /// Name of the cluster [default: the identity of its namespace kube-system]
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
    /// Print a FOCUS dataset of this version instead: 1.2, 1.3 or 1.4; of one moment an hour of it
    #[arg(long, value_name = "VERSION", conflicts_with = "by")]
    focus: Option<Version>,
    /// What the provider billed, as CSV: a FOCUS file or an AWS cost and usage report; nodes that are in it
    /// cost what was billed instead of list prices
    #[arg(long, value_name = "FILE", help_heading = "Prices")]
    bill: Option<PathBuf>,
    #[command(flatten)]
    prices: NodePriceFlags,
    /// List price of a vCPU-hour, such as 0.04
    #[arg(long, value_name = "USD", requires = "gib_price", help_heading = "Prices")]
    vcpu_price: Option<String>,
    /// List price of a GiB-hour of memory, such as 0.005
    #[arg(long, value_name = "USD", requires = "vcpu_price", help_heading = "Prices")]
    gib_price: Option<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum UnusedFlag {
    /// Nobody: it has rows of its own
    Shown,
    /// The pods of the node, by what each has of the same resource
    Distributed,
}

/// Reads, splits and prints.
pub(crate) fn run(app: &App, flags: &CostFlags) -> Result<()> {
    let output = app.output("cost", &[Output::Table, Output::Json, Output::Csv])?;
    let by = flags.dimensions()?;
    let list_prices = flags.list_prices(app)?;
    let teams = Teams::new(&app.settings.cost, &flags.team_label);
    #[cfg(feature = "scheduler")]
    if let Some(ledger) = &flags.store {
        let document = from_store::document(app, flags, ledger, &by, &teams, list_prices)?;
        return print(app, output, &document);
    }
    let method = flags.method(app, list_prices.as_ref());
    if method == SplitMethod::Residual && list_prices.is_none() {
        let text = "the method residual needs list prices of CPU and memory: give --vcpu-price and \
                    --gib-price, or use --method all-in";
        return Err(UsageError(text.to_owned()).into());
    }
    let mut account = flags.account(app, &teams, list_prices)?;
    if let Some(name) = flags.cluster.as_ref().or(app.settings.cost.cluster.as_ref()) {
        account.cluster.clone_from(name);
    }
    let unused = match flags.unused {
        UnusedFlag::Shown => Unused::Shown,
        UnusedFlag::Distributed => Unused::Distributed,
    };
    let bill = flags.bill.as_deref().map(|path| billed::apply(&mut account, path)).transpose()?;
    if let Some(version) = flags.focus {
        let (dataset, without_price) = focus::dataset(&account, method, unused, version)?;
        if without_price > 0 {
            let periods = counted(without_price, "node-period");
            app.note(&format!("{periods} without a price: not in it"));
        }
        account.notes.iter().for_each(|note| app.note(note));
        return app.print(&dataset);
    }
    let statement = Statement::of(&account, method, unused, &by)?;
    print(app, output, &Document::of(&account, &statement, bill, now_ms()))
}

fn print(app: &App, output: Output, document: &Document) -> Result<()> {
    match output {
        Output::Json => app.print_json(document),
        Output::Csv => {
            document.notes.iter().for_each(|note| app.note(note));
            app.print(&rows_csv::rows_csv(document)?)
        }
        _ => app.print(&terminal::terminal(document)),
    }
}

fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_millis() as u64
}

impl CostFlags {
    fn dimensions(&self) -> Result<Vec<Dimension>> {
        let names: Vec<String> = self.by.iter().map(|by| by.name()).collect();
        crate::exit::refuse_twice("--by", names.iter().map(String::as_str))?;
        Ok(self.by.clone())
    }

    /// The method asked for, that of the settings, or what list prices allow.
    fn method(&self, app: &App, list_prices: Option<&ListPrices>) -> SplitMethod {
        let set = || app.settings.cost.method.as_ref().and_then(|name| name.parse().ok());
        self.method.or_else(set).unwrap_or_else(|| SplitMethod::default_with(list_prices))
    }

    fn list_prices(&self, app: &App) -> Result<Option<ListPrices>> {
        let section = &app.settings.cost;
        let pair = |vcpu: &Option<String>, gib: &Option<String>| vcpu.clone().zip(gib.clone());
        let given = pair(&self.vcpu_price, &self.gib_price)
            .or_else(|| pair(&section.usd_per_vcpu_hour, &section.usd_per_gib_hour));
        let Some((vcpu, gib)) = given else { return Ok(None) };
        let micros = |flag: &str, text: &str| {
            let micros = parse_usd_micros(text).map_err(|problem| format!("{flag}: {problem}"));
            let small = micros.and_then(|micros| {
                u32::try_from(micros)
                    .map_err(|_| format!("{flag} {text}: above 4294 USD an hour: check the unit"))
            });
            small.map_err(UsageError)
        };
        Ok(Some(ListPrices {
            usd_micros_per_vcpu_hour: micros("--vcpu-price", &vcpu)?,
            usd_micros_per_gib_hour: micros("--gib-price", &gib)?,
        }))
    }

    fn account(
        &self,
        app: &App,
        teams: &Teams,
        list_prices: Option<ListPrices>,
    ) -> Result<Account> {
        #[cfg(feature = "scheduler")]
        let told = {
            let choice = self.measured.or_else(&self.prometheus);
            let Chosen { asker, told } = self.server.chosen(choice, self.objects.server())?;
            if let Some(asker) = asker {
                let mut account = self.sampled(app, teams, list_prices, asker)?;
                account.notes.splice(0..0, told);
                return Ok(account);
            }
            told
        };
        #[cfg(not(feature = "scheduler"))]
        let told: Vec<String> = Vec::new();
        let (gathered, sources) = self.gathered(app, teams)?;
        let prices = self.prices.of(&NodeToPrice::all_of(&gathered), &app.settings.cost)?;
        let from_ms = gathered.facts.now_ms;
        let span = match self.focus {
            // A charge period of FOCUS is an hour, not a month that has not been.
            Some(_) => Span {
                from_ms: from_ms / HOUR_MS * HOUR_MS,
                to_ms: (from_ms / HOUR_MS + 1) * HOUR_MS,
            },
            None => Span { from_ms, to_ms: from_ms.saturating_add(MONTH_MS) },
        };
        let mut account = from_objects::account(&gathered, teams, prices, list_prices, span)?;
        account.sources = sources;
        account.notes.splice(0..0, told);
        Ok(account)
    }

    /// Objects, and where they were read.
    fn gathered(&self, app: &App, teams: &Teams) -> Result<(Gathered, Vec<String>)> {
        let read = self.objects.read(app, "split the cost of")?;
        let labels = names::wanted(teams);
        let mut gathered = read.inventory.facts_and_tenants(Default::default(), Some(&labels));
        let mut sources = read.sources;
        if let Some(uses) = self.measured.read(&gathered, self.objects.example)? {
            apply(app, &mut gathered, &uses);
            sources.push(uses.source);
        }
        Ok((gathered, sources))
    }

    /// The account of a period.
    #[cfg(feature = "scheduler")]
    fn sampled(
        &self,
        app: &App,
        teams: &Teams,
        list_prices: Option<ListPrices>,
        mut asker: Asker,
    ) -> Result<Account> {
        let read = match self.objects.is_given() {
            true => Some(self.gathered(app, teams)?),
            false => None,
        };
        let (gathered, of_objects) = read.unzip();
        let sources = from_prometheus::Sources {
            teams,
            prices: &self.prices,
            list_prices,
            own: &app.settings.cost,
            gathered: gathered.as_ref(),
        };
        let mut account = from_prometheus::account(&mut asker, &sources)?;
        asker.tell_warnings(app);
        account.sources.extend(of_objects.unwrap_or_default());
        Ok(account)
    }
}
