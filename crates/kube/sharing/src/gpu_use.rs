//! Which GPUs of a node its pods use, by what an exporter reports of each device (DCGM's labels
//! `gpu`, `GPU_I_ID` and `pod`). The API server only knows how many devices a pod has.
//!
//! A report counts if it is fresh and agrees with the API server: the same devices, the same pods,
//! and of each pod the same requests. Anything else is no evidence.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_model::MigTable;
use dovetail_model::labels::NVIDIA_GPU;
use dovetail_objects::Pod;

use crate::gpu_amounts::{gpu_amounts, known_resource, uses_gpus};
use crate::layout::{GpuLayout, NodeLayout, resource};
use crate::node_state::Seen;
use crate::side::Side;

/// Older samples do not count.
const FRESH_MS: u64 = 120_000;

/// What an exporter reports of a GPU or a MIG instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceReport {
    /// Number of the GPU on its node.
    pub gpu: usize,
    /// Number of the instance on the GPU, and its profile.
    pub slice: Option<(String, String)>,
    /// Namespace and name of the pod that uses it.
    pub pod: Option<String>,
    /// When it was sampled, in milliseconds since 1970.
    pub at_ms: u64,
}

/// How a GPU is cut, and what pods use of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GpuUse {
    pub layout: GpuLayout,
    /// Instances that pods use, by profile.
    pub held: BTreeMap<String, u32>,
    /// Namespaces and names.
    pub pods: BTreeSet<String>,
}

/// The devices of a GPU, by the number of their instance; `None`: the GPU as a whole.
type Devices<'r> = BTreeMap<Option<&'r str>, &'r DeviceReport>;

/// What is used of each GPU of a node, in the order of their numbers. `offers`: what is
/// allocatable, by resource; `pods`: all that use GPUs of the node.
///
/// # Errors
/// Why the reports are no evidence, in words that follow “DCGM does not show which:”.
pub fn gpu_uses(
    reports: &[DeviceReport],
    pods: &[&Pod],
    offers: &BTreeMap<String, i64>,
    table: &MigTable,
    now_ms: u64,
) -> Result<Vec<GpuUse>, String> {
    let fresh = reports.iter().filter(|report| report.at_ms + FRESH_MS >= now_ms);
    let gpus = by_gpu(fresh)?;
    let uses =
        gpus.values().map(|devices| of_gpu(devices, table)).collect::<Result<Vec<_>, _>>()?;
    let layout = NodeLayout(uses.iter().map(|one| one.layout.clone()).collect());
    if layout.offers() != *offers {
        return Err(format!("it reports {}, which is not what the node offers", layout.words()));
    }
    let mut used: BTreeMap<&str, (BTreeMap<String, i64>, u64)> = BTreeMap::new();
    for report in gpus.values().flat_map(BTreeMap::values) {
        let Some(pod) = &report.pod else { continue };
        let (devices, sampled_ms) = used.entry(pod).or_insert((BTreeMap::new(), u64::MAX));
        let profile = report.slice.as_ref().map(|(_, profile)| resource(profile));
        let name = known_resource(profile.as_deref().unwrap_or(NVIDIA_GPU), Some(table));
        *devices.entry(name).or_default() += 1;
        *sampled_ms = report.at_ms.min(*sampled_ms);
    }
    for pod in pods.iter().filter(|pod| uses_gpus(pod)) {
        let name = format!("{}/{}", pod.meta.namespace, pod.meta.name);
        let amounts = pod.holds().extended.iter();
        let amounts = amounts.map(|(name, count)| (&**name, *count));
        let asked = gpu_amounts(amounts, Some(table));
        // A sample from before the pod was there is of another pod of its name.
        let is_reported = used.remove(&*name).is_some_and(|(devices, sampled_ms)| {
            devices == asked && sampled_ms > pod.scheduled_ms && !pod.has_resource_claims
        });
        if !is_reported {
            return Err(format!("it does not report the devices of pod {name}"));
        }
    }
    match used.keys().next() {
        Some(pod) => Err(format!("it reports pod {pod}, which does not use GPUs of the node")),
        None => Ok(uses),
    }
}

fn by_gpu<'r>(
    reports: impl Iterator<Item = &'r DeviceReport>,
) -> Result<BTreeMap<usize, Devices<'r>>, String> {
    let mut gpus: BTreeMap<usize, Devices<'r>> = BTreeMap::new();
    for report in reports {
        let id = report.slice.as_ref().map(|(id, _)| &**id);
        let other = gpus.entry(report.gpu).or_default().insert(id, report);
        if other.is_some_and(|other| other.pod != report.pod) {
            return Err(format!("it reports several pods on one device of GPU {}", report.gpu));
        }
    }
    for (number, devices) in &mut gpus {
        // Of a GPU with instances there may be a sample of the whole, too.
        if devices.len() > 1 && devices.remove(&None).is_some_and(|whole| whole.pod.is_some()) {
            return Err(format!("it reports a pod on GPU {number} as a whole and its instances"));
        }
    }
    match !gpus.is_empty() && gpus.keys().copied().eq(0..gpus.len()) {
        true => Ok(gpus),
        false => Err("it has no recent samples of every GPU".to_owned()),
    }
}

fn of_gpu(devices: &Devices<'_>, table: &MigTable) -> Result<GpuUse, String> {
    let mut one = GpuUse::default();
    for report in devices.values() {
        one.pods.extend(report.pod.clone());
        let Some((_, profile)) = &report.slice else { continue };
        let Some(place) = table.profile(profile) else {
            return Err(format!("it reports an instance of unknown profile {profile}"));
        };
        let profile = &table.profiles[place].name;
        *one.layout.get_or_insert_default().entry(profile.clone()).or_default() += 1;
        if report.pod.is_some() {
            *one.held.entry(profile.clone()).or_default() += 1;
        }
    }
    Ok(one)
}

impl Seen {
    /// The node without the pods on GPUs that a change leaves as they are: only the others are in
    /// the way. `uses`: what is used of each GPU now.
    #[must_use]
    pub fn besides(mut self, uses: &[GpuUse], from: &Side, to: &Side) -> Self {
        let (before, after) = (&from.layout.0, &to.layout.0);
        let shares = from.replicas.is_some() || to.replicas.is_some();
        if shares || [before.len(), after.len()] != [uses.len(); 2] {
            return self;
        }
        let stays = |number: usize| before[number] == after[number];
        // mig-manager would change a GPU whose layout is another one than was planned with.
        if (0..uses.len()).any(|number| stays(number) && uses[number].layout != before[number]) {
            return self;
        }
        let is_clear = |pod: &str| {
            let mut of =
                (0..uses.len()).filter(|number| uses[*number].pods.contains(pod)).peekable();
            of.peek().is_some() && of.all(stays)
        };
        self.gpu_pods.retain(|pod| !is_clear(&pod.name));
        self
    }
}
