//! How many physical GPUs a node has, and who says so. A plugin may offer more units than there are
//! GPUs, so what GPU Feature Discovery and providers count comes before what is offered.

use std::fmt;

use dovetail_model::{InstanceType, instance_type};
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
    /// GPUs of the node's instance type, where another number counts; `None` if the type is not
    /// known.
    pub fn of_machine(&self) -> Option<i64> {
        let is_type = |by: &CountSource| matches!(by, CountSource::InstanceType(_));
        self.others.iter().find(|(by, _)| is_type(by)).map(|(_, gpus)| *gpus)
    }

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
    let (name, of_type) = type_of(of)?;
    Some((CountSource::InstanceType(name.to_owned()), of_type.gpus))
}

/// The instance type of a node by its labels, with its GPUs; `None` if no table has it.
pub(super) fn type_of(of: &Labels) -> Option<(&str, InstanceType)> {
    let types = [labels::INSTANCE_TYPE, labels::OLD_INSTANCE_TYPE];
    let name = types.iter().find_map(|key| of.get(key))?;
    Some((name, instance_type(name)?))
}
