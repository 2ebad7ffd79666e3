//! How many physical GPUs a node has, and who says so. A plugin may offer more units than there are
//! GPUs, so what GPU Feature Discovery and providers count comes before what is offered.

use std::fmt;

use dovetail_objects::{GpuLabels, Labels, labels};

/// Who says how many GPUs a node has, the most trusted first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CountSource {
    /// GPU Feature Discovery's label.
    Discovery,
    /// A label of the provider or its autoscaler, by its key.
    Provider(&'static str),
    InstanceType(String),
    /// Intel's labels about devices, by how their keys begin.
    Intel(&'static str),
    /// HAMi's list of the node's GPUs.
    Hami,
    /// The fewest GPUs whose legal MIG layouts hold the instances.
    Layouts,
    /// The device plugin.
    Offered,
}

impl fmt::Display for CountSource {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Discovery => out.write_str(labels::NVIDIA_COUNT),
            Self::Provider(label) => out.write_str(label),
            Self::InstanceType(name) => write!(out, "instance type {name}"),
            Self::Intel(labels) if labels.ends_with('.') => write!(out, "{labels}*"),
            Self::Intel(label) => out.write_str(label),
            Self::Hami => out.write_str(labels::HAMI_REGISTER),
            Self::Layouts => out.write_str("the minimum number of GPUs for its MIG instances"),
            Self::Offered => out.write_str("the device plugin"),
        }
    }
}

/// How many GPUs count, by whom, and what others say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuCount {
    pub gpus: i64,
    /// Who says so.
    pub by: CountSource,
    /// Those who say another number. Layouts are among them where instances are taken for replicas.
    pub others: Vec<(CountSource, i64)>,
}

impl GpuCount {
    /// Who counts fewer GPUs than the MIG instances of the node need, each offered once; `None` if
    /// nobody does. Replicas of instances that no label counts look like the instances of further
    /// GPUs.
    pub fn too_few_for_instances(&self) -> Option<&CountSource> {
        if self.others.iter().any(|(by, _)| *by == CountSource::Layouts) {
            return Some(&self.by);
        }
        let fewer = self.others.iter().find(|(_, gpus)| *gpus < self.gpus);
        fewer.filter(|_| self.by == CountSource::Layouts).map(|(by, _)| by)
    }
}

/// Labels by which providers count physical GPUs.
const COUNTS: [&str; 2] = [labels::KARPENTER_GPU_COUNT, labels::GKE_ACCELERATOR_COUNT];

/// More GPUs of a node are a slip of whoever wrote the label.
const MOST: i64 = 4096;

/// Instance types by their number of GPUs: the price lists of AWS, Azure and Google that the price
/// book is made from (NOTICE).
const INSTANCE_TYPES: [(i64, &[&str]); 5] = [
    (
        1,
        &[
            "Standard_NC16as_T4_v3",
            "Standard_NC24ads_A100_v4",
            "Standard_NC40ads_H100_v5",
            "Standard_NC4as_T4_v3",
            "Standard_NC6s_v3",
            "Standard_NC8as_T4_v3",
            "Standard_NV36ads_A10_v5",
            "a2-highgpu-1g",
            "a2-ultragpu-1g",
            "a3-highgpu-1g",
            "g2-standard-12",
            "g2-standard-16",
            "g2-standard-32",
            "g2-standard-4",
            "g2-standard-8",
            "g4-standard-48",
            "g4dn.16xlarge",
            "g4dn.2xlarge",
            "g4dn.4xlarge",
            "g4dn.8xlarge",
            "g4dn.xlarge",
            "g5.16xlarge",
            "g5.2xlarge",
            "g5.4xlarge",
            "g5.8xlarge",
            "g5.xlarge",
            "g6.16xlarge",
            "g6.2xlarge",
            "g6.4xlarge",
            "g6.8xlarge",
            "g6.xlarge",
            "g6e.16xlarge",
            "g6e.2xlarge",
            "g6e.4xlarge",
            "g6e.8xlarge",
            "g6e.xlarge",
            "p3.2xlarge",
            "p5.4xlarge",
        ],
    ),
    (
        2,
        &[
            "Standard_NC12s_v3",
            "Standard_NC48ads_A100_v4",
            "Standard_NC80adis_H100_v5",
            "Standard_NV72ads_A10_v5",
            "a2-highgpu-2g",
            "a2-ultragpu-2g",
            "a3-highgpu-2g",
            "g2-standard-24",
            "g4-standard-96",
        ],
    ),
    (
        4,
        &[
            "Standard_NC24s_v3",
            "Standard_NC64as_T4_v3",
            "Standard_NC96ads_A100_v4",
            "Standard_ND128isr_NDR_GB200_v6",
            "a2-highgpu-4g",
            "a2-ultragpu-4g",
            "a3-highgpu-4g",
            "g2-standard-48",
            "g4-standard-192",
            "g4dn.12xlarge",
            "g5.12xlarge",
            "g5.24xlarge",
            "g6.12xlarge",
            "g6.24xlarge",
            "g6e.12xlarge",
            "g6e.24xlarge",
            "p3.8xlarge",
        ],
    ),
    (
        8,
        &[
            "Standard_ND40rs_v2",
            "Standard_ND96amsr_A100_v4",
            "Standard_ND96asr_v4",
            "Standard_ND96is_MI300X_v5",
            "Standard_ND96isr_H100_v5",
            "Standard_ND96isr_H200_v5",
            "Standard_ND96isr_MI300X_v5",
            "a2-highgpu-8g",
            "a2-ultragpu-8g",
            "a3-highgpu-8g",
            "a3-megagpu-8g",
            "g2-standard-96",
            "g4-standard-384",
            "g4dn.metal",
            "g5.48xlarge",
            "g6.48xlarge",
            "g6e.48xlarge",
            "p3.16xlarge",
            "p3dn.24xlarge",
            "p4d.24xlarge",
            "p4de.24xlarge",
            "p5.48xlarge",
            "p5en.48xlarge",
            "p6-b200.48xlarge",
            "p6-b300.48xlarge",
        ],
    ),
    (16, &["a2-megagpu-16g"]),
];

/// GPUs of a node as labels, its instance type and HAMi count them, the most trusted first. With
/// the MIG strategy `single` the label of GPU Feature Discovery counts instances. A label that
/// counts more GPUs than the machine has counts something else, so it comes last.
pub(super) fn stated(of: &Labels, hami: Option<i64>, is_single: bool) -> Vec<(CountSource, i64)> {
    let positive = |text: &str| text.parse::<i64>().ok().filter(|count| (1..=MOST).contains(count));
    let discovered = GpuLabels::read(|key| of.get(key)).count.map(i64::from);
    let discovered = discovered.filter(|_| !is_single);
    let by_label = COUNTS
        .into_iter()
        .filter_map(|key| Some((CountSource::Provider(key), of.get(key).and_then(positive)?)));
    let hami = hami.filter(|gpus| *gpus > 0).map(|gpus| (CountSource::Hami, gpus));
    let discovered = discovered.map(|gpus| (CountSource::Discovery, gpus));
    let by_type = by_instance_type(of);
    let most = by_type.as_ref().map_or(i64::MAX, |(_, gpus)| *gpus);
    let all = discovered.into_iter().chain(by_label).chain(by_type).chain(hami);
    let (possible, beyond): (Vec<_>, Vec<_>) = all.partition(|(_, gpus)| *gpus <= most);
    possible.into_iter().chain(beyond).collect()
}

/// Intel GPUs of a node as labels count them, the most trusted first: the list of those that have a
/// device file, then PCI devices.
pub(super) fn stated_of_intel(of: &Labels) -> Vec<(CountSource, i64)> {
    let is_part = |key: &str| {
        let place = key.strip_prefix(labels::INTEL_NUMBERS);
        place.is_some_and(|place| place.bytes().all(|byte| byte.is_ascii_digit()))
    };
    // A list is cut between any two letters.
    let list: String = of.iter().filter(|(key, _)| is_part(key)).map(|(_, part)| part).collect();
    let listed = list.split('.').filter(|number| number.parse::<u32>().is_ok()).count();
    let counts = of.iter().filter_map(|(key, count)| {
        let device = key.strip_prefix(labels::INTEL_DEVICE)?;
        let count = count.parse::<i64>().ok().filter(|count| (1..=MOST).contains(count));
        count.filter(|_| device.ends_with(".count"))
    });
    let all = [
        (labels::INTEL_NUMBERS, i64::try_from(listed).unwrap_or(0)),
        (labels::INTEL_DEVICE, counts.sum::<i64>()),
    ];
    let all = all.into_iter().filter(|(_, gpus)| (1..=MOST).contains(gpus));
    all.map(|(labels, gpus)| (CountSource::Intel(labels), gpus)).collect()
}

fn by_instance_type(of: &Labels) -> Option<(CountSource, i64)> {
    let types = [labels::INSTANCE_TYPE, labels::OLD_INSTANCE_TYPE];
    let of_node = types.iter().find_map(|key| of.get(key))?;
    let (count, _) = INSTANCE_TYPES.iter().find(|(_, types)| types.contains(&of_node))?;
    Some((CountSource::InstanceType(of_node.to_owned()), *count))
}
