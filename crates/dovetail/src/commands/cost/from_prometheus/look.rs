//! What a server says of its period: devices, the nodes that they are in, and what those cost.

use anyhow::Result;
use dovetail_kube::facts::Gathered;
use dovetail_ledger::rollup::FreeLook;
use dovetail_ledger::signal::ActivityRule;
use dovetail_ledger::split::ListPrices;
use dovetail_metrics::exporter::{Holder, Misplaced};
use dovetail_metrics::kube_state::{
    KubeState, KubeTable, MachineSeries, NodeSeries, asked_for_devices, last_seen, node_history,
};

use super::machine::{Machine, machines};
use super::unmeasured;
use crate::commands::cost::teams::Teams;
use crate::input::node_prices::{NodePriceFlags, NodeToPrice, Prices};
use crate::input::placement::{Placements, misplaced_in_words};
use crate::input::prometheus::{Asker, Observed};
use crate::output::table::counted;
use crate::settings::Settings;

/// Said where no exporter was.
pub(crate) const NO_GPU_WAS_SEEN: &str = "no GPU was seen: the server has no series of a GPU exporter in this period; \
     that says nothing about whether there are GPUs";

/// What a bill is made with.
pub(crate) struct Sources<'s> {
    pub(crate) teams: &'s Teams,
    pub(crate) prices: &'s NodePriceFlags,
    pub(crate) list_prices: Option<ListPrices>,
    /// Machines that were bought, what is committed, what other currencies are worth.
    pub(crate) settings: &'s Settings,
    /// Objects of one moment, if there are any.
    pub(crate) gathered: Option<&'s Gathered>,
    /// Why what was free on nodes was free, as far as somebody looked.
    pub(crate) free: &'s [(String, FreeLook)],
}

/// All that is known before anybody is charged.
pub(crate) struct Look {
    pub(crate) seen: Observed,
    pub(crate) kube: KubeState,
    pub(crate) machines: Vec<Machine>,
    pub(crate) prices: Prices,
    /// What could not be read.
    pub(crate) notes: Vec<String>,
    /// Holders that series name and nobody believes.
    pub(crate) misplaced: Vec<Misplaced>,
}

impl Look {
    /// Asks for everything.
    ///
    /// # Errors
    /// A server that does not answer, or prices that cannot be.
    pub(crate) fn of(asker: &mut Asker, sources: &Sources<'_>) -> Result<Self> {
        let seen = asker.observe()?;
        let mut notes = Vec::new();
        notes.extend(too_fine(asker.step_ms, &seen));
        let kube = kube_state(asker, &mut notes);
        let (mut seen, misplaced) = trusted(seen, &kube, sources);
        notes.extend(misplaced_in_words(&misplaced));
        unmeasured::add(asker, &mut seen.time, &kube, &mut notes);
        Ok(Self { misplaced, ..Self::of_seen(seen, kube, notes, sources)? })
    }

    /// What exporters said who were asked themselves. Nobody says what pods kept of CPU and memory, so that of nodes is
    /// unknown.
    ///
    /// # Errors
    /// Prices that cannot be.
    pub(crate) fn of_exporters(seen: Observed, sources: &Sources<'_>) -> Result<Self> {
        let kube = KubeState::default();
        let (seen, misplaced) = trusted(seen, &kube, sources);
        let notes = misplaced_in_words(&misplaced);
        let mut look = Self::of_seen(seen, kube, notes, sources)?;
        look.machines.iter_mut().for_each(|machine| {
            (machine.cpu_milli, machine.memory_bytes) = (0, 0);
        });
        Ok(look)
    }

    fn of_seen(
        seen: Observed,
        kube: KubeState,
        mut notes: Vec<String>,
        sources: &Sources<'_>,
    ) -> Result<Self> {
        let machines = machines(&seen.time, &kube, sources);
        let to_price: Vec<NodeToPrice<'_>> = machines.iter().map(Machine::to_price).collect();
        let prices = sources.prices.of(&to_price, sources.settings)?;
        notes.extend(prices.notes.iter().cloned());
        Ok(Self { seen, kube, machines, prices, notes, misplaced: Vec::new() })
    }

    /// What the figures leave out.
    pub(crate) fn told(&self, sources: &Sources<'_>) -> Vec<String> {
        let Self { seen: Observed { time, observation, .. }, kube, machines, .. } = self;
        let mut notes = Vec::new();
        if observation.refused().samples > 0 {
            notes.push(
                "exporters wrote numbers that are no readings (NaN, below zero, more than all, a driver's blank): that \
                 time counts as held and unknown; usage gpus counts them"
                    .to_owned(),
            );
        }
        if !time.devices.iter().any(|device| device.is_measured) {
            notes.push(NO_GPU_WAS_SEEN.to_owned());
        }
        if kube.is_empty() && sources.gathered.is_none() {
            notes.push(
                "neither objects nor series of kube-state-metrics: jobs are told by their pods' names, and labels \
                 are unknown; objects of the cluster add both (--from, --kubeconfig)"
                    .to_owned(),
            );
        }
        let blind = machines.iter().filter(|machine| machine.cpu_milli == 0).count();
        if blind > 0 {
            notes.push(format!(
                "CPU and memory of {}: unknown; the GPUs carry the whole price, whatever the method",
                counted(blind, "node")
            ));
        }
        if let Some(objects) = sources.gathered {
            let seen = |name: &str| machines.iter().any(|machine| machine.name == name);
            let unseen = objects.moment.nodes.iter().filter(|node| !seen(&node.node));
            let gpus: Vec<i64> = unseen.map(|node| node.gpus).collect();
            if !gpus.is_empty() {
                notes.push(format!(
                    "{} on {} without series of an exporter: not in it",
                    counted(usize::try_from(gpus.iter().sum::<i64>()).unwrap_or(0), "GPU"),
                    counted(gpus.len(), "node")
                ));
            }
        }
        if !time.devices.is_empty() {
            let causes = match sources.free.is_empty() {
                true => "why free GPUs were free needs a moment: --from without --prometheus",
                false => {
                    "why free GPUs were free is known of the moments at which objects were read"
                }
            };
            let counts =
                "a GPU counts from its first sample to its last, nodes without GPUs do not";
            notes.push(format!("{counts}; {causes}"));
        }
        notes
    }
}

/// What was seen without holders that cannot have been, and with these.
fn trusted(
    mut seen: Observed,
    kube: &KubeState,
    sources: &Sources<'_>,
) -> (Observed, Vec<Misplaced>) {
    let placements = Placements::of(sources.gathered, Some(kube));
    let doubt = |node: &str, holder: &Holder, held| placements.doubt(node, holder, held);
    let misplaced = seen.time.distrust(doubt);
    (seen, misplaced)
}

/// Samples that lie so far apart that one does not hold until the next.
fn too_fine(step_ms: u64, seen: &Observed) -> Option<String> {
    let apart_ms = seen.observation.sample_distance_ms()?;
    let longest_ms = step_ms.saturating_mul(ActivityRule::default().max_gap_intervals.into());
    (apart_ms > longest_ms).then(|| {
        let [step, apart] = [step_ms, apart_ms].map(|ms| ms.div_ceil(1000));
        format!(
            "samples lie {apart} s apart, so with --step {step}s most of what held GPUs did is unknown: ask with --step \
             {apart}s or more"
        )
    })
}

/// Everything that kube-state-metrics keeps; nothing, and a note, where it does not answer.
fn kube_state(asker: &mut Asker, notes: &mut Vec<String>) -> KubeState {
    let mut state = KubeState::default();
    let window_ms = asker.period.to_ms - asker.period.from_ms;
    let at_ms = asker.period.to_ms.saturating_sub(1);
    for table in KubeTable::ALL {
        match asker.instant(&last_seen(table, window_ms), at_ms) {
            Ok(series) => state.take(table, series),
            Err(error) => {
                notes.push(format!("{} could not be read: {error}", table.series()));
                return state;
            }
        }
    }
    if state.is_empty() {
        return state;
    }
    match asker.instant(&asked_for_devices(window_ms), at_ms) {
        Ok(series) => state.take_askers(series),
        Err(error) => notes.push(format!("what pods ask for could not be read: {error}")),
    }
    machines_of_reused(asker, &mut state, notes);
    state
}

/// Nodes whose name another machine had before.
fn machines_of_reused(asker: &mut Asker, state: &mut KubeState, notes: &mut Vec<String>) {
    let reused = state.reused();
    if reused.is_empty() {
        return;
    }
    let names: Vec<&str> = reused.into_iter().collect();
    let mut found = MachineSeries::default();
    for kind in NodeSeries::ALL {
        for query in node_history(kind, &names, asker.step_ms) {
            match asker.range(&query) {
                Ok(series) => found.take(kind, series),
                Err(error) => {
                    notes.push(format!(
                        "{} had several machines, and which one was there when could not be read: {error}",
                        counted(names.len(), "node name")
                    ));
                    return;
                }
            }
        }
    }
    state.take_machines(&found);
}
