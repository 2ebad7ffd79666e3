//! How the devices of a node are cut into what it offers: as whole ones, replicas, or MIG slices.

use dovetail_objects::{GpuLabels, mig_of_product};
use std::collections::BTreeMap;

use dovetail_account::signal::mig_compute_slices;

use crate::kube_state::{CountedSpan, KubeNode, label};

/// Compute slices of a device that can be cut.
const MIG_SLICES: u32 = 7;

/// Whole devices under NVIDIA's names, which may be replicas.
const NVIDIA: [&str; 2] = ["nvidia_com_gpu", "nvidia_com_gpu_shared"];

/// MIG slices, by profile.
const MIG: &str = "nvidia_com_mig_";

/// How devices of a node are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NodeCut {
    pub(super) cut: ResourceCut,
    /// Physical devices, where a label says it.
    devices: Option<u32>,
}

/// What `nvidia.com/gpu` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResourceCut {
    /// So many of it are one device, as a label says.
    Replicas(u32),
    /// So many of it are one device, as nobody says: exporters measure so many fewer.
    Guessed(u32),
    /// It is a slice of so many compute slices.
    Slice(u32),
}

impl NodeCut {
    /// What labels of a node say, else what it offers at most against the devices that were
    /// measured at most.
    pub(super) fn of(
        node: Option<&KubeNode>,
        offered: &BTreeMap<&str, Vec<CountedSpan>>,
        measured: u32,
    ) -> Self {
        let offered = NVIDIA.iter().filter_map(|name| offered.get(name)).flatten();
        let offered = offered.map(|amount| amount.count).max().unwrap_or(0);
        let labels = GpuLabels::read(|key| label(&node?.labels, key));
        let profile = labels.product.as_deref().and_then(mig_of_product);
        let slices = profile.and_then(|(_, profile)| mig_compute_slices(profile));
        let is_guess = measured > 0 && offered > measured && offered.is_multiple_of(measured);
        let guessed = if is_guess { offered / measured } else { 1 };
        let cut = match (slices, labels.replicas) {
            (Some(slices), _) => ResourceCut::Slice(slices),
            (None, Some(replicas)) => ResourceCut::Replicas(replicas),
            (None, None) => ResourceCut::Guessed(guessed),
        };
        // With one strategy of MIG the label counts slices.
        let devices = labels.count.filter(|_| slices.is_none());
        Self { cut, devices }
    }

    /// How many devices some amounts of resources are.
    pub(super) fn devices<'r>(&self, amounts: impl Iterator<Item = (&'r str, u32)>) -> u32 {
        let (mut nvidia, mut slices, mut others) = (0u32, 0u32, 0u32);
        for (resource, count) in amounts {
            match (NVIDIA.contains(&resource), resource.strip_prefix(MIG), self.cut) {
                (true, _, ResourceCut::Slice(of)) => slices += of * count,
                (true, ..) => nvidia += count,
                (false, Some(profile), _) => slices += slices_of(profile) * count,
                (false, None, _) => others += count,
            }
        }
        let found = nvidia.div_ceil(self.replicas()) + slices.div_ceil(MIG_SLICES);
        // Slices need not use up a device, so a label knows better; nothing that is gone comes back
        // by it.
        let known = self.devices.filter(|devices| slices > 0 && *devices > found);
        others + known.unwrap_or(found)
    }

    /// The units of a device: slices of each of its replicas.
    pub(super) fn units(&self) -> u32 {
        MIG_SLICES * self.replicas()
    }

    pub(super) fn units_of(&self, resource: &str) -> u32 {
        match (NVIDIA.contains(&resource), resource.strip_prefix(MIG), self.cut) {
            (true, _, ResourceCut::Slice(of)) => of,
            (true, ..) => MIG_SLICES,
            (false, Some(profile), _) => slices_of(profile) * self.replicas(),
            (false, None, _) => self.units(),
        }
    }

    fn replicas(&self) -> u32 {
        match self.cut {
            ResourceCut::Replicas(replicas) | ResourceCut::Guessed(replicas) => replicas.max(1),
            ResourceCut::Slice(_) => 1,
        }
    }
}

/// Compute slices of a profile, as kube-state-metrics writes it (`1g_10gb`); one that nobody knows
/// is the smallest.
fn slices_of(profile: &str) -> u32 {
    mig_compute_slices(&profile.replace('_', ".")).unwrap_or(1)
}
