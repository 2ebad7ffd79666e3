//! Where a device is on its node, and which pod uses it, now.

use dovetail_account::signal::dcgm;

use super::origin::{MigSlice, SeriesOrigin};
use super::pod_labels::PodLabels;
use crate::prometheus::Series;

/// The queries for when NVIDIA's exporter has sampled series, the most common one first: of each
/// answer the value is that time, in seconds since 1970.
pub fn sampled() -> [String; 3] {
    let series = [dcgm::MEMORY_USED, dcgm::GR_ENGINE_ACTIVE, dcgm::GPU_UTIL];
    series.map(|name| format!("timestamp({name})"))
}

/// A GPU or a MIG instance of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DevicePlace {
    pub node: String,
    /// Number of the GPU on its node.
    pub gpu: usize,
    pub slice: Option<MigSlice>,
    /// Namespace and name of the pod that uses it.
    pub pod: Option<(String, String)>,
    /// When it was sampled, in milliseconds since 1970.
    pub at_ms: u64,
}

/// The devices in an answer to one of [`sampled`]. A series without the number of its GPU, or
/// without a value, is left out.
pub fn places(series: &[Series]) -> Vec<DevicePlace> {
    let pods = PodLabels::of(series.iter().map(|one| &one.labels));
    let place = |one: &Series| {
        let SeriesOrigin { node, slice, holder, .. } = SeriesOrigin::of(&one.labels, &pods)?;
        let gpu = one.labels.get("gpu")?.parse().ok()?;
        let sampled_s = one.samples.last()?.value;
        let at_ms = (sampled_s.is_finite() && sampled_s > 0.0).then_some(sampled_s * 1e3)? as u64;
        let pod = holder.map(|holder| (holder.namespace, holder.pod));
        Some(DevicePlace { node, gpu, slice, pod, at_ms })
    };
    series.iter().filter_map(place).collect()
}

/// A figure about a pod that has a device.
#[derive(Clone, Debug, PartialEq)]
pub struct PodFigure {
    /// Node, or the address that was scraped where no label names it.
    pub node: String,
    /// Identity of the device, unique on its node.
    pub device: String,
    /// Model, as the exporter writes it.
    pub model: Option<String>,
    pub is_slice: bool,
    pub namespace: String,
    pub pod: String,
    pub value: f64,
}

/// The last values of series about devices, where a label names a pod.
pub fn pod_figures(series: &[Series]) -> Vec<PodFigure> {
    let pods = PodLabels::of(series.iter().map(|one| &one.labels));
    let figure = |one: &Series| {
        let SeriesOrigin { node, device, model, slice, holder } =
            SeriesOrigin::of(&one.labels, &pods)?;
        let holder = holder?;
        let value = one.samples.last()?.value;
        let (namespace, pod) = (holder.namespace, holder.pod);
        let is_slice = slice.is_some();
        value.is_finite().then_some(PodFigure {
            node,
            device,
            model,
            is_slice,
            namespace,
            pod,
            value,
        })
    };
    series.iter().filter_map(figure).collect()
}
