//! A ledger filled by exporters that are asked themselves, where no server keeps their series: what
//! they said since the last time is kept, in whole steps. Nobody can be asked about what was
//! before.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use dovetail_account::device_time::Span;
use dovetail_account::signal::ActivityRule;
use dovetail_console::clock::now_ms;
use dovetail_costing::from_prometheus::BillInputs;
use dovetail_costing::from_store::Ledger;
use dovetail_costing::reading::{ReadPart, Whose, of_exporters};
use dovetail_inventory::facts::Gathered;
use dovetail_metrics::scrape::Scrapes;
use dovetail_sources::exporters::{ExporterCounts, Lookout, NO_POD_IS_NAMED};
use dovetail_sources::prometheus::ObservedPeriod;
use dovetail_store::{ReadPod, Reading, Retention};

use crate::from_objects_alone::since;

/// Who was read, as the ledger names it.
const SOURCE: &str = "exporters";

/// Exporters that are looked at beside everything else, and how far what they said is in the
/// ledger.
pub struct Exporters {
    lookout: Lookout,
    taking: Taking,
}

/// How what was seen becomes readings that follow each other.
struct Taking {
    step_ms: u64,
    /// Until when what was seen was taken.
    until_ms: u64,
    /// Whether anything was: before the first reading another program may have seen the same
    /// devices.
    has_begun: bool,
    /// Pods of the last reading, by namespace and name.
    pods: BTreeMap<(String, String), ReadPod>,
}

impl Exporters {
    /// Takes over what somebody looks at every `step_ms`.
    pub fn new(lookout: Lookout, step_ms: u64) -> Self {
        let taking = Taking::new(step_ms, lookout.began_ms());
        Self { lookout, taking }
    }

    /// What of a period should be in the ledger: since it has anything, or since the first look.
    pub fn period(&self, ledger: &mut Ledger, cluster: &str, whole: Span) -> Result<Span> {
        since(ledger, cluster, whole, self.lookout.began_ms())
    }

    /// Who answered the last look; `None` before the first.
    pub fn standing(&self) -> Option<ExporterCounts> {
        self.lookout.standing()
    }

    /// Keeps what was seen until a moment that is a whole step; `None` where that is nothing new.
    /// The ledger is looked at back to `from_ms` for how devices were left.
    pub fn keep(
        &mut self,
        ledger: &mut Ledger,
        sources: &BillInputs<'_>,
        cluster: &str,
        (from_ms, to_ms): (u64, u64),
    ) -> Result<Option<ReadPart>> {
        if to_ms <= self.taking.until_ms {
            return Ok(None);
        }
        let seen = self.lookout.seen();
        let told = self.taking.keep(ledger, seen, sources, cluster, (from_ms, to_ms))?;
        self.lookout.forget_before(self.taking.until_ms);
        let retention = Retention::default();
        ledger.run(|store| retention.apply(store, now_ms()))?;
        Ok(Some(told))
    }
}

impl Taking {
    fn new(step_ms: u64, from_ms: u64) -> Self {
        Self { step_ms, until_ms: from_ms, has_begun: false, pods: BTreeMap::new() }
    }

    fn keep(
        &mut self,
        ledger: &mut Ledger,
        seen: Scrapes,
        sources: &BillInputs<'_>,
        cluster: &str,
        (from_ms, to_ms): (u64, u64),
    ) -> Result<ReadPart> {
        let (cluster, source) = (cluster.to_owned(), SOURCE.to_owned());
        let (span, step_ms) = (Span { from_ms: self.until_ms, to_ms }, self.step_ms);
        let (observation, pods) = seen.observation();
        let time = observation.histories(span, step_ms, &ActivityRule::default());
        let names_no_pod = time.holders.is_empty() && !time.devices.is_empty();
        let seen = ObservedPeriod { observation, pods, time };
        let whose = Whose { cluster, source, span, step_ms };
        let mut told = of_exporters(seen, sources, whose)?;
        if names_no_pod {
            told.notes.push(NO_POD_IS_NAMED.to_owned());
        }
        remember(&mut told.reading, sources.gathered, &mut self.pods);
        let after_ms = if self.has_begun { span.from_ms } else { 0 };
        let told = ledger.keep(told, step_ms, (from_ms, after_ms))?;
        // What nobody said anything about begins the next reading, too: it may be between two
        // samples.
        if !told.is_silent {
            (self.until_ms, self.has_begun) = (to_ms, true);
        }
        Ok(told)
    }
}

/// A pod may be gone from the objects when what its GPUs did is kept: then it is told as in the
/// reading before, or it would change its owner with its last minutes.
fn remember(
    reading: &mut Reading,
    gathered: Option<&Gathered>,
    before: &mut BTreeMap<(String, String), ReadPod>,
) {
    let tenants = gathered.iter().flat_map(|objects| &objects.tenants);
    let there: BTreeSet<(&str, &str)> =
        tenants.map(|tenant| (&*tenant.namespace, &*tenant.pod)).collect();
    let key = |pod: &ReadPod| (pod.namespace.clone(), pod.name.clone());
    for pod in &mut reading.pods {
        if !there.contains(&(&*pod.namespace, &*pod.name))
            && let Some(known) = before.get(&key(pod))
        {
            *pod = known.clone();
        }
    }
    *before = reading.pods.iter().map(|pod| (key(pod), pod.clone())).collect();
}

#[cfg(test)]
mod tests;
