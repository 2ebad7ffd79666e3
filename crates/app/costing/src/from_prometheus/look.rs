//! What a server says of its period: devices, the nodes that they are in, and what those cost.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use dovetail_account::rollup::FreeLook;
use dovetail_account::signal::ActivityRule;
use dovetail_account::split::ListPrices;
use dovetail_console::table::counted;
use dovetail_inventory::facts::Gathered;
use dovetail_metrics::exporter::{DeviceHolder, Misplaced, ObservedTime};
use dovetail_metrics::kube_state::{
    AskedEarlier, BeginSeries, EARLIER_MS, EarlierQueries, KubeState, KubeTable, MachineSeries,
    NodeSeries, PodBegins, asked_for_devices, last_seen, node_history, reused,
};
use dovetail_settings::Settings;
use dovetail_sources::node_prices::{NodeToPrice, Prices};
use dovetail_sources::own_prices::OwnPriceFlags;
use dovetail_sources::placement::Placements;
use dovetail_sources::prometheus::{Asker, ObservedPeriod};

use super::left_open::LeftOpen;
use super::machine::{Machine, machines};
use super::unmeasured;
use crate::teams::Teams;

/// Said where no exporter was.
pub const NO_GPU_WAS_SEEN: &str = "no GPU was found: the server has no GPU exporter series in this \
                                   period; whether the cluster has GPUs is unknown";

/// What a bill is made with.
pub struct BillInputs<'s> {
    pub teams: &'s Teams,
    pub prices: &'s OwnPriceFlags,
    pub list_prices: Option<ListPrices>,
    /// Machines that were bought, what is committed, what other currencies are worth.
    pub settings: &'s Settings,
    /// Objects of one moment, if there are any.
    pub gathered: Option<&'s Gathered>,
    /// Why what was free on nodes was free, as far as somebody looked.
    pub free: &'s [(String, FreeLook)],
}

/// All that is known before anybody is charged.
pub struct Look {
    pub seen: ObservedPeriod,
    pub kube: KubeState,
    pub machines: Vec<Machine>,
    pub prices: Prices,
    /// What could not be read.
    pub notes: Vec<String>,
    /// What the figures leave open.
    pub left: LeftOpen,
}

impl Look {
    /// Asks for everything.
    ///
    /// # Errors
    /// A server that does not answer, or prices that cannot be.
    pub fn of(asker: &mut Asker, sources: &BillInputs<'_>) -> Result<Self> {
        let from_ms = asker.period.from_ms;
        Self::with_objects_since(from_ms, asker, sources)
    }

    /// The same, with the objects that were there from a moment on that may lie before the period.
    ///
    /// # Errors
    /// As for [`Look::of`].
    pub(crate) fn with_objects_since(
        from_ms: u64,
        asker: &mut Asker,
        sources: &BillInputs<'_>,
    ) -> Result<Self> {
        let seen = asker.observe()?;
        let mut notes = Vec::new();
        let mut kube = kube_state(asker, from_ms, &mut notes);
        known_earlier(asker, from_ms, &seen.time, &mut kube);
        let (mut seen, misplaced) = trusted(seen, &kube, sources);
        let mut left = unmeasured::add(asker, &mut seen.time, &kube, &mut notes);
        tell_pods_apart(&mut seen.time, &kube, asker.period.from_ms, asker.step_ms);
        left.misplaced = misplaced;
        left.samples_apart_ms = too_far_apart(asker.step_ms, &seen);
        Self::of_seen(seen, kube, (notes, left), sources)
    }

    /// What exporters said who were asked themselves. Nobody says what pods kept of CPU and memory,
    /// so that of nodes is unknown.
    ///
    /// # Errors
    /// Prices that cannot be.
    pub fn of_exporters(seen: ObservedPeriod, sources: &BillInputs<'_>) -> Result<Self> {
        let kube = KubeState::default();
        let (seen, misplaced) = trusted(seen, &kube, sources);
        let left = LeftOpen::of_misplaced(misplaced);
        let mut look = Self::of_seen(seen, kube, (Vec::new(), left), sources)?;
        look.machines.iter_mut().for_each(|machine| {
            (machine.cpu_milli, machine.memory_bytes) = (0, 0);
        });
        look.left.blind = blind(&look.machines);
        Ok(look)
    }

    fn of_seen(
        seen: ObservedPeriod,
        kube: KubeState,
        (notes, mut left): (Vec<String>, LeftOpen),
        sources: &BillInputs<'_>,
    ) -> Result<Self> {
        let machines = machines(&seen.time, &kube, sources);
        let to_price: Vec<NodeToPrice<'_>> = machines.iter().map(Machine::to_price).collect();
        let prices = sources.prices.of(&to_price, sources.settings)?;
        let measured = seen.time.devices.iter().filter(|device| device.is_measured);
        left.measured = Some(measured.map(|device| device.node.clone()).collect());
        left.blind = blind(&machines);
        left.unseen = sources.gathered.map(|objects| unseen(objects, &machines));
        for machine in &machines {
            left.add_machine(&machine.name, &machine.provider_id);
        }
        let later = machines.windows(2).filter(|pair| pair[0].name == pair[1].name);
        left.reused = later.map(|pair| pair[1].name.clone()).collect();
        Ok(Self { seen, kube, machines, prices, notes, left })
    }

    /// What is to be known of the figures beside what they leave open.
    pub fn told(&self, sources: &BillInputs<'_>) -> Vec<String> {
        let Self { seen: ObservedPeriod { time, observation, .. }, kube, .. } = self;
        let mut notes = Vec::new();
        if observation.refused().samples > 0 {
            notes.push(
                "exporters reported invalid values (NaN, negative, above the maximum, a driver's \
                 blank): that time counts as allocated and unknown; `dovetail usage gpus` counts \
                 such values"
                    .to_owned(),
            );
        }
        if kube.is_empty() && sources.gathered.is_none() {
            notes.push(
                "no objects and no kube-state-metrics series: jobs are recognized by their pods' names, and labels are \
                 unknown; to add both, pass --from or --kubeconfig"
                    .to_owned(),
            );
        }
        if !time.devices.is_empty() {
            let causes = match sources.free.is_empty() {
                true => {
                    "the causes of free GPUs require a snapshot: use --from without --prometheus"
                }
                false => {
                    "the causes of free GPUs are known only for the times at which objects were \
                     read"
                }
            };
            let counts =
                "a GPU counts from its first sample to its last; nodes without GPUs do not count";
            notes.push(format!("{counts}; {causes}"));
        }
        notes
    }
}

/// Nodes whose CPU and memory nobody knows.
fn blind(machines: &[Machine]) -> BTreeSet<String> {
    let blind = machines.iter().filter(|machine| machine.cpu_milli == 0);
    blind.map(|machine| machine.name.clone()).collect()
}

/// GPUs of nodes that objects have, and no series.
fn unseen(objects: &Gathered, machines: &[Machine]) -> BTreeMap<String, i64> {
    let seen: BTreeSet<&str> = machines.iter().map(|machine| machine.name.as_str()).collect();
    let unseen = objects.moment.nodes.iter().filter(|node| !seen.contains(&*node.node));
    unseen.map(|node| (node.node.clone(), node.gpus)).collect()
}

/// What was seen without holders that cannot have been, and with these.
fn trusted(
    mut seen: ObservedPeriod,
    kube: &KubeState,
    sources: &BillInputs<'_>,
) -> (ObservedPeriod, Vec<Misplaced>) {
    let placements = Placements::of(sources.gathered, Some(kube));
    let doubt = |node: &str, holder: &DeviceHolder, held| placements.doubt(node, holder, held);
    let misplaced = seen.time.distrust(doubt);
    (seen, misplaced)
}

/// The step and the distance of samples, where one does not hold until the next.
fn too_far_apart(step_ms: u64, seen: &ObservedPeriod) -> Option<(u64, u64)> {
    let apart_ms = seen.observation.sample_distance_ms()?;
    let longest_ms = step_ms.saturating_mul(ActivityRule::default().max_gap_intervals.into());
    (apart_ms > longest_ms).then_some((step_ms, apart_ms))
}

/// Everything that kube-state-metrics keeps; nothing, and a note, where it does not answer.
fn kube_state(asker: &mut Asker, from_ms: u64, notes: &mut Vec<String>) -> KubeState {
    let mut state = KubeState::default();
    let window_ms = asker.period.to_ms - from_ms;
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
        Err(error) => notes.push(format!("the requests of pods could not be read: {error}")),
    }
    machines_of_reused(asker, &mut state, notes);
    lives_of_pods(asker, window_ms, &mut state, notes);
    state
}

/// When pods began whose name another pod had before.
fn lives_of_pods(
    asker: &mut Asker,
    window_ms: u64,
    state: &mut KubeState,
    notes: &mut Vec<String>,
) {
    let names: Vec<String> = state.pods_come_again().into_iter().map(str::to_owned).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut begins = PodBegins::default();
    let at_ms = asker.period.to_ms.saturating_sub(1);
    for kind in BeginSeries::ALL {
        for query in kind.queries(&names, window_ms, asker.step_ms) {
            match asker.instant(&query, at_ms) {
                Ok(series) => begins.take(kind, series),
                Err(error) => notes.push(format!(
                    "{} had several pods, and their start times could not be read: {error}",
                    counted(names.len(), "pod name")
                )),
            }
        }
    }
    state.take_lives(&begins);
}

/// What pods held that had one name one after the other, each its own. A sample stands for the step
/// that begins with it: the first that can be of a pod is that after its begin.
fn tell_pods_apart(time: &mut ObservedTime, kube: &KubeState, from_ms: u64, step_ms: u64) {
    let step_ms = step_ms.max(1);
    let first_ms = |at_ms: u64| from_ms + at_ms.saturating_sub(from_ms).div_ceil(step_ms) * step_ms;
    time.tell_apart(|holder| {
        let lives = kube.lives(&holder.namespace, &holder.pod).iter().skip(1);
        lives.map(|life| first_ms(life.from_ms)).collect()
    });
}

/// Most groups of questions of one kind.
const MOST_GROUPS: usize = 100;
/// Who knows nothing of the first groups of a kind knows nothing of the others.
const FIRST_GROUPS: usize = 4;

/// Looks further back for pods and nodes that exporters name and kube-state-metrics, which may have
/// been away, does not: a part of a period knows them as the part before it did. What cannot be
/// asked stays unknown.
fn known_earlier(asker: &mut Asker, from_ms: u64, time: &ObservedTime, kube: &mut KubeState) {
    let at_ms = asker.period.to_ms.saturating_sub(1);
    for earlier_ms in EARLIER_MS {
        let pods = time.holders.iter().map(|holder| (&*holder.namespace, &*holder.pod));
        let nodes = time.devices.iter().map(|device| &*device.node);
        let unknown = kube.unknown(pods, nodes);
        if unknown.is_empty() {
            return;
        }
        let window_ms = asker.period.to_ms.saturating_sub(from_ms).saturating_add(earlier_ms);
        let EarlierQueries { nodes, namespaces, pods } = unknown.queries(window_ms);
        let mut earlier = KubeState::default();
        let is_answered = ask_earlier(asker, at_ms, nodes, &mut earlier, |known| known.nodes.len())
            && ask_earlier(asker, at_ms, namespaces, &mut earlier, |known| known.namespaces.len())
            && ask_earlier(asker, at_ms, pods, &mut earlier, |known| known.pods.len());
        kube.take_earlier(&unknown, earlier);
        if !is_answered {
            return;
        }
    }
}

/// Asks group by group, for as long as that brings anything to light; `false` where the server does
/// not answer.
fn ask_earlier(
    asker: &mut Asker,
    at_ms: u64,
    groups: Vec<Vec<AskedEarlier>>,
    earlier: &mut KubeState,
    count_known: fn(&KubeState) -> usize,
) -> bool {
    for (number, group) in groups.into_iter().take(MOST_GROUPS).enumerate() {
        if number == FIRST_GROUPS && count_known(earlier) == 0 {
            return true;
        }
        for AskedEarlier { table, query } in group {
            match asker.instant(&query, at_ms) {
                Ok(series) => earlier.take(table, series),
                Err(_) => return false,
            }
        }
    }
    true
}

/// Nodes whose name another machine had before.
fn machines_of_reused(asker: &mut Asker, state: &mut KubeState, notes: &mut Vec<String>) {
    let names: Vec<&str> = reused(&state.nodes).into_iter().collect();
    if names.is_empty() {
        return;
    }
    let mut found = MachineSeries::default();
    for kind in NodeSeries::ALL {
        for query in node_history(kind, &names, asker.step_ms) {
            match asker.range(&query) {
                Ok(series) => found.take(kind, series),
                Err(error) => {
                    notes.push(format!(
                        "{} had several machines, and their times could not be read: {error}",
                        counted(names.len(), "node name")
                    ));
                    return;
                }
            }
        }
    }
    state.machines.extend(found.of_reused(&state.nodes));
}
