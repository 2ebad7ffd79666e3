//! Samples of a job's devices and of the hosts of its pods.

use std::collections::BTreeMap;

use dovetail_account::signal::{Scale, Signal, micro_percent};
use dovetail_phases::job_phases::DeviceSample;

use super::events::PodEvents;
use super::query::JobSeries;
use crate::exporter::{Observation, ObservedDevice, PodLabels, SeriesMeasure, SeriesOrigin};
use crate::prometheus::{Labels, Series, own_label};

/// The moments of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// The first.
    pub from_ms: u64,
    /// Their distance.
    pub step_ms: u64,
    pub count: usize,
}

impl Grid {
    /// The place of a moment.
    pub(super) fn place(&self, at_ms: i64) -> Option<usize> {
        let after_ms = u64::try_from(at_ms).ok()?.checked_sub(self.from_ms)?;
        let place = usize::try_from(after_ms / self.step_ms.max(1)).ok()?;
        (place < self.count).then_some(place)
    }
}

/// How many devices share what is read of a pod, and of a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Devices {
    /// Held by the pod.
    pub(super) of_pod: u64,
    /// Held on the node by the job.
    pub(super) on_node: u64,
}

/// Namespace and name.
type PodName = (String, String);
/// Node, device, namespace and pod.
type DeviceOfPod = (String, String, String, String);

/// Everything that was answered about a job.
#[derive(Debug, Default)]
pub struct JobReadings {
    devices: BTreeMap<DeviceOfPod, BTreeMap<(JobSeries, i64), f64>>,
    hosts: BTreeMap<PodName, BTreeMap<(JobSeries, i64), f64>>,
    /// By node, where the job has its GPUs for itself.
    pub(super) nodes: BTreeMap<String, BTreeMap<(JobSeries, i64), f64>>,
    /// By uid; of what series do not say it is empty.
    events: BTreeMap<PodName, BTreeMap<String, PodEvents>>,
}

impl JobReadings {
    /// Takes an answer; series that name no pod are left out, and numbers that are none.
    pub fn take(&mut self, kind: JobSeries, pods: &PodLabels, series: Vec<Series>) {
        for Series { labels, samples } in series {
            let readings = match kind {
                JobSeries::Tensor
                | JobSeries::TensorPercent
                | JobSeries::Nvlink
                | JobSeries::MemoryMebibytes
                | JobSeries::MemoryBytes => {
                    let Some(origin) = SeriesOrigin::of(&labels, pods) else { continue };
                    let Some(holder) = origin.holder else { continue };
                    let key = (origin.node, origin.device, holder.namespace, holder.pod);
                    self.devices.entry(key).or_default()
                }
                JobSeries::Cpu
                | JobSeries::Read
                | JobSeries::Written
                | JobSeries::Received
                | JobSeries::Sent => {
                    let Some(pod) = pod_of(&labels) else { continue };
                    self.hosts.entry(pod).or_default()
                }
                _ => {
                    let Some(pod) = pod_of(&labels) else { continue };
                    let of_uid = self.events.entry(pod).or_default();
                    let uid = own_label(&labels, "uid").unwrap_or_default();
                    of_uid.entry(uid).or_default().take(kind, &labels, &samples);
                    continue;
                }
            };
            let is_sum = kind == JobSeries::Nvlink;
            for sample in samples.iter().filter(|sample| is_reading(sample.value)) {
                let value = readings.entry((kind, sample.at_ms)).or_insert(0.0);
                // Both ways of a link; else slices of a device, or two servers that read one
                // exporter.
                *value = if is_sum { *value + sample.value } else { value.max(sample.value) };
            }
        }
    }

    /// What happened to a pod: to the one of its name that has this uid, and all that is said
    /// without one; where it is empty, to whoever had the name.
    pub(super) fn events(&self, namespace: &str, pod: &str, uid: &str) -> PodEvents {
        let mut events = PodEvents::default();
        let of_name = self.events.get(&(namespace.to_owned(), pod.to_owned()));
        for (of_uid, more) in of_name.into_iter().flatten() {
            if uid.is_empty() || of_uid.is_empty() || of_uid == uid {
                events.add(more);
            }
        }
        events
    }

    /// What a pod did with a device, with its part of the host: of what is read of a pod as a whole
    /// each of its devices gets the same, and of what is read of a node that the job has for itself
    /// each device on it. Where both are read the larger counts: what a pod reads over a network of
    /// its node is in no counter of the pod.
    pub(super) fn samples(
        &self,
        observation: &Observation,
        device: &ObservedDevice,
        (namespace, pod): (&str, &str),
        devices: Devices,
        grid: Grid,
    ) -> Vec<DeviceSample> {
        let mut samples = vec![DeviceSample::default(); grid.count];
        observation.each_reading(
            &device.node,
            &device.device,
            (namespace, pod),
            |measure, at_ms, value| {
                let Some(sample) = grid.place(at_ms).map(|place| &mut samples[place]) else {
                    return;
                };
                let field = match measure {
                    SeriesMeasure::Busy(Signal::SmActive | Signal::AmdSmActive) => {
                        &mut sample.sm_micro_percent
                    }
                    SeriesMeasure::Busy(Signal::GpuUtil) => &mut sample.util_micro_percent,
                    SeriesMeasure::Busy(_) => &mut sample.engine_micro_percent,
                    SeriesMeasure::DramActive => &mut sample.dram_micro_percent,
                    SeriesMeasure::Power => &mut sample.power_milliwatts,
                };
                *field = (*field).max(Some(value));
            },
        );
        let key =
            (device.node.clone(), device.device.clone(), namespace.to_owned(), pod.to_owned());
        for ((kind, at_ms), value) in self.devices.get(&key).into_iter().flatten() {
            if let Some(place) = grid.place(*at_ms) {
                set_device(&mut samples[place], *kind, *value);
            }
        }
        let host = self.hosts.get(&(namespace.to_owned(), pod.to_owned()));
        for ((kind, at_ms), value) in host.into_iter().flatten() {
            if let Some(place) = grid.place(*at_ms) {
                set_host(&mut samples[place], *kind, value / devices.of_pod.max(1) as f64);
            }
        }
        for ((kind, at_ms), value) in self.nodes.get(&device.node).into_iter().flatten() {
            if let Some(place) = grid.place(*at_ms) {
                set_node(&mut samples[place], *kind, *value, devices.on_node.max(1) as f64);
            }
        }
        samples
    }
}

fn set_device(sample: &mut DeviceSample, kind: JobSeries, value: f64) {
    const MEBIBYTE: f64 = 1_048_576.0;
    match kind {
        JobSeries::Tensor => {
            sample.tensor_micro_percent = micro_percent(value, Scale::Ratio).ok();
        }
        JobSeries::TensorPercent => {
            sample.tensor_micro_percent = micro_percent(value, Scale::Percent).ok();
        }
        JobSeries::Nvlink => sample.nvlink_bytes_per_s = whole(value),
        JobSeries::MemoryMebibytes => sample.memory_bytes = whole(value * MEBIBYTE),
        _ => sample.memory_bytes = whole(value),
    }
}

fn set_host(sample: &mut DeviceSample, kind: JobSeries, value: f64) {
    let (field, scale) = host_field(sample, kind);
    *field = whole(value * scale);
}

/// A disk is busy for all; CPUs of a node are those of its pods where nobody read these; all else
/// is shared.
fn set_node(sample: &mut DeviceSample, kind: JobSeries, value: f64, devices: f64) {
    if kind == JobSeries::DiskBusy {
        // A rate may be a little above what can be.
        sample.disk_busy_micro_percent = micro_percent(value.min(1.0), Scale::Ratio).ok();
        return;
    }
    let is_read = sample.cpu_milli.is_some();
    let (field, scale) = host_field(sample, kind);
    if kind != JobSeries::Cpu || !is_read {
        *field = (*field).max(whole(value / devices * scale));
    }
}

/// Where a number goes, and how often its unit has that of the field.
fn host_field(sample: &mut DeviceSample, kind: JobSeries) -> (&mut Option<u64>, f64) {
    match kind {
        JobSeries::Cpu => (&mut sample.cpu_milli, 1000.0),
        JobSeries::Read => (&mut sample.read_bytes_per_s, 1.0),
        JobSeries::Written => (&mut sample.written_bytes_per_s, 1.0),
        JobSeries::Received => (&mut sample.received_bytes_per_s, 1.0),
        _ => (&mut sample.sent_bytes_per_s, 1.0),
    }
}

/// What can be a number of bytes or CPUs; a driver's blank is none.
pub(super) fn is_reading(value: f64) -> bool {
    const BLANK: f64 = 1e14;
    value.is_finite() && (0.0..BLANK).contains(&value)
}

fn whole(value: f64) -> Option<u64> {
    is_reading(value).then_some(value as u64)
}

/// The pod of a series, its own labels before what a server put over them.
fn pod_of(labels: &Labels) -> Option<PodName> {
    own_label(labels, "namespace").zip(own_label(labels, "pod"))
}
