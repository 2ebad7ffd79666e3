//! What a bill is made from, and how: the flags of every question about costs.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, ValueEnum};
use dovetail_account::device_time::Span;
use dovetail_account::rollup::HOUR_MS;
use dovetail_account::split::{ListPrices, SplitMethod, Unused};
use dovetail_console::app::App;
use dovetail_console::plain::plain;
use dovetail_console::table::counted;
use dovetail_facts::{MONTH_MS, NodeStates, node_parts};
use dovetail_inventory::facts::Gathered;
use dovetail_settings::errors::UsageError;
use dovetail_sources::doubts::{contested_in_words, doubts};
use dovetail_sources::exporters::ExporterFlags;
use dovetail_sources::node_prices::NodeToPrice;
use dovetail_sources::objects::{ObjectFlags, Read, with_example};
use dovetail_sources::own_prices::OwnPriceFlags;
use dovetail_sources::prometheus::{Asker, Chosen, ServerChoice, ServerFlags};
use dovetail_sources::uses::{UsageFileFlags, Uses, apply};

use super::account::Account;
use super::billed::{self, BillOut};
use super::from_objects::{self, Parts};
use super::from_prometheus::{self, BillInputs, Look};
use super::names;
use super::split_flags::{ListPriceFlags, SplitFlags};
use super::teams::Teams;

/// Flags as written.
#[derive(Debug, Args)]
pub struct AccountFlags {
    #[command(flatten)]
    pub objects: ObjectFlags,
    #[command(flatten)]
    pub measured: UsageFileFlags,
    /// To bill a period: URL of Prometheus, Thanos, Mimir or VictoriaMetrics, without /api/v1;
    /// `auto` searches the cluster for a server, `none` uses no server
    #[arg(long, value_name = "URL", default_value = "auto", conflicts_with = "usage")]
    pub prometheus: ServerChoice,
    #[command(flatten)]
    pub server: ServerFlags,
    #[command(flatten)]
    exporters: ExporterFlags,
    #[command(flatten)]
    pub split: SplitFlags,
    /// How to charge unused capacity of nodes
    #[arg(long, value_enum, value_name = "MODE", default_value = "shown")]
    pub unused: UnusedFlag,
    /// Name of the cluster [default: UID of the kube-system namespace]
    #[arg(long, value_name = "NAME")]
    pub cluster: Option<String>,
    /// Provider's bill: a FOCUS or AWS CUR file in CSV; nodes in the bill cost what was billed
    #[arg(long, value_name = "FILE", help_heading = "Prices")]
    pub bill: Option<PathBuf>,
    #[command(flatten)]
    pub prices: OwnPriceFlags,
    #[command(flatten)]
    pub list_prices: ListPriceFlags,
}

/// Who pays for what no pod uses.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum UnusedFlag {
    /// In separate rows
    Shown,
    /// To the pods of the node, in proportion to their share of the same resource
    Distributed,
}

/// How a bill is made.
pub struct BillTerms {
    pub teams: Teams,
    pub list_prices: Option<ListPrices>,
    pub method: SplitMethod,
    pub unused: Unused,
}

/// What a bill is made from.
pub enum BillSource {
    Moment(Box<AtMoment>),
    Server(Box<OverTime>),
}

/// Objects of one moment, with what GPUs did if somebody measured it.
pub struct AtMoment {
    pub gathered: Gathered,
    pub uses: Option<Uses>,
    pub sources: Vec<String>,
    /// What looking for a server and at objects brought to light.
    pub told: Vec<String>,
}

/// A server that is asked about a period, with the objects that are read beside it.
pub struct OverTime {
    pub asker: Asker,
    pub objects: Option<AtMoment>,
    pub told: Vec<String>,
}

impl AccountFlags {
    /// How the bill is made.
    ///
    /// # Errors
    /// Prices that cannot be, a method that needs others, or a period of the example.
    pub fn terms(&self, app: &App) -> Result<BillTerms> {
        if self.objects.example {
            self.server.refuse_period_of_example(&self.prometheus)?;
        }
        let list_prices = self.list_prices.prices(app)?;
        let method = self.split.method(app);
        let method = method.unwrap_or_else(|| SplitMethod::default_with(list_prices.as_ref()));
        if method == SplitMethod::Residual && list_prices.is_none() {
            let text = "the method residual needs list prices of CPU and memory: pass --vcpu-price \
                 and --gib-price, or use --method all-in";
            return Err(UsageError(text.to_owned()).into());
        }
        Ok(BillTerms { teams: self.split.teams(app), list_prices, method, unused: self.unused() })
    }

    /// Who pays for what no pod uses.
    pub fn unused(&self) -> Unused {
        match self.unused {
            UnusedFlag::Shown => Unused::Shown,
            UnusedFlag::Distributed => Unused::Distributed,
        }
    }

    /// Where figures come from, with the objects read.
    ///
    /// # Errors
    /// Nothing that is named, or something that cannot be read.
    pub fn source(&self, app: &App, teams: &Teams) -> Result<BillSource> {
        if self.exporters.are_given() {
            let looked = self.exporters.read(app, self.objects.server())?;
            let read = self.read_objects(app)?.with_all_nodes_and_pods()?;
            let moment =
                self.gathered_from(app, teams, read, |gathered| Ok(Some(looked.uses(gathered))))?;
            return Ok(BillSource::Moment(Box::new(moment)));
        }
        let told = {
            let choice = self.measured.or_else(&self.prometheus);
            let chosen = self.server.chosen(choice, self.objects.server());
            let Chosen { asker, mut told } = chosen.map_err(with_example)?;
            if let Some(asker) = asker {
                // A server in a cluster comes with the objects of the cluster.
                let is_auto = *choice == ServerChoice::Auto;
                let objects = (is_auto || self.objects.is_given())
                    .then(|| self.gathered(app, teams))
                    .transpose()?;
                return Ok(BillSource::Server(Box::new(OverTime { asker, objects, told })));
            }
            told.extend(self.server.without_effect());
            told
        };
        let read = self.read_objects(app)?.with_all_nodes_and_pods()?;
        let of_file = |gathered: &Gathered| self.measured.read(gathered, self.objects.example);
        let mut moment = self.gathered_from(app, teams, read, of_file)?;
        moment.told.splice(0..0, told);
        Ok(BillSource::Moment(Box::new(moment)))
    }

    /// Objects, and where they were read: beside a server that knows more.
    pub fn gathered(&self, app: &App, teams: &Teams) -> Result<AtMoment> {
        let of_file = |gathered: &Gathered| self.measured.read(gathered, self.objects.example);
        self.gathered_from(app, teams, self.read_objects(app)?, of_file)
    }

    fn read_objects(&self, app: &App) -> Result<Read> {
        Ok(self.objects.read(app)?.noting_its_only_namespace(app))
    }

    /// Objects, and where they were read, with what somebody saw of their GPUs.
    fn gathered_from(
        &self,
        app: &App,
        teams: &Teams,
        read: Read,
        seen: impl FnOnce(&Gathered) -> Result<Option<Uses>>,
    ) -> Result<AtMoment> {
        let mut labels = names::wanted(teams);
        labels.extend(names::of_runs(&app.settings.cost));
        let mut gathered = read.inventory.facts_and_tenants(Default::default(), Some(&labels));
        gathered.facts.thresholds = app.settings.audit.thresholds();
        let mut sources = read.sources;
        let uses = seen(&gathered)?;
        let mut told = Vec::new();
        if let Some(uses) = &uses {
            told = apply(&mut gathered, uses);
            sources.push(uses.source.clone());
        }
        told.extend(doubts(&gathered).into_iter().map(|doubt| doubt.text));
        if let Some(first) = gathered.skipped.first() {
            let objects = counted(usize::try_from(gathered.skipped_count).unwrap_or(0), "object");
            told.push(plain(&format!(
                "objects that could not be read are not included in any figure: {objects} (first: \
                 {first})"
            )));
        }
        Ok(AtMoment { gathered, uses, sources, told })
    }

    /// The account of the source; of a snapshot for a month, or for its hour.
    ///
    /// # Errors
    /// A server that does not answer, prices that cannot be, a bill that cannot be read.
    pub fn account(
        &self,
        app: &App,
        terms: &BillTerms,
        is_hour: bool,
    ) -> Result<(Account, Option<BillOut>)> {
        match self.source(app, &terms.teams)? {
            BillSource::Moment(mut moment) => {
                let parts = parts(&moment.gathered, &mut moment.told)?;
                self.of_moment(app, terms, &moment, &parts, is_hour)
            }
            BillSource::Server(mut over) => {
                let (account, bill, _) = self.over_time(app, terms, &mut over)?;
                Ok((account, bill))
            }
        }
    }

    /// The account of a snapshot.
    pub fn of_moment(
        &self,
        app: &App,
        terms: &BillTerms,
        moment: &AtMoment,
        parts: &Parts<'_>,
        is_hour: bool,
    ) -> Result<(Account, Option<BillOut>)> {
        let gathered = &moment.gathered;
        let prices = self.prices.of(&NodeToPrice::all_of(gathered), &app.settings)?;
        let from_ms = gathered.facts.now_ms;
        let span = match is_hour {
            // A charge period of FOCUS is an hour, not a month that has not been.
            true => Span {
                from_ms: from_ms / HOUR_MS * HOUR_MS,
                to_ms: (from_ms / HOUR_MS + 1) * HOUR_MS,
            },
            false => Span { from_ms, to_ms: from_ms.saturating_add(MONTH_MS) },
        };
        let teams = (&terms.teams, terms.list_prices);
        let mut account = from_objects::account(gathered, parts, teams, prices, span);
        account.sources.clone_from(&moment.sources);
        account.notes.extend(moment.told.iter().cloned());
        let bill = self.finish(app, &mut account)?;
        Ok((account, bill))
    }

    /// The account of a period, with all that it was made from.
    pub fn over_time(
        &self,
        app: &App,
        terms: &BillTerms,
        over: &mut OverTime,
    ) -> Result<(Account, Option<BillOut>, Look)> {
        let OverTime { asker, objects, told } = over;
        let sources = BillInputs {
            teams: &terms.teams,
            prices: &self.prices,
            list_prices: terms.list_prices,
            settings: &app.settings,
            gathered: objects.as_ref().map(|objects| &objects.gathered),
            free: &[],
        };
        let look = Look::of(asker, &sources)?;
        let mut account = from_prometheus::account(asker, &look, &sources)?;
        asker.tell_warnings(app);
        for objects in objects.iter() {
            account.sources.extend(objects.sources.iter().cloned());
            account.notes.extend(objects.told.iter().cloned());
        }
        account.notes.splice(0..0, told.iter().cloned());
        let bill = self.finish(app, &mut account)?;
        Ok((account, bill, look))
    }

    /// Puts what was billed in place of list prices, where there is a bill.
    ///
    /// # Errors
    /// A bill that cannot be read.
    pub fn billed(&self, app: &App, account: &mut Account) -> Result<Option<BillOut>> {
        let Some(path) = &self.bill else { return Ok(None) };
        billed::apply(account, path, &self.prices.exchange(&app.settings)?).map(Some)
    }

    /// Names the cluster, and puts a bill in place of list prices.
    fn finish(&self, app: &App, account: &mut Account) -> Result<Option<BillOut>> {
        if let Some(name) = self.cluster.as_ref().or(app.settings.cost.cluster.as_ref()) {
            account.cluster.clone_from(name);
        }
        self.billed(app, account)
    }
}

/// What the GPUs of each node are.
///
/// # Errors
/// An engine that cannot take the objects.
pub fn states(gathered: &Gathered) -> Result<NodeStates<'_>> {
    use anyhow::Context;
    node_parts(&gathered.facts, &gathered.moment).context("cannot determine why GPUs are free")
}

/// The same, and what is to be told of it beside what was told before.
pub fn parts<'g>(gathered: &'g Gathered, told: &mut Vec<String>) -> Result<Parts<'g>> {
    let NodeStates { parts, contested } = states(gathered)?;
    told.extend(contested_in_words(&contested));
    Ok(parts)
}
