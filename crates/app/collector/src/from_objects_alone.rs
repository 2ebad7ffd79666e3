//! A ledger filled from objects alone, where nothing measures GPUs: which pod had which part of
//! which node's GPUs, and why the rest was free. What allocated GPUs did is unknown.

use anyhow::{Context, Result};
use dovetail_account::device_time::Span;
use dovetail_account::split::ListPrices;
use dovetail_console::clock::now_ms;
use dovetail_costing::flags::states;
use dovetail_costing::from_objects::scan;
use dovetail_costing::from_store::Ledger;
use dovetail_costing::teams::Teams;
use dovetail_inventory::facts::Gathered;
use dovetail_sources::node_prices::Prices;
use dovetail_store::{Reading, Retention};

/// What was read, as the ledger names it.
const SOURCE: &str = "objects";

/// A scan holds until the next, and no longer than this: what was later nobody knows.
const HOLDS_MS: u64 = 900_000;

/// Scans that become readings when the next one is there.
#[derive(Default)]
pub(crate) struct ObjectsAlone {
    /// When the first scan was.
    first_ms: Option<u64>,
    /// The last one, whose time begins with it.
    last: Option<(u64, Reading)>,
}

impl ObjectsAlone {
    /// Another scan; what the one before it saw is kept for the time in between. Answers with how
    /// many readings that are.
    pub(crate) fn keep(
        &mut self,
        ledger: &mut Ledger,
        cluster: &str,
        gathered: &Gathered,
        (teams, list_prices): (&Teams, Option<ListPrices>),
        prices: Prices,
    ) -> Result<u64> {
        let parts = states(gathered)?.parts;
        let new = scan(gathered, &parts, (teams, list_prices), prices);
        let at_ms = gathered.facts.now_ms;
        self.first_ms.get_or_insert(at_ms);
        let kept = self.end(ledger, cluster, at_ms)?;
        self.last = Some((at_ms, new));
        Ok(kept)
    }

    /// Keeps what the last scan saw until a moment.
    pub(crate) fn end(&mut self, ledger: &mut Ledger, cluster: &str, now: u64) -> Result<u64> {
        let Some((from_ms, mut reading)) = self.last.take() else { return Ok(0) };
        let to_ms = now.min(from_ms + HOLDS_MS);
        // A clock that was set back shows nothing.
        if from_ms >= to_ms {
            return Ok(0);
        }
        let span = Span { from_ms, to_ms };
        let intervals = reading.devices.iter_mut().flat_map(|device| &mut device.intervals);
        intervals.for_each(|interval| interval.span = span);
        (reading.cluster, reading.source) = (cluster.to_owned(), SOURCE.to_owned());
        (reading.span, reading.step_ms) = (span, Some(to_ms - from_ms));
        ledger.run(|store| store.keep(&reading, now_ms())).context("cannot write the ledger")?;
        let retention = Retention::default();
        ledger.run(|store| retention.apply(store, now_ms()))?;
        Ok(1)
    }

    /// What of a period should be in the ledger: since it has anything, or since the first scan.
    pub(crate) fn period(&self, ledger: &mut Ledger, cluster: &str, whole: Span) -> Result<Span> {
        since(ledger, cluster, whole, self.first_ms.unwrap_or(whole.to_ms))
    }
}

/// A period from where the ledger has anything, or from a moment if that is earlier.
pub(crate) fn since(
    ledger: &mut Ledger,
    cluster: &str,
    whole: Span,
    first_ms: u64,
) -> Result<Span> {
    let missing = ledger.run(|store| store.missing(cluster, None, whole))?;
    let before = missing.first().filter(|gap| gap.from_ms == whole.from_ms);
    let from_ms = before.map_or(whole.from_ms, |gap| gap.to_ms);
    let from_ms = from_ms.min(first_ms.max(whole.from_ms));
    Ok(Span { from_ms, ..whole })
}

/// Whether a ledger has anything of a period that was measured: then time without a server is a gap
/// that is filled later.
pub(crate) fn is_measured(ledger: &mut Ledger, cluster: &str, period: Span) -> Result<bool> {
    let by_any = ledger.run(|store| store.missing(cluster, None, period))?;
    let by_objects = ledger.run(|store| store.missing(cluster, Some(SOURCE), period))?;
    Ok(by_any != by_objects)
}

/// Until when objects alone filled a period. Series are read from there on: the same GPUs have
/// other names in them and would count twice.
pub(crate) fn filled_until_ms(
    ledger: &mut Ledger,
    cluster: &str,
    period: Span,
) -> Result<Option<u64>> {
    let missing = ledger.run(|store| store.missing(cluster, Some(SOURCE), period))?;
    Ok(match missing.last() {
        None => Some(period.to_ms),
        Some(last) if *last == period => None,
        Some(last) if last.to_ms == period.to_ms => Some(last.from_ms),
        Some(_) => Some(period.to_ms),
    })
}
