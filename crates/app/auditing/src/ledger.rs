//! `dovetail audit --baseline OLD.json --store LEDGER`: what a ledger confirms of findings that are
//! fixed.

use anyhow::Result;
use clap::Args;
use dovetail_account::cost::Paid;
use dovetail_account::device_time::Span;
use dovetail_account::rollup::HOUR_MS;
use dovetail_account::split::SplitMethod;
use dovetail_audit::{
    Confirmation, Confirmed, FixVerdict, FixedFinding, LedgerPeriod, LedgerRow, Rate, confirm,
    equal_periods,
};
use dovetail_console::app::App;
use dovetail_console::plain::plain;
use dovetail_costing::from_store::{Ledger, bad_address, require_file};
use dovetail_facts::ObjectRef;
use dovetail_inventory::facts::Gathered;
use dovetail_settings::errors::UsageError;
use dovetail_store::{Address, Detail, Store, StoreError, SumQuery, SumRow, default_method};
use dovetail_units::amount::tenths;
use dovetail_units::time::time;

use super::confirmed::{ConfirmedOut, LedgerOut, PeriodOut, RateOut};
use super::document::{Document, FixedOut};
use super::figures::hours;
use super::words::object_words;

/// Flags as written.
#[derive(Debug, Args)]
pub struct LedgerFlags {
    /// Ledger (file or postgres://USER@HOST/DATABASE) written by dovetail serve, to verify the
    /// fixes made since --baseline: compares the waste of each object before and after
    #[arg(long, value_name = "LEDGER", requires = "baseline")]
    store: Option<String>,
    /// Cluster in the ledger [default: from dovetail.toml, else the name of the audited cluster,
    /// else the only cluster in the ledger]
    #[arg(long, value_name = "NAME", requires = "store")]
    cluster: Option<String>,
}

/// Of each period so much must have been read.
const LEAST_READ_PERCENT: u64 = 90;

/// What is asked of a ledger.
struct LedgerQuery {
    cluster: String,
    before: Span,
    after: Span,
    /// Whether nodes are distinguished.
    node: bool,
}

impl LedgerFlags {
    /// The same document with what the ledger says of findings that are fixed.
    ///
    /// # Errors
    /// A ledger that cannot be opened, or does not know the cluster.
    pub fn held_against(
        &self,
        app: &App,
        gathered: &Gathered,
        mut document: Document,
    ) -> Result<Document> {
        let (Some(store), Some(fixed)) = (&self.store, &mut document.fixed) else {
            return Ok(document);
        };
        let address: Address = store.parse().map_err(|error| bad_address("--store", error))?;
        require_file("--store", &address, "")?;
        let mut ledger = Ledger::open("--store", &address)?;
        let mut told = LedgerOut {
            source: plain(&address.to_string()),
            cluster: None,
            method: None,
            before: None,
            after: None,
            confirmed: None,
            free_of_unknown_cause_rose_gpu_hours_per_month: None,
            why_unknown: None,
        };
        let cluster = self.cluster(app, &mut ledger, &told.source, &gathered.cluster_uid)?;
        told.cluster = Some(plain(&cluster));
        let then = document.baseline_taken_at.as_deref().unwrap_or_default();
        let then_ms = then.parse::<jiff::Timestamp>().map(|then| then.as_millisecond());
        let then_ms = then_ms.ok().and_then(|ms| u64::try_from(ms).ok());
        let periods = then_ms.and_then(|then_ms| equal_periods(then_ms, gathered.facts.now_ms));
        let why = match periods {
            None => Some(format!(
                "the audits of {then} and {} are less than one whole hour apart",
                document.taken_at
            )),
            Some((before, after)) => {
                let node = fixed.iter().any(|fixed| fixed.object.kind == "Node");
                let asked = LedgerQuery { cluster, before, after, node };
                answered(app, &mut ledger, &asked, fixed, &mut told)?
            }
        };
        if let Some(why) = why {
            for finding in fixed.iter_mut() {
                finding.ledger = Some(ConfirmedOut::unknown(&why));
            }
            told.why_unknown = Some(why);
        }
        document.ledger = Some(told);
        Ok(document)
    }

    /// The cluster that is meant: of flags, settings and objects the first that names one.
    fn cluster(&self, app: &App, ledger: &mut Ledger, store: &str, uid: &str) -> Result<String> {
        let known = ledger.run(Store::clusters)?;
        let named = self.cluster.as_ref().or(app.settings.cost.cluster.as_ref());
        let flag = if self.cluster.is_some() { "--cluster" } else { "setting cost.cluster:" };
        let all = known.join(", ");
        let text = match (named, known.as_slice()) {
            (Some(name), known) if known.contains(name) => return Ok(name.clone()),
            (None, known) if known.iter().any(|name| name == uid) => return Ok(uid.to_owned()),
            (None, [only]) => return Ok(only.clone()),
            (_, []) => format!(
                "--store {store}: the ledger is empty; fill it with \
                 `dovetail serve --store {store}`"
            ),
            (Some(name), _) => format!("{flag} {name}: not in the ledger, which has {all}"),
            (None, _) => {
                format!("--store {store}: the ledger has several clusters ({all}); pass --cluster")
            }
        };
        Err(UsageError(plain(&text)).into())
    }
}

/// Asks, and writes what is answered; else why nothing can be said.
fn answered(
    app: &App,
    ledger: &mut Ledger,
    asked: &LedgerQuery,
    fixed: &mut [FixedOut],
    told: &mut LedgerOut,
) -> Result<Option<String>> {
    let mut read_ms = [0; 2];
    for (place, span) in [asked.before, asked.after].into_iter().enumerate() {
        let missing = ledger.run(|store| store.missing(&asked.cluster, None, span))?;
        let missing_ms: u64 = missing.iter().map(|span| span.to_ms - span.from_ms).sum();
        read_ms[place] = span.to_ms - span.from_ms - missing_ms;
        let period = PeriodOut {
            from: time(span.from_ms),
            to: time(span.to_ms),
            hours: (span.to_ms - span.from_ms) as f64 / HOUR_MS as f64,
            hours_read: read_ms[place] as f64 / HOUR_MS as f64,
            waste: None,
        };
        *(if place == 0 { &mut told.before } else { &mut told.after }) = Some(period);
    }
    for (period, read_ms) in [&told.before, &told.after].into_iter().flatten().zip(read_ms) {
        let whole_ms = asked.before.to_ms - asked.before.from_ms;
        if read_ms * 100 < whole_ms * LEAST_READ_PERCENT {
            return Ok(Some(format!(
                "it has data for {} of the {} hours from {} until {}",
                tenths(period.hours_read),
                tenths(period.hours),
                period.from,
                period.to
            )));
        }
    }
    let mut rows = Vec::new();
    for span in [asked.before, asked.after] {
        match sums(ledger, asked, span) {
            Ok(found) => rows.push(found),
            Err(error) => match error.downcast_ref::<StoreError>() {
                Some(StoreError::NoLongerKept { .. }) => return Ok(Some(error.to_string())),
                _ => return Err(error),
            },
        }
    }
    let set = || app.settings.cost.method.as_ref().and_then(|name| name.parse().ok());
    let method = set().unwrap_or_else(|| default_method(rows.iter().flatten()));
    let period = |place: usize| LedgerPeriod {
        read_ms: read_ms[place],
        rows: rows[place].iter().filter_map(|sum| row(sum, method)).collect(),
    };
    let findings: Vec<FixedFinding> = fixed.iter().map(finding).collect();
    let found = confirm(&findings, &period(0), &period(1));
    told.method = Some(method.id());
    told.tell(&found);
    let words: Vec<String> = fixed
        .iter()
        .map(|fixed| format!("{} of {}", fixed.id, object_words(&fixed.object)))
        .collect();
    for (fixed, confirmed) in fixed.iter_mut().zip(&found.findings) {
        fixed.ledger = Some(said(confirmed, &words));
    }
    Ok(None)
}

fn sums(ledger: &mut Ledger, asked: &LedgerQuery, span: Span) -> Result<Vec<SumRow>> {
    let question = SumQuery {
        cluster: Some(asked.cluster.clone()),
        from_hour: span.from_ms / HOUR_MS,
        to_hour: span.to_ms / HOUR_MS,
        detail: Detail { workload: true, group: true, node: asked.node, ..Detail::default() },
    };
    ledger.run(|store| store.sums(&question))
}

fn finding(fixed: &FixedOut) -> FixedFinding {
    let object = &fixed.object;
    FixedFinding {
        id: fixed.id.clone(),
        object: ObjectRef::new(&object.kind, &object.namespace, &object.name),
    }
}

/// A row of GPU-time; `None` for CPU and memory.
fn row(sum: &SumRow, method: SplitMethod) -> Option<LedgerRow> {
    let Paid::Gpus(state) = sum.paid else { return None };
    let place = SplitMethod::ALL.iter().position(|known| *known == method)?;
    let holder = sum.party.as_ref().map(|party| {
        let job = sum.workload.as_deref().map_or("", |workload| workload.job.as_str());
        owner(job, &party.namespace)
    });
    let pool = sum.group.as_deref().map_or("", |group| group.pool.as_str());
    let (kind, name) = pool.split_once(' ').unwrap_or(("", pool));
    Some(LedgerRow {
        holder,
        pool: ObjectRef::new(kind, "", name),
        node: sum.node.as_deref().unwrap_or_default().to_owned(),
        state,
        gpu_milli_ms: sum.gpu_milli_ms,
        usd_micros: sum.costs[place].map(|cost| cost.usd_micros),
    })
}

/// A top owner as a ledger writes it: `Deployment prod/serve`, or `prod/serve` where nobody knew
/// its kind.
fn owner(job: &str, namespace: &str) -> ObjectRef {
    let (kind, rest) = job.split_once(' ').unwrap_or(("", job));
    let name = rest.split_once('/').map_or(rest, |(_, name)| name);
    ObjectRef::new(kind, namespace, name)
}

impl LedgerOut {
    fn tell(&mut self, found: &Confirmation) {
        for (period, waste) in
            [(&mut self.before, found.waste_before), (&mut self.after, found.waste_after)]
        {
            if let Some(period) = period {
                period.waste = Some(rate(waste));
            }
        }
        self.confirmed = Some(rate(found.confirmed));
        let rose = hours(found.free_of_unknown_cause_rose_gpu_milli_ms);
        self.free_of_unknown_cause_rose_gpu_hours_per_month = Some(rose);
    }
}

fn rate(rate: Rate) -> RateOut {
    let has_price = rate.unpriced_gpu_milli_ms < rate.gpu_milli_ms || rate.gpu_milli_ms == 0;
    RateOut {
        gpu_hours_per_month: hours(rate.gpu_milli_ms),
        usd_micros_per_month: rate.usd_micros,
        priced_usd_micros_per_month: has_price.then_some(rate.priced_usd_micros),
        unpriced_gpu_hours_per_month: hours(rate.unpriced_gpu_milli_ms),
    }
}

fn said(found: &Confirmed, words: &[String]) -> ConfirmedOut {
    let (status, why) = match found.verdict {
        FixVerdict::Confirmed => ("confirmed", "its objects waste less, and so does the cluster"),
        FixVerdict::Unchanged => ("not_confirmed", "its objects waste as much as before"),
        FixVerdict::Moved => {
            ("not_confirmed", "its objects waste less, but other objects waste that much more")
        }
        FixVerdict::NoneBefore => {
            ("not_confirmed", "the ledger records no waste of its objects before the fix")
        }
        FixVerdict::NotInLedger => {
            ("unknown", "the ledger has no data for its objects before the fix")
        }
        FixVerdict::Blind => ("unknown", "GPU use was not measured before or after the fix"),
        FixVerdict::CountedWith(_) => ("counted_elsewhere", "its waste is counted with"),
        FixVerdict::OfRisk => ("nothing_to_confirm", "it reduced a risk, not wasted time"),
    };
    let why = match found.verdict {
        FixVerdict::CountedWith(other) => format!("{why} {}", words[other]),
        _ => why.to_owned(),
    };
    ConfirmedOut {
        status,
        why,
        before: found.before.map(rate),
        after: found.after.map(rate),
        confirmed: (found.verdict == FixVerdict::Confirmed).then(|| rate(found.confirmed)),
    }
}
