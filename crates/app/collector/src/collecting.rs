//! What a cluster and its Prometheus say, put into a ledger again and again, and what of it is
//! shown as metrics.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::{ArgAction, Args};
use dovetail_account::device_time::Span;
use dovetail_account::rollup::HOUR_MS;
use dovetail_account::split::{ListPrices, SplitMethod, Unused};
use dovetail_console::app::App;
use dovetail_console::clock::now_ms;
use dovetail_console::plain::plain;
use dovetail_console::table::plural;
use dovetail_costing::dimension::{Dimension, UNKNOWN};
use dovetail_costing::flags::states;
use dovetail_costing::free_moments::FreeMoments;
use dovetail_costing::from_objects::Parts;
use dovetail_costing::from_prometheus::{BillInputs, NO_GPU_WAS_SEEN};
use dovetail_costing::from_store::{Ledger, Silence, again_ms};
use dovetail_costing::parts_told::PartsTold;
use dovetail_costing::split_flags::{ListPriceFlags, SplitFlags};
use dovetail_costing::statement::Statement;
use dovetail_costing::teams::Teams;
use dovetail_costing::{from_objects, names};
use dovetail_facts::NodeStates;
use dovetail_inventory::facts::{Gathered, Inventory};
use dovetail_serve::TeamOf;
use dovetail_serve::metrics::{
    LedgerProgress, Metrics, SeriesLabels, SeriesValue, cells, fewer, teams as by_team,
};
use dovetail_settings::duration::DurationFlag;
use dovetail_settings::errors::UsageError;
use dovetail_settings::notices::NoticeSection;
use dovetail_sources::doubts::{Doubt, contested_in_words, doubts};
use dovetail_sources::exporters::Lookout;
use dovetail_sources::kubeconfig::ConnectionFlags;
use dovetail_sources::node_prices::NodeToPrice;
use dovetail_sources::objects::lists_of;
use dovetail_sources::own_prices::OwnPriceFlags;
use dovetail_sources::prometheus::{Asker, Chosen, ServerChoice, WayFlags};
use dovetail_store::{Address, Detail, Party, SumQuery, SumRow, default_method};
use dovetail_units::time::exact_time;

use super::doubts_told::DoubtsTold;
use super::from_exporters::Exporters;
use super::from_objects_alone::{ObjectsAlone, filled_until_ms, is_measured};
use super::noticing::{OwnerNotice, idle_notices, note_told};
use super::receipts::receipts;
use crate::owner_events::OwnerEvents;
use crate::weekly::WeeklyDigests;

/// More distinct notes are not told.
const MOST_NOTES: usize = 1_000;

/// Flags as written: what is read, and what it costs.
#[derive(Debug, Args)]
pub struct CollectFlags {
    /// URL of Prometheus, Thanos, Mimir or VictoriaMetrics, without /api/v1; `auto` searches the
    /// cluster for a server, `none` uses no server
    #[arg(long, value_name = "URL", default_value = "auto")]
    prometheus: ServerChoice,
    #[command(flatten)]
    way: WayFlags,
    /// GPU exporter to scrape every --step, for clusters without Prometheus: http://HOST:PORT;
    /// repeatable
    #[arg(long, value_name = "URL", action = ArgAction::Append, conflicts_with = "prometheus")]
    exporter: Vec<String>,
    /// Namespace of the GPU exporters to scrape through the API server; repeatable
    #[arg(long, value_name = "NAMESPACE", action = ArgAction::Append, conflicts_with = "prometheus")]
    exporters_in: Vec<String>,
    /// How far back to fill gaps in the ledger, for example after downtime or in a new ledger
    #[arg(long, value_name = "DURATION", default_value = "14d")]
    back: DurationFlag,
    /// Time between two samples of a GPU, such as 30s; each sample is the mean over that time
    #[arg(long, value_name = "DURATION", default_value = "1m")]
    step: DurationFlag,
    /// Name of the cluster [default: UID of the kube-system namespace]
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
    #[command(flatten)]
    split: SplitFlags,
    #[command(flatten)]
    prices: OwnPriceFlags,
    #[command(flatten)]
    list_prices: ListPriceFlags,
}

/// What every bill is made with.
struct Given {
    app: App,
    flags: CollectFlags,
    list_prices: Option<ListPrices>,
    teams: Teams,
    /// Why GPUs were free, as objects said lately.
    free: FreeMoments,
}

impl Given {
    fn sources<'s>(&'s self, gathered: Option<&'s Gathered>) -> BillInputs<'s> {
        BillInputs {
            teams: &self.teams,
            prices: &self.flags.prices,
            list_prices: self.list_prices,
            settings: &self.app.settings,
            gathered,
            free: self.free.looks(),
        }
    }
}

/// Fills one ledger with one cluster.
pub struct Collector {
    given: Given,
    /// Where objects are read; without it the series are all there is.
    connection: Option<ConnectionFlags>,
    ledger: Ledger,
    asker: Option<Asker>,
    /// Those that are asked instead of a server.
    exporters: Option<Exporters>,
    /// Scans of objects, where nothing measures GPUs.
    alone: ObjectsAlone,
    /// The objects of the last round, for what exporters say until the end.
    last_objects: Option<Gathered>,
    metrics: Arc<Metrics>,
    /// Who tells owners that their GPUs idle, if that is named.
    events: Option<OwnerEvents>,
    /// Who hands teams their weeks, if that is named.
    digests: Option<WeeklyDigests>,
    /// The cluster, once it is known.
    cluster: String,
    told: BTreeSet<String>,
    doubts: DoubtsTold,
}

/// What owners are to be told, of one kind.
type Notices = fn(&mut Ledger, &str, &Gathered, &NoticeSection, u64) -> Result<Vec<OwnerNotice>>;

/// What a round fills the ledger from.
enum RoundSource {
    /// Exporters that are asked themselves.
    Exporters,
    /// A server with their series.
    Server(Box<Asker>),
    /// The objects of the cluster: which pods have GPUs, not what those do.
    Objects,
}

/// Logged once where nothing measures GPUs.
const OBJECTS_ALONE: &str = "no metrics: the ledger records from objects which pods have GPUs and why other GPUs are \
                             free; whether allocated GPUs are busy is recorded as unknown";

/// How a round ended that did not fail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CollectionRound {
    /// Parts of the period that were read.
    pub parts: u64,
    /// What of the period was never read, in ms.
    pub missing_ms: u64,
}

impl CollectFlags {
    /// The team of a party, by flags and settings.
    pub fn team_of(&self, app: &App) -> TeamOf {
        let teams = self.split.teams(app);
        Box::new(move |party: &Party| team(&teams, party))
    }

    /// The method asked for, or that of the settings.
    pub fn method(&self, app: &App) -> Option<SplitMethod> {
        self.split.method(app)
    }

    /// Whether a cluster is read even if no flag selects one: neither the address of a Prometheus
    /// server is given, nor addresses of exporters alone.
    pub fn needs_cluster(&self) -> bool {
        match self.prometheus {
            ServerChoice::At(_) => false,
            ServerChoice::Auto | ServerChoice::None => {
                self.exporter.is_empty() || !self.exporters_in.is_empty()
            }
        }
    }

    /// Refuses what could not be collected with, before anything is read.
    fn check(&self, app: &App, connection: Option<&ConnectionFlags>) -> Result<()> {
        let refused = if connection.is_none() && self.needs_cluster() {
            Some("no cluster to read: select it with --kubeconfig or --in-cluster")
        } else if !(1_000..=HOUR_MS).contains(&self.step.ms) {
            Some(
                "--step: must be 1s to 1h: dovetail scrapes exporters at most once a second, and \
                 the ledger stores whole hours",
            )
        } else if self.back.ms < HOUR_MS {
            Some("--back: must be at least 1h: the ledger stores whole hours")
        } else if connection.is_none() && self.named(app).is_none() {
            Some(
                "a ledger can store several clusters: name this one with --cluster NAME, or read \
                 its objects with --kubeconfig or --in-cluster",
            )
        } else {
            None
        };
        if let Some(text) = refused {
            return Err(UsageError(text.to_owned()).into());
        }
        // Prices that cannot be read are told now, not in the log.
        self.prices.of(&[], &app.settings)?;
        Ok(())
    }

    /// Whether exporters are asked themselves, and no server.
    fn asks_exporters(&self) -> bool {
        !self.exporter.is_empty() || !self.exporters_in.is_empty()
    }

    /// Begins to look at the exporters that are named.
    fn look_at_exporters(&self, connection: Option<&ConnectionFlags>) -> Result<Exporters> {
        let (urls, namespaces) = (&self.exporter, &self.exporters_in);
        let lookout = Lookout::start(urls, namespaces, connection.cloned(), self.step.ms)?;
        Ok(Exporters::new(lookout, self.step.ms))
    }

    fn named(&self, app: &App) -> Option<String> {
        self.cluster.clone().or_else(|| app.settings.cost.cluster.clone())
    }
}

fn team(teams: &Teams, party: &Party) -> Option<String> {
    teams.team(&party.namespace, &party.namespace_labels, &party.labels)
}

impl Collector {
    /// Opens the ledger, and makes it where there is none. Nothing is read yet.
    ///
    /// # Errors
    /// A ledger that cannot be opened, and flags that cannot be.
    pub fn new(
        app: App,
        flags: CollectFlags,
        address: &Address,
        connection: Option<ConnectionFlags>,
        metrics: Arc<Metrics>,
    ) -> Result<Self> {
        flags.check(&app, connection.as_ref())?;
        let list_prices = flags.list_prices.prices(&app)?;
        let teams = flags.split.teams(&app);
        let ledger = Ledger::open("--store", address)?;
        let asks_exporters = flags.asks_exporters();
        let exporters = asks_exporters.then(|| flags.look_at_exporters(connection.as_ref()));
        Ok(Self {
            exporters: exporters.transpose()?,
            alone: ObjectsAlone::default(),
            last_objects: None,
            cluster: flags.named(&app).unwrap_or_else(|| UNKNOWN.to_owned()),
            given: Given { app, flags, list_prices, teams, free: FreeMoments::default() },
            connection,
            ledger,
            asker: None,
            metrics,
            events: None,
            digests: None,
            told: BTreeSet::new(),
            doubts: DoubtsTold::default(),
        })
    }

    /// Tells owners, too, that their GPUs idle.
    pub fn with_events(mut self, events: Option<OwnerEvents>) -> Self {
        self.events = events;
        self
    }

    /// Hands teams their weeks, too.
    pub fn with_digests(mut self, digests: Option<WeeklyDigests>) -> Self {
        self.digests = digests;
        self
    }

    /// Reads what is not in the ledger, keeps it, and shows how things are. `goes_on` is asked
    /// between two parts.
    ///
    /// # Errors
    /// A cluster, a server or a ledger that does not answer. What was kept before is kept, and the
    /// next round goes on from there.
    pub fn round(&mut self, goes_on: &dyn Fn() -> bool) -> Result<CollectionRound> {
        let begin_ms = now_ms();
        let round = self.read_and_show(goes_on);
        let took_ms = now_ms().saturating_sub(begin_ms);
        self.metrics.collected(&self.cluster, round.is_ok(), took_ms);
        round
    }

    fn read_and_show(&mut self, goes_on: &dyn Fn() -> bool) -> Result<CollectionRound> {
        let (gathered, refused) = self.gathered()?.unzip();
        let by_objects = gathered.as_ref().map(|objects| objects.cluster_uid.clone());
        let cluster =
            self.given.flags.named(&self.given.app).or(by_objects).filter(|name| !name.is_empty());
        let Some(cluster) = cluster else {
            bail!(unidentified(&refused.unwrap_or_default()));
        };
        self.cluster.clone_from(&cluster);
        if let Some(gathered) = &gathered
            && let Err(error) = self.look_at_moment(&cluster, gathered)
        {
            self.tell(&format!("the causes of free GPUs are unknown: {error:#}"));
        }
        let whole = self.period();
        let source = self.source(&cluster, gathered.is_some(), whole);
        let period = match (&source, &self.exporters) {
            (Ok(RoundSource::Exporters), Some(exporters)) => {
                exporters.period(&mut self.ledger, &cluster, whole)?
            }
            (Ok(RoundSource::Objects), _) => {
                self.alone.period(&mut self.ledger, &cluster, whole)?
            }
            (Ok(RoundSource::Server(_)), _) => self.after_objects(&cluster, whole)?,
            _ => whole,
        };
        let read = match (source, &gathered) {
            (Ok(RoundSource::Exporters), _) => {
                self.keep_seen(&cluster, gathered.as_ref(), period.to_ms)
            }
            (Ok(RoundSource::Server(asker)), _) => {
                self.read(*asker, &cluster, gathered.as_ref(), period, goes_on)
            }
            (Ok(RoundSource::Objects), Some(gathered)) => self.keep_allocation(&cluster, gathered),
            (Ok(RoundSource::Objects), None) => Ok(0),
            (Err(error), _) => Err(error),
        };
        // What the ledger has is shown whether or not more could be read.
        let shown = self.show(&cluster, period);
        let (parts, (missing_ms, until_ms)) = (read?, shown?);
        if let (Some(gathered), Some(until_ms)) = (&gathered, until_ms)
            && let Err(error) = self.notice(&cluster, gathered, until_ms)
        {
            tracing::warn!("cannot notify owners: {error:#}");
        }
        if let (Some(digests), Some(until_ms)) = (&mut self.digests, until_ms) {
            let how = (&self.given.teams, self.given.flags.method(&self.given.app));
            let sent = digests.send_due(&mut self.ledger, &cluster, how, (now_ms(), until_ms));
            if let Err(error) = sent {
                tracing::warn!("cannot send digests: {error:#}");
            }
        }
        if self.exporters.is_some() {
            self.last_objects = gathered;
        }
        Ok(CollectionRound { parts, missing_ms })
    }

    /// Tells owners that their GPUs idle, and what their jobs came to, where that is named. Who
    /// could not be told is told by the next round.
    fn notice(&mut self, cluster: &str, gathered: &Gathered, until_ms: u64) -> Result<()> {
        if self.events.is_none() {
            return Ok(());
        }
        let section = self.given.app.settings.notices.clone();
        let kinds: [(Option<bool>, Notices); 2] =
            [(section.idle_events, idle_notices), (section.receipts, receipts)];
        for (_, of_kind) in kinds.into_iter().filter(|(is_named, _)| *is_named == Some(true)) {
            let notices = of_kind(&mut self.ledger, cluster, gathered, &section, until_ms)?;
            let told = self.delivered(notices);
            note_told(&mut self.ledger, cluster, &told)?;
        }
        Ok(())
    }

    /// Writes notices; answers with what was told.
    fn delivered(&self, notices: Vec<OwnerNotice>) -> Vec<String> {
        let Some(events) = &self.events else { return Vec::new() };
        let mut told = Vec::new();
        for notice in notices {
            let written = match &notice.owner {
                Some(owner) => self.ledger.runtime.block_on(events.write(&notice, owner)),
                None => Ok(()),
            };
            match written {
                Ok(()) => {
                    tracing::info!("{}: {}", notice.name, notice.text);
                    told.push(notice.subject);
                }
                Err(error) => tracing::warn!("cannot notify {}: {error:#}", notice.name),
            }
        }
        told
    }

    /// Objects of this moment, and the kinds that the credentials hide, if there is a cluster to
    /// read.
    fn gathered(&mut self) -> Result<Option<(Gathered, Vec<String>)>> {
        let Some(connection) = &self.connection else { return Ok(None) };
        let mut inventory = Inventory::new(now_ms());
        let lists = self.ledger.runtime.block_on(lists_of(connection, &mut inventory))?;
        lists.complete.iter().for_each(|kind| inventory.all_of(kind));
        if !lists.refused.is_empty() {
            let kinds = lists.refused.join(", ");
            self.tell(&format!(
                "the credentials are not allowed to list {kinds}, so reports lack this data: grant \
                 the permissions in deploy/serve/rbac.yaml"
            ));
        }
        let labels = names::wanted(&self.given.teams);
        let gathered = inventory.facts_and_tenants(Default::default(), Some(&labels));
        Ok(Some((gathered, lists.refused)))
    }

    fn read(
        &mut self,
        mut asker: Asker,
        cluster: &str,
        gathered: Option<&Gathered>,
        period: Span,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<u64> {
        asker.period = period;
        let sources = self.given.sources(gathered);
        let (mut parts, mut told_of) = (0, PartsTold::default());
        let filled = self.ledger.fill_span(&mut asker, &sources, cluster, period.from_ms, |told| {
            parts += 1;
            told_of.add(told);
            goes_on()
        });
        let mut notes = told_of.in_words(&self.given.flags.prices, &self.given.app.settings)?;
        notes.extend(asker.client.notes().warnings.clone());
        match &filled {
            Ok(Silence { is_all: true, .. }) => notes.push(NO_GPU_WAS_SEEN.to_owned()),
            Ok(Silence { gaps, .. }) => notes.extend(gaps.spans().map(gap_in_words)),
            Err(_) => {}
        }
        notes.iter().for_each(|note| self.tell(note));
        filled?;
        self.asker = Some(asker);
        Ok(parts)
    }

    /// Keeps which pods had GPUs since the last round, where nothing measures what they did.
    fn keep_allocation(&mut self, cluster: &str, gathered: &Gathered) -> Result<u64> {
        let settings = &self.given.app.settings;
        let prices = self.given.flags.prices.of(&NodeToPrice::all_of(gathered), settings)?;
        let terms = (&self.given.teams, self.given.list_prices);
        self.alone.keep(&mut self.ledger, cluster, gathered, terms, prices)
    }

    /// The part of a period that series are read of: what objects alone filled stays as it is.
    fn after_objects(&mut self, cluster: &str, whole: Span) -> Result<Span> {
        // Scans end within a step, which may be after the last whole one.
        let until_now = Span { to_ms: now_ms().max(whole.to_ms), ..whole };
        let until_ms = filled_until_ms(&mut self.ledger, cluster, until_now)?;
        let step_ms = self.given.flags.step.ms;
        // A reading begins a little before its period, as samples come late.
        let first_ms = until_ms.map(|ms| ms.next_multiple_of(step_ms) + again_ms(step_ms));
        let from_ms = first_ms.unwrap_or(whole.from_ms).min(whole.to_ms);
        Ok(Span { from_ms, ..whole })
    }

    /// Keeps what exporters said until a moment; answers with how many parts that are.
    fn keep_seen(&mut self, cluster: &str, gathered: Option<&Gathered>, to_ms: u64) -> Result<u64> {
        let Some(exporters) = &mut self.exporters else { return Ok(0) };
        if let Some(standing) = exporters.standing() {
            self.metrics.asked_exporters(cluster, standing.answering, standing.silent);
        }
        let sources = self.given.sources(gathered);
        let from_ms = to_ms.saturating_sub(self.given.flags.back.ms);
        let told = exporters.keep(&mut self.ledger, &sources, cluster, (from_ms, to_ms))?;
        let Some(told) = told else { return Ok(0) };
        for gap in &told.gaps {
            tracing::warn!(
                "no GPU exporter answered {}, which leaves a gap in the ledger",
                span_in_words(*gap)
            );
        }
        let is_silent = told.is_silent;
        let mut told_of = PartsTold::default();
        told_of.add(told);
        let notes = told_of.in_words(&self.given.flags.prices, &self.given.app.settings)?;
        notes.iter().for_each(|note| self.tell(note));
        Ok(u64::from(!is_silent))
    }

    /// Keeps what was since the last round: what exporters said, told by the objects of that round,
    /// or what its objects showed.
    ///
    /// # Errors
    /// A ledger that cannot be written.
    pub fn end(&mut self) -> Result<()> {
        self.alone.end(&mut self.ledger, &self.cluster, now_ms())?;
        let objects = self.last_objects.take();
        if self.connection.is_some() && objects.is_none() {
            // Whose GPUs they are nobody knows.
            return Ok(());
        }
        let (cluster, to_ms) = (self.cluster.clone(), self.period().to_ms);
        self.keep_seen(&cluster, objects.as_ref(), to_ms).map(|_| ())
    }

    /// What should be in the ledger, in whole steps.
    fn period(&self) -> Span {
        let step_ms = self.given.flags.step.ms;
        let to_ms = now_ms() / step_ms * step_ms;
        let from_ms = to_ms.saturating_sub(self.given.flags.back.ms) / HOUR_MS * HOUR_MS;
        Span { from_ms, to_ms }
    }

    /// What a round reads: exporters, the server of the last round or one that is looked for, else
    /// objects alone.
    fn source(&mut self, cluster: &str, has_objects: bool, period: Span) -> Result<RoundSource> {
        if self.exporters.is_some() {
            return Ok(RoundSource::Exporters);
        }
        if let Some(asker) = self.asker.take() {
            return Ok(RoundSource::Server(Box::new(asker)));
        }
        let CollectFlags { way, prometheus, step, .. } = &self.given.flags;
        let Chosen { asker, told } =
            way.chosen(prometheus, self.connection.as_ref(), period, step.ms)?;
        // Where a server was read before, its time is a gap that is filled once it is back.
        let is_gap = *prometheus == ServerChoice::Auto
            && (!has_objects || is_measured(&mut self.ledger, cluster, period)?);
        if asker.is_none() && is_gap {
            bail!("{}", told.join("; "));
        }
        told.iter().for_each(|text| self.tell(text));
        Ok(match asker {
            Some(asker) => RoundSource::Server(Box::new(asker)),
            None => {
                self.tell(OBJECTS_ALONE);
                RoundSource::Objects
            }
        })
    }

    /// What the GPUs are at this moment, and why nobody has those that are free: remembered for the
    /// ledger, and shown.
    fn look_at_moment(&mut self, cluster: &str, gathered: &Gathered) -> Result<()> {
        let NodeStates { parts, contested } = states(gathered)?;
        let mut found = doubts(gathered);
        found.extend(
            contested_in_words(&contested).map(|text| Doubt { kind: "contested".to_owned(), text }),
        );
        let due = self.doubts.due(found, now_ms());
        due.iter().for_each(|text| tracing::info!("{text}"));
        self.given.free.add(gathered.facts.now_ms, &gathered.moment.nodes, &parts);
        self.show_moment(cluster, gathered, &parts)
    }

    fn show_moment(&self, cluster: &str, gathered: &Gathered, parts: &Parts<'_>) -> Result<()> {
        let prices =
            self.given.flags.prices.of(&NodeToPrice::all_of(gathered), &self.given.app.settings)?;
        let from_ms = gathered.facts.now_ms;
        let span = Span { from_ms, to_ms: from_ms + HOUR_MS };
        let terms = (&self.given.teams, self.given.list_prices);
        let account = from_objects::account(gathered, parts, terms, prices, span);
        let by = [Dimension::Team, Dimension::NodePool, Dimension::Cause];
        let method = self.given.flags.method(&self.given.app);
        let method =
            method.unwrap_or_else(|| SplitMethod::default_with(self.given.list_prices.as_ref()));
        let statement = Statement::of_account(&account, (method, Unused::Shown), &by, None)?;
        let cell = |row: &dovetail_costing::statement::StatementRow| {
            let [team, pool, cause] = row.key.as_slice() else { return None };
            let [cluster, team, pool, cause] =
                [cluster, team.as_str(), pool.as_str(), cause.as_str()].map(plain);
            let place = SeriesLabels { cluster, team, pool, cause };
            let gpu_milli_ms = row.sum.gpu_milli_ms;
            // CPU and memory of nodes without GPUs are nobody's GPUs.
            let unpriced_gpu_milli_ms = gpu_milli_ms - row.sum.priced_gpu_milli_ms;
            let cost = row.sum.cost();
            let cell = || SeriesValue { place, gpu_milli_ms, unpriced_gpu_milli_ms, cost };
            (gpu_milli_ms != 0).then(cell)
        };
        self.metrics.show_moment(&fewer(statement.rows.iter().filter_map(cell)));
        Ok(())
    }

    /// What the ledger says of the last day and of this month; answers with what is missing in it,
    /// and until when it was filled.
    fn show(&mut self, cluster: &str, period: Span) -> Result<(u64, Option<u64>)> {
        let missing = self.ledger.run(|store| store.missing(cluster, None, period))?;
        let missing_ms = missing.iter().map(|span| span.to_ms - span.from_ms).sum();
        let last = missing.last().filter(|span| span.to_ms == period.to_ms);
        let read_until_ms = last.map_or(period.to_ms, |span| span.from_ms);
        let read_until_ms = Some(read_until_ms).filter(|until| *until > period.from_ms);
        self.metrics.stands(LedgerProgress { cluster, read_until_ms, missing_ms });
        let hour = now_ms() / HOUR_MS;
        let day = self.sums(cluster, hour.saturating_sub(24), hour)?;
        let month = self.sums(cluster, month_hour(now_ms())?, hour + 1)?;
        let method = self.given.flags.method(&self.given.app);
        let team = |party: &Party| team(&self.given.teams, party);
        let of = |rows: &[SumRow]| {
            let method = method.unwrap_or_else(|| default_method(rows));
            cells(rows, method, &team)
        };
        self.metrics.show_day(&of(&day));
        self.metrics.show_month(&by_team(of(&month)));
        Ok((missing_ms, read_until_ms))
    }

    fn sums(&mut self, cluster: &str, from_hour: u64, to_hour: u64) -> Result<Vec<SumRow>> {
        if !self.ledger.run(|store| store.clusters())?.iter().any(|name| name == cluster) {
            return Ok(Vec::new());
        }
        let detail = Detail { group: true, ..Detail::default() };
        let question = SumQuery { cluster: Some(cluster.to_owned()), from_hour, to_hour, detail };
        self.ledger.run(|store| store.sums(&question))
    }

    /// Tells something once.
    fn tell(&mut self, note: &str) {
        if self.told.len() < MOST_NOTES && self.told.insert(note.to_owned()) {
            tracing::info!("{note}");
        }
    }

    /// Waits, or returns at once when it is to stop.
    pub fn wait(&self, stopped: impl Future<Output = ()>, ms: u64) {
        let pause = std::time::Duration::from_millis(ms);
        // Whether it was the time or the end, the caller looks.
        _ = self.ledger.runtime.block_on(async { tokio::time::timeout(pause, stopped).await });
    }
}

/// Time without a series, for the log.
fn gap_in_words(gap: Span) -> String {
    format!(
        "no GPU exporter data {}, which leaves a gap in the ledger; dovetail retries",
        span_in_words(gap)
    )
}

fn span_in_words(span: Span) -> String {
    format!("from {} to {}", exact_time(span.from_ms), exact_time(span.to_ms))
}

/// The hour in which the month began (UTC).
fn month_hour(now_ms: u64) -> Result<u64> {
    let now = jiff::Timestamp::from_millisecond(i64::try_from(now_ms)?)?;
    let first = now.to_zoned(jiff::tz::TimeZone::UTC).date().first_of_month();
    let begin = first.to_zoned(jiff::tz::TimeZone::UTC).context("a month has a first day")?;
    Ok(u64::try_from(begin.timestamp().as_millisecond())? / HOUR_MS)
}

/// Why a cluster has no name: its namespaces are hidden, or it lacks the one that names it.
/// `refused` are the kinds that the credentials may not list.
fn unidentified(refused: &[String]) -> String {
    let is_refused = |kind: &&str| refused.iter().any(|refused| refused == kind);
    if !is_refused(&"namespaces") {
        return "cannot identify the cluster: no UID of namespace kube-system; pass --cluster NAME"
            .to_owned();
    }
    let named: Vec<&str> = ["nodes", "pods", "namespaces"].into_iter().filter(is_refused).collect();
    let others = match refused.len() - named.len() {
        0 => String::new(),
        others => format!(", and {}", plural(others, "other kind", "other kinds")),
    };
    // A name alone helps if the GPUs and their pods can be read.
    let or_named = if named.len() == 1 { ", or pass --cluster NAME" } else { "" };
    format!(
        "cannot identify the cluster: the credentials are not allowed to list {}{others}: grant \
         them the ClusterRole of deploy/serve/rbac.yaml{or_named}",
        named.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_without_a_name_is_told_with_what_hides_it() {
        let of = |kinds: &[&str]| {
            let refused: Vec<String> = kinds.iter().map(|kind| (*kind).to_owned()).collect();
            unidentified(&refused)
        };
        let role = "grant them the ClusterRole of deploy/serve/rbac.yaml";
        let may_not = "cannot identify the cluster: the credentials are not allowed to list";
        assert_eq!(
            of(&["jobs.batch", "namespaces", "nodes", "pods", "services"]),
            format!("{may_not} nodes, pods, namespaces, and 2 other kinds: {role}")
        );
        let only = of(&["namespaces"]);
        assert_eq!(only, format!("{may_not} namespaces: {role}, or pass --cluster NAME"));
        // The namespace itself is missing.
        for kinds in [&["pods"][..], &[]] {
            assert!(of(kinds).ends_with("no UID of namespace kube-system; pass --cluster NAME"));
        }
    }
}
