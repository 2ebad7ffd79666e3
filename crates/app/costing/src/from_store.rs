//! A bill out of a ledger, which keeps what was read and is read once.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::future::Future;

use anyhow::{Result, bail};
use dovetail_account::device_time::Span;
use dovetail_account::rollup::{Coverage, DAY_MS, FreeLook, HOUR_MS};
use dovetail_account::split::{ListPrices, SplitMethod, Unused};
use dovetail_console::app::App;
use dovetail_console::clock::now_ms;
use dovetail_console::connection::connection_runtime;
use dovetail_console::plain::plain;
use dovetail_console::table::counted;
use dovetail_inventory::facts::Gathered;
use dovetail_settings::errors::UsageError;
use dovetail_sources::prometheus::{Asker, Chosen};
use dovetail_store::{
    Address, DayResolution, Detail, Party, Retention, Store, StoreError, SumQuery, SumRow, TopJobs,
    default_method,
};
use dovetail_units::duration::duration;
use dovetail_units::time::time;

use super::account::{Account, Basis, DayOf, cut};
use super::bill_flags::BillFlags;
use super::dimension::{ChargeKeys, Dimension, PodNames};
use super::document::Document;
use super::flags::{AccountFlags, BillTerms, states};
use super::free_moments::of_one_moment;
use super::from_ledger;
use super::from_prometheus::{BillInputs, NO_GPU_WAS_SEEN};
use super::parts_told::PartsTold;
use super::reading::{self, ReadPart};
use super::same_names::SameNames;
use super::silence::{bridge, cut_to_what_was_heard};
use super::statement::{ChargedAmount, Statement, StatementLine, StatementLines};
use super::teams::Teams;
use super::top::Top;
use super::turns::in_parts;
use super::without_price::{is_unpriced, unpriced_rows};

/// So much is read at a time: what a server answers at once, and what is lost where the program is
/// ended.
const CHUNK_MS: u64 = 6 * HOUR_MS;

/// What was read last is read again from so far back: samples come late, and steps at the edge
/// stand alone.
const AGAIN_MS: u64 = 300_000;

/// What a server had nothing of is asked for again after so long.
const ASK_AGAIN_MS: u64 = HOUR_MS;

/// The ledger itself tells so many of the dearest jobs apart from all others.
const MOST_RANKED: u32 = 1000;

/// A ledger with a thread for its connection.
pub struct Ledger {
    pub store: Store,
    pub runtime: tokio::runtime::Runtime,
    /// When parts of a period were last asked for in vain, by their ends.
    silent: BTreeMap<u64, u64>,
}

/// What a server was silent about.
pub struct Silence {
    /// Parts without any series of an exporter, in ascending time.
    pub gaps: Coverage,
    /// Whether there was nothing else.
    pub is_all: bool,
}

/// So far back from what is missing samples are read again, in whole steps.
pub fn again_ms(step_ms: u64) -> u64 {
    AGAIN_MS.max(3 * step_ms).next_multiple_of(step_ms)
}

/// What a ledger answers with.
pub enum LedgerResult {
    /// A bill.
    Document(Box<Document>),
    /// What a FOCUS dataset is made from, and how.
    Account(Box<Account>, Box<BillTerms>),
}

/// Keeps what is missing, where there is somebody to ask, and answers.
pub fn answer(
    app: &App,
    flags: &BillFlags,
    ledger: &str,
    by: &[Dimension],
) -> Result<LedgerResult> {
    let (is_focus, own, mut top) = (flags.focus.is_some(), flags.only()?, flags.top());
    let flags = &flags.account;
    let (teams, list_prices) = (&flags.split.teams(app), flags.list_prices.prices(app)?);
    let Chosen { asker, told } =
        flags.server.chosen(&flags.prometheus, flags.objects.named_server())?;
    refuse_what_does_nothing(flags, asker.is_some() || own.is_some())?;
    let address: Address = ledger.parse().map_err(|error| bad_address("--store", error))?;
    if asker.is_none() {
        require_file("--store", &address, ", and so does --prometheus URL")?;
    }
    let period = flags.server.span()?;
    let mut ledger = Ledger::open("--store", &address)?;
    let mut account = Account {
        span: whole_hours(period, asker.is_some() || flags.server.is_between()),
        basis: Basis::Ledger,
        sources: vec![address.to_string()],
        notes: told,
        ..Account::default()
    };
    let mut asked = flags.cluster.clone();
    let is_filled = asker.is_some();
    if let Some(asker) = asker {
        asked = Some(ledger.fill(app, flags, (teams, list_prices), asker, &mut account)?);
    }
    ledger.begin_with_a_day(asked.as_deref(), detail(by), &mut account)?;
    let question = SumQuery {
        cluster: asked,
        from_hour: account.span.from_ms / HOUR_MS,
        to_hour: account.span.to_ms / HOUR_MS,
        detail: detail(by),
    };
    ledger.tell_gaps(&question, period, &mut account)?;
    if let Some(name) = &question.cluster {
        account.cluster.clone_from(name);
    }
    account.restrict_to(own);
    let restated = teams.restated().filter(|_| by.contains(&Dimension::Team));
    account.notes.extend(restated.map(str::to_owned));
    if is_focus || flags.bill.is_some() || flags.unused() == Unused::Distributed {
        return anew(app, flags, &mut ledger, account, (by, top, is_focus));
    }
    let known = ledger.run(Store::clusters)?;
    // What was just asked for in vain has nothing yet.
    let is_empty = is_filled && question.cluster.iter().any(|name| !known.contains(name));
    let question = Some(question).filter(|_| !is_empty);
    let chosen = flags.split.method(app);
    let found = summed(&mut ledger, question.as_ref(), &account, by, (&mut top, chosen))?;
    tell_unpriced(&mut ledger, question, &mut account, &found)?;
    let method = chosen.unwrap_or_else(|| default_method(found.rows.iter().chain(&found.others)));
    let lines = lines(&found, by, teams, method);
    let statement = Statement::of((&lines, &lines), (method, Unused::Shown), by, top);
    let document = Document::of(&account, &statement, None, now_ms());
    Ok(LedgerResult::Document(Box::new(document)))
}

/// What was asked, of those that the account charges. Where only the dearest jobs are shown, the
/// ledger tells all others as one.
fn summed(
    ledger: &mut Ledger,
    question: Option<&SumQuery>,
    account: &Account,
    by: &[Dimension],
    (top, method): (&mut Option<Top>, Option<SplitMethod>),
) -> Result<TopJobs> {
    let Some(question) = question else { return Ok(TopJobs::default()) };
    if let Some(top) = top
        && by == [Dimension::Job]
        && account.only.is_none()
        && top.most <= MOST_RANKED
    {
        let found = ledger.run(|store| TopJobs::of(store, question, top.most, method))?;
        top.told_as_one = found.other_jobs;
        return Ok(found);
    }
    let mut rows = ledger.run(|store| store.sums(question))?;
    rows.retain(|row| account.charges(row.party.as_ref().map(|party| party.namespace.as_str())));
    Ok(TopJobs { rows, ..TopJobs::default() })
}

/// Says which models have no price, where any of what was found has none.
fn tell_unpriced(
    ledger: &mut Ledger,
    question: Option<SumQuery>,
    account: &mut Account,
    found: &TopJobs,
) -> Result<()> {
    let Some(question) = question else { return Ok(()) };
    if !found.rows.iter().chain(&found.others).any(is_unpriced) {
        return Ok(());
    }
    let detail = Detail { group: true, ..Detail::default() };
    let by_model = SumQuery { detail, ..question };
    let mut rows = ledger.run(|store| store.sums(&by_model))?;
    rows.retain(|row| account.charges(row.party.as_ref().map(|party| party.namespace.as_str())));
    account.notes.extend(unpriced_rows(&rows));
    Ok(())
}

/// The answer where nodes are billed anew: by what the provider asked, or with what is unused
/// shared out.
fn anew(
    app: &App,
    flags: &AccountFlags,
    ledger: &mut Ledger,
    mut account: Account,
    (by, top, is_focus): (&[Dimension], Option<Top>, bool),
) -> Result<LedgerResult> {
    let known = ledger.run(Store::clusters)?;
    let cluster = match (flags.cluster.as_ref(), known.as_slice()) {
        (Some(name), _) if known.contains(name) => name.clone(),
        (None, _) if !account.cluster.is_empty() => account.cluster.clone(),
        (None, [only]) => only.clone(),
        (_, known) => {
            let text = format!(
                "--focus, --bill and --unused distributed bill one cluster: name it with --cluster; the ledger \
                 has {}",
                if known.is_empty() { "none yet".to_owned() } else { known.join(", ") }
            );
            return Err(UsageError(plain(&text)).into());
        }
    };
    account.cluster.clone_from(&cluster);
    let teams = flags.split.teams(app);
    let mut account = from_ledger::filled(account, ledger, &cluster, &teams)?;
    let bill = flags.billed(app, &mut account)?;
    let method = flags.split.method(app);
    let method = method.unwrap_or_else(|| from_ledger::default_method(&account));
    let unused = flags.unused();
    if is_focus {
        let terms = BillTerms { teams, list_prices: None, method, unused };
        return Ok(LedgerResult::Account(Box::new(account), Box::new(terms)));
    }
    let statement = Statement::of_account(&account, (method, unused), by, top)?;
    let document = Document::of(&account, &statement, bill, now_ms());
    Ok(LedgerResult::Document(Box::new(document)))
}

impl Ledger {
    /// Opens the ledger that a flag names, and makes it where there is none.
    pub fn open(flag: &str, address: &Address) -> Result<Self> {
        let runtime = connection_runtime()?;
        let store = runtime.block_on(Store::open(address));
        let store = store.map_err(|error| bad_address(flag, error))?;
        Ok(Self { store, runtime, silent: BTreeMap::new() })
    }

    /// Asks the ledger something and waits for its answer.
    ///
    /// # Errors
    /// What the ledger says.
    pub fn run<'s, T, F: Future<Output = Result<T, StoreError>>>(
        &'s mut self,
        ask: impl FnOnce(&'s mut Store) -> F,
    ) -> Result<T> {
        Ok(self.runtime.block_on(ask(&mut self.store))?)
    }

    /// Reads what of the period is not there; answers with the cluster that it is of.
    fn fill(
        &mut self,
        app: &App,
        flags: &AccountFlags,
        (teams, list_prices): (&Teams, Option<ListPrices>),
        mut asker: Asker,
        account: &mut Account,
    ) -> Result<String> {
        let read = match flags.objects.is_given() {
            true => Some(flags.gathered(app, teams)?),
            false => None,
        };
        let (gathered, of_objects) = read.map(|read| (read.gathered, read.sources)).unzip();
        let free = gathered.as_ref().map(|objects| free_looks(objects, &asker)).transpose();
        let free = free.unwrap_or_else(|error| {
            account.notes.push(format!("the causes of free GPUs are unknown: {error:#}"));
            None
        });
        let free = free.unwrap_or_default();
        let sources = BillInputs {
            teams,
            prices: &flags.prices,
            list_prices,
            settings: &app.settings,
            gathered: gathered.as_ref(),
            free: &free,
        };
        let named = flags.cluster.clone().or_else(|| app.settings.cost.cluster.clone());
        let by_objects = || gathered.as_ref().map(|objects| objects.cluster_uid.clone());
        let cluster = named.or_else(by_objects).filter(|name| !name.is_empty());
        let Some(cluster) = cluster else {
            let text = "--store: a ledger can store several clusters: pass --cluster NAME";
            return Err(UsageError(text.to_owned()).into());
        };
        let source = asker.client.server().to_owned();
        let span = account.span;
        let mut parts = PartsTold::default();
        let silence = self.fill_span(&mut asker, &sources, &cluster, span.from_ms, |told| {
            parts.add(told);
            true
        })?;
        if silence.is_all {
            parts.note(NO_GPU_WAS_SEEN.to_owned());
        }
        account.notes.extend(parts.in_words(&flags.prices, &app.settings)?);
        account.are_machines_told = parts.tells_machines();
        account.prices = parts.prices;
        asker.tell_warnings(app);
        account.sources.push(source);
        account.sources.extend(of_objects.unwrap_or_default());
        Ok(cluster)
    }

    /// Reads what is not there from a moment until the end of the asker's period, part by part;
    /// each is told when it is kept, and the next one read if the answer is yes. Where no series
    /// was, nothing is kept, and the next run asks again.
    pub fn fill_span(
        &mut self,
        asker: &mut Asker,
        sources: &BillInputs<'_>,
        cluster: &str,
        from_ms: u64,
        mut each: impl FnMut(ReadPart) -> bool,
    ) -> Result<Silence> {
        let source = asker.client.server().to_owned();
        let floor_ms = self.run(|store| store.writable_from_ms(cluster))?;
        // The running hour from its begin, as it is shown.
        let period = Span { from_ms: from_ms.max(floor_ms), ..asker.period };
        let missing = self.run(|store| store.missing(cluster, Some(&source), period))?;
        let (mut gaps, mut is_all) = (Coverage::default(), !missing.is_empty());
        for span in missing.into_iter().flat_map(|span| cut(span, CHUNK_MS)) {
            let tried_ms = self.silent.get(&span.to_ms).copied().unwrap_or(0);
            if span.to_ms < period.to_ms && now_ms() < tried_ms.saturating_add(ASK_AGAIN_MS) {
                gaps.add(span);
                continue;
            }
            let from_ms = span.from_ms.saturating_sub(again_ms(asker.step_ms)).max(floor_ms);
            asker.period = Span { from_ms, ..span };
            let told = self.read_and_keep(asker, sources, cluster, period.from_ms)?;
            told.gaps.iter().for_each(|gap| gaps.add(*gap));
            match told.is_silent {
                true => _ = self.silent.insert(span.to_ms, now_ms()),
                false => is_all = false,
            }
            if !each(told) {
                break;
            }
        }
        let retention = Retention::default();
        self.run(|store| retention.apply(store, now_ms()))?;
        Ok(Silence { gaps, is_all })
    }

    /// Reads the asker's period and keeps what was heard.
    fn read_and_keep(
        &mut self,
        asker: &mut Asker,
        sources: &BillInputs<'_>,
        cluster: &str,
        from_ms: u64,
    ) -> Result<ReadPart> {
        let told = reading::read(asker, sources, cluster)?;
        self.keep(told, asker.step_ms, (from_ms, asker.period.from_ms))
    }

    /// Keeps what was heard of a reading's time, and answers with what was not. Of devices that
    /// were first seen later than `after_ms` the ledger says how they were left, back to `from_ms`.
    pub fn keep(
        &mut self,
        mut told: ReadPart,
        step_ms: u64,
        (from_ms, after_ms): (u64, u64),
    ) -> Result<ReadPart> {
        let period = told.reading.span;
        if told.has_no_gpus {
            self.run(|store| store.keep(&told.reading, now_ms()))?;
            return Ok(told);
        }
        match cut_to_what_was_heard(&mut told.reading, told.heard, step_ms) {
            Some(gaps) => {
                bridge(self, &mut told.reading, after_ms, from_ms)?;
                for part in in_parts(std::mem::take(&mut told.reading), &told.turns) {
                    self.run(|store| store.keep(&part, now_ms()))?;
                }
                told.gaps = gaps;
            }
            // What the whole period has of it is told at its end.
            None => told = ReadPart { is_silent: true, gaps: vec![period], ..told.without_notes() },
        }
        Ok(told)
    }

    /// Lets a period begin with a whole day, where the hour that it begins with is no longer kept
    /// as one.
    fn begin_with_a_day(
        &mut self,
        cluster: Option<&str>,
        detail: Detail,
        account: &mut Account,
    ) -> Result<()> {
        let clusters = match cluster {
            Some(name) => vec![name.to_owned()],
            None => self.run(Store::clusters)?,
        };
        let mut floor_ms = 0;
        for name in clusters {
            floor_ms = floor_ms.max(self.run(|store| store.hours_from_ms(&name))?);
        }
        let Span { from_ms, to_ms } = account.span;
        let day_ms = from_ms.next_multiple_of(DAY_MS);
        if from_ms < floor_ms.min(day_ms) && day_ms < to_ms && !detail.pod && !detail.node {
            account.span.from_ms = day_ms;
            account.notes.push(format!(
                "the period starts at {}, but the ledger stores hours before {} only as whole days \
                 (UTC)",
                time(day_ms),
                time(floor_ms)
            ));
        }
        Ok(())
    }

    /// Says what of the period nobody read, and what each day of it rests on.
    fn tell_gaps(
        &mut self,
        question: &SumQuery,
        period: Span,
        account: &mut Account,
    ) -> Result<()> {
        let clusters = match &question.cluster {
            Some(name) => vec![name.clone()],
            None => self.run(Store::clusters)?,
        };
        if clusters.is_empty() {
            let text = "the ledger is empty: fill it with --prometheus and --cluster";
            account.notes.push(text.to_owned());
        }
        let period = Span { from_ms: account.span.from_ms, ..period };
        for name in clusters {
            let missing = self.run(|store| store.missing(&name, None, period))?;
            let days = self.run(|store| DayResolution::of(store, &name, period))?;
            account.resolutions.extend(days.into_iter().map(|day| DayOf {
                cluster: name.clone(),
                day: day.day,
                hours_read: day.hours_read,
                hours_unknown: day.hours_unknown,
                step_ms: day.finest_ms.zip(day.coarsest_ms),
            }));
            let floor_ms = self.run(|store| store.writable_from_ms(&name))?;
            account.notes.extend(gaps_in_words(&name, &missing, floor_ms));
        }
        Ok(())
    }
}

/// What of a period nobody read; nothing where that is less than a minute, which is on its way.
/// Time before `floor_ms` can be added to the ledger no more.
fn gaps_in_words(cluster: &str, missing: &[Span], floor_ms: u64) -> Option<String> {
    const MINUTE_MS: u64 = 60_000;
    let ms: u64 = missing.iter().map(|span| span.to_ms - span.from_ms).sum();
    if ms < MINUTE_MS {
        return None;
    }
    let time_of = duration(ms);
    let parts = counted(missing.len(), "part");
    let again = match missing.iter().any(|span| span.from_ms < floor_ms) {
        false => "dovetail retries".to_owned(),
        true => format!(
            "parts before {} can no longer be added (a ledger reads older data only in its first \
             run); dovetail retries the other parts",
            time(floor_ms)
        ),
    };
    Some(format!(
        "{cluster}: no GPU exporter was read for {time_of} of the period, in {parts}: no amount \
         includes this time, and {again}"
    ))
}

/// Why GPUs were free in the step of the asker's period in which the objects were read.
fn free_looks(objects: &Gathered, asker: &Asker) -> Result<Vec<(String, FreeLook)>> {
    let parts = states(objects)?.parts;
    let seen = (&objects.moment.nodes[..], &parts);
    Ok(of_one_moment(objects.facts.now_ms, seen, asker.period, asker.step_ms))
}

/// Flags that only count while something is read.
fn refuse_what_does_nothing(flags: &AccountFlags, is_read: bool) -> Result<()> {
    let refused = match () {
        () if !is_read && flags.objects.is_given() => Some(
            "--store without --prometheus reads only the ledger: omit --from, --kubeconfig and \
             --context, or pass --prometheus",
        ),
        () if !is_read && (flags.prices.is_given() || flags.list_prices.is_given()) => Some(
            "--store without --prometheus uses the prices in force when the usage was recorded: \
             omit the price flags",
        ),
        () => None,
    };
    refused.map_or(Ok(()), |text| Err(UsageError(text.to_owned()).into()))
}

/// What is no address is wrong usage; what is one and does not answer is a failure.
pub fn bad_address(flag: &str, error: StoreError) -> anyhow::Error {
    match error {
        StoreError::Address { .. } | StoreError::Foreign { .. } => {
            UsageError(format!("{flag}: {error}")).into()
        }
        error => error.into(),
    }
}

/// Refuses a ledger that is a file and does not exist; `others` says what else creates one.
///
/// # Errors
/// Names the flag and the file.
pub fn require_file(flag: &str, address: &Address, others: &str) -> Result<()> {
    match address {
        Address::File(path) if !path.exists() => {
            let path = plain(&path.display().to_string());
            bail!(
                "{flag} {path}: file does not exist; `dovetail serve --store {path}` creates it{others}"
            )
        }
        _ => Ok(()),
    }
}

/// The hours of a period: all that it touches if its ends were said or something is read of it;
/// else as many as were asked for, the last of which is the one that runs: also where it has just
/// begun, since the ledger may be filled in finer steps than those in which the period ends.
pub(crate) fn whole_hours(period: Span, is_touched: bool) -> Span {
    if is_touched {
        let from_ms = period.from_ms / HOUR_MS * HOUR_MS;
        return Span { from_ms, to_ms: period.to_ms.next_multiple_of(HOUR_MS) };
    }
    let to_ms = period.to_ms / HOUR_MS * HOUR_MS + HOUR_MS;
    let hours = (period.to_ms - period.from_ms).div_ceil(HOUR_MS);
    Span { from_ms: to_ms.saturating_sub(hours * HOUR_MS), to_ms }
}

fn detail(by: &[Dimension]) -> Detail {
    use Dimension::{GpuType, Job, Model, Node, NodePool, Pod, Queue};
    let any = |of: &[Dimension]| by.iter().any(|dimension| of.contains(dimension));
    Detail {
        workload: any(&[Queue, Job, Model]),
        group: any(&[GpuType, NodePool]),
        pod: any(&[Pod]),
        node: any(&[Node]),
    }
}

/// What a ledger has split before. Methods without a price for something that has one are left out,
/// but for the one that is asked for.
fn lines(found: &TopJobs, by: &[Dimension], teams: &Teams, chosen: SplitMethod) -> StatementLines {
    let mut lines: Vec<StatementLine> = found.rows.iter().map(|row| line(row, by, teams)).collect();
    let keys = found.rows.iter().zip(&lines).map(|(row, line)| (row, &*line.key));
    let names = SameNames::of(by, keys);
    for (row, line) in found.rows.iter().zip(&mut lines) {
        names.tell_apart(&row.cluster, &mut line.key);
    }
    // No part of a key says what they are.
    lines.extend(found.others.iter().map(|row| line(row, &[], teams)));
    let rows = || found.rows.iter().chain(&found.others);
    let is_whole = |place: usize| {
        let mut priced = rows().filter(|row| row.costs.iter().any(Option::is_some));
        priced.all(|row| row.costs[place].is_some())
    };
    let methods = SplitMethod::ALL.into_iter().enumerate();
    let methods = methods.filter(|(place, method)| *method == chosen || is_whole(*place));
    StatementLines { lines, methods: methods.map(|(_, method)| method).collect() }
}

fn line(row: &SumRow, by: &[Dimension], teams: &Teams) -> StatementLine {
    let group = row.group.as_deref();
    let workload = row.workload.as_deref();
    let of_team = |party: &Party| {
        let team = || teams.team(&party.namespace, &party.namespace_labels, &party.labels);
        by.contains(&Dimension::Team).then(team).flatten().map(Cow::Owned)
    };
    let names = ChargeKeys {
        cluster: &row.cluster,
        gpu_type: group.map_or("", |group| &group.gpu_type),
        pool: group.map_or("", |group| &group.pool),
        node: row.node.as_deref().unwrap_or_default(),
        paid: row.paid,
        pod: row.party.as_deref().map(|party| PodNames {
            namespace: &party.namespace,
            name: row.pod.as_deref().unwrap_or_default(),
            team: of_team(party),
            queue: workload.and_then(|workload| workload.queue.as_deref()),
            job: workload.map_or("", |workload| &workload.job),
            model: workload.and_then(|workload| workload.model.as_deref()),
        }),
    };
    let SumRow { paid, gpu_milli_ms, charges, costs, .. } = *row;
    StatementLine {
        key: by.iter().map(|dimension| dimension.key(&names)).collect(),
        paid,
        by_method: costs.map(|cost| Some(ChargedAmount { charges, gpu_milli_ms, cost })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_told_in_the_unit_that_shows_them() {
        let gaps = |lengths_s: &[u64]| -> Vec<Span> {
            let places = lengths_s.iter().enumerate();
            let span = |(place, length_s): (usize, &u64)| {
                let from_ms = place as u64 * 7 * HOUR_MS;
                Span { from_ms, to_ms: from_ms + length_s * 1000 }
            };
            places.map(span).collect()
        };
        for (lengths_s, expected) in [
            (&[][..], None),
            (&[59], None),
            (&[29, 30], None),
            (&[60], Some("60 s of the period, in 1 part:")),
            (&[30, 3569], Some("60 min of the period, in 2 parts:")),
            (&[3600], Some("60 min of the period, in 1 part:")),
            (&[3600, 19_800], Some("6.5 h of the period, in 2 parts:")),
        ] {
            let told = gaps_in_words("west", &gaps(lengths_s), 0);
            match expected {
                None => assert_eq!(told, None, "{lengths_s:?}"),
                Some(part) => assert!(told.is_some_and(|told| told.contains(part)), "{part}"),
            }
        }
    }

    #[test]
    fn a_day_is_twenty_four_hours_whenever_it_is_asked_for() {
        let minutes = |minutes: u64| minutes * 60_000;
        let asked = |from, to, is_read| {
            let asked = Span { from_ms: minutes(from), to_ms: minutes(to) };
            let hours = whole_hours(asked, is_read);
            (hours.from_ms / HOUR_MS, hours.to_ms / HOUR_MS)
        };
        assert_eq!(asked(20 * 60 + 10, 44 * 60 + 10, false), (21, 45));
        assert_eq!(
            asked(20 * 60, 44 * 60, false),
            (21, 45),
            "an hour that has just begun is the one that runs"
        );
        assert_eq!(
            asked(20 * 60 + 10, 20 * 60 + 40, false),
            (20, 21),
            "less than an hour is the one that runs"
        );
        assert_eq!(asked(20 * 60 + 10, 44 * 60 + 10, true), (20, 45), "nothing read is left out");
    }
}
