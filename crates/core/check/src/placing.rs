//! Whether one pod may go where a plan puts it, judged against the world just before.

use std::collections::BTreeSet;

use dovetail_model::device::WHOLE_DEVICE_MILLI;
use dovetail_model::{
    Attachment, Device, DeviceAmount, DeviceRequest, HeldDevices, Mode, Node, NodeCondition,
    NodeName, PodId, Requirement, SelectorTerm, Taint, TaintEffect,
};

use crate::devices::{FreeAmounts, MODES};
use crate::node_books::{NodeBooks, axes};
use crate::violation::{DeviceProblem, Violation};
use crate::world::ClusterBooks;

/// One pod about to be placed.
pub(crate) struct Placing<'w> {
    pub(crate) world: &'w ClusterBooks,
    pub(crate) pod: PodId,
    pub(crate) requirement: &'w Requirement,
    pub(crate) name: &'w NodeName,
    pub(crate) books: &'w NodeBooks,
    pub(crate) devices: &'w HeldDevices,
}

impl Placing<'_> {
    /// Everything that speaks against it.
    pub(crate) fn violations(&self) -> Vec<Violation> {
        let mut found = Vec::new();
        self.judge_node(&mut found);
        self.judge_amounts(&mut found);
        self.judge_device_count(&mut found);
        match self.books.devices.pooled {
            true => self.judge_pool(&mut found),
            false => self.judge_devices(&mut found),
        }
        self.judge_volumes(&mut found);
        self.judge_rules(&mut found);
        found
    }

    fn judge_node(&self, found: &mut Vec<Violation>) {
        let (pod, node) = (self.pod, || self.name.clone());
        let here = &self.books.node;
        if !self.world.is_open(here) {
            found.push(Violation::Closed { pod, node: node(), condition: here.condition });
        }
        let mark = here.unschedulable.then(Node::mark);
        for taint in here.taints.iter().chain(&mark) {
            if !tolerates(self.requirement, taint) {
                found.push(Violation::Taint { pod, node: node(), taint: taint.key.clone() });
            }
        }
        if !is_named(self.requirement, here) {
            found.push(Violation::Selector { pod, node: node() });
        }
        for condition in &self.requirement.node_conditions {
            if !holds(condition, here) {
                let cause = condition.cause;
                found.push(Violation::Condition { pod, node: node(), cause });
            }
        }
    }

    /// Volumes count once per node; limits that the pod adds nothing to are not its business.
    fn judge_volumes(&self, found: &mut Vec<Violation>) {
        let attached: BTreeSet<&Attachment> =
            self.books.held.values().flat_map(|held| &held.attachments).collect();
        for (limit, most) in &self.books.node.attach_limits {
            let of_limit = |a: &&Attachment| a.limit == *limit;
            let asked = self.requirement.attachments.iter().filter(of_limit);
            let new = asked.filter(|a| !attached.contains(a)).count() as i64;
            let before = attached.iter().copied().filter(of_limit).count() as i64;
            if new > 0 && before + new > *most {
                let (pod, node, limit) = (self.pod, self.name.clone(), limit.clone());
                let after = before + new;
                found.push(Violation::Volumes { pod, node, limit, after, most: *most });
            }
        }
    }

    fn judge_amounts(&self, found: &mut Vec<Violation>) {
        let (pod, books) = (self.pod, self.books);
        let node = || self.name.clone();
        let over = books.devices.overcommitted(&books.node, &self.world.mig_tables);
        if let Some((axis, free)) = over.filter(|_| self.requirement.device != DeviceRequest::None)
        {
            found.push(Violation::Overcommitted { pod, node: node(), axis, free });
        }
        for (axis, asked) in axes(&self.requirement.resources).filter(|(_, asked)| *asked > 0) {
            let free = axes(&books.free).find(|(name, _)| *name == axis).map_or(0, |(_, f)| f);
            if free < asked {
                let axis = axis.to_owned();
                found.push(Violation::Amount { pod, node: node(), axis, asked, free });
            }
        }
    }

    fn judge_device_count(&self, found: &mut Vec<Violation>) {
        let asked = match &self.requirement.device {
            DeviceRequest::None => 0,
            DeviceRequest::Whole { count, .. } => usize::from(*count),
            _ => 1,
        };
        let got = self.devices.len();
        if got != asked {
            let node = self.name.clone();
            found.push(Violation::DeviceCount { pod: self.pod, node, got, asked });
        }
    }

    /// Where the kubelet chooses, only sums can be judged.
    fn judge_pool(&self, found: &mut Vec<Violation>) {
        let devices = &self.books.node.devices;
        let usable: Vec<&Device> =
            devices.iter().filter(|d| d.healthy && allows(self.requirement, d)).collect();
        if usable.len() < self.devices.len() {
            found.push(self.device(0, DeviceProblem::Kind));
        }
        let many = self.devices.len() > 1;
        let islands = usable.windows(2).any(|pair| pair[0].island != pair[1].island);
        if self.wants_one_island() && many && islands {
            found.push(self.device(0, DeviceProblem::Island));
        }
        let mut after = self.books.devices.clone();
        for (index, amount) in self.devices {
            if !usable.iter().any(|device| self.asks(device, amount)) {
                found.push(self.device(*index, DeviceProblem::Amount));
            }
        }
        after.apply(self.devices, 1);
        let tables = &self.world.mig_tables;
        let before = self.books.devices.free(0, &self.books.node, tables);
        let left = after.free(0, &self.books.node, tables);
        for ((axis, free), (_, left)) in before.axes().zip(left.axes()) {
            if left < 0 && left < free {
                found.push(self.too_little(0, axis, free - left, free));
            }
        }
    }

    fn judge_devices(&self, found: &mut Vec<Violation>) {
        let mut seen: Vec<u16> = Vec::new();
        let mut first_island = None;
        for (index, amount) in self.devices {
            let Some(device) = self.books.node.devices.get(usize::from(*index)) else {
                found.push(self.device(*index, DeviceProblem::Missing));
                continue;
            };
            if !device.healthy {
                found.push(self.device(*index, DeviceProblem::Lost));
            }
            if seen.contains(index) {
                found.push(self.device(*index, DeviceProblem::Twice));
            }
            seen.push(*index);
            if !allows(self.requirement, device) {
                found.push(self.device(*index, DeviceProblem::Kind));
            }
            let island = *first_island.get_or_insert(device.island);
            if self.wants_one_island() && island != device.island {
                found.push(self.device(*index, DeviceProblem::Island));
            }
            if !self.asks(device, amount) {
                found.push(self.device(*index, DeviceProblem::Amount));
            }
            self.judge_device(*index, amount, found);
        }
    }

    /// Mode, amounts and slices of one device.
    fn judge_device(&self, index: u16, amount: &DeviceAmount, found: &mut Vec<Violation>) {
        let used = &self.books.devices.used[usize::from(index)];
        let whole = matches!(self.requirement.device, DeviceRequest::Whole { .. });
        let other = |(count, mode): (&i64, Mode)| *count > 0 && (whole || mode != amount.mode);
        if used.holders.iter().zip(MODES).any(other) {
            found.push(self.device(index, DeviceProblem::Mode));
        }
        let free =
            self.books.devices.free(usize::from(index), &self.books.node, &self.world.mig_tables);
        for ((axis, free), asked) in free.axes().zip(FreeAmounts::asked(amount)) {
            if asked > 0 && free < asked {
                found.push(self.too_little(index, axis, asked, free));
            }
        }
        let taken = |bit: usize| amount.slice_mask >> bit & 1 == 1 && used.slices[bit] > 0;
        if (0..16).any(taken) {
            found.push(self.device(index, DeviceProblem::SliceOverlap));
        }
        if let DeviceRequest::Slice { profile } = &self.requirement.device
            && !self.starts_well(index, profile, amount)
        {
            found.push(self.device(index, DeviceProblem::SliceStart));
        }
    }

    fn starts_well(&self, index: u16, profile: &str, amount: &DeviceAmount) -> bool {
        let device = &self.books.node.devices[usize::from(index)];
        let mut tables = self.world.mig_tables.iter();
        let table = tables.find(|table| device.mig_table.as_ref() == Some(&table.name));
        let profile = table.and_then(|t| t.profiles.iter().find(|p| p.name == profile));
        profile.is_some_and(|profile| {
            let width = u32::from(profile.memory_slices);
            // The highest bit stands for the media engines.
            let (media, mask) = (amount.slice_mask >> 15, amount.slice_mask & 0x7fff);
            let start = mask.trailing_zeros();
            mask.count_ones() == width
                && u32::from(mask) == ((1u32 << width) - 1) << start
                && (media == 1) == profile.has_media()
                && profile.starts.iter().any(|legal| u32::from(*legal) == start)
        })
    }

    /// Whether the amount is what the pod asks of such a device.
    fn asks(&self, device: &Device, amount: &DeviceAmount) -> bool {
        let expected = match &self.requirement.device {
            DeviceRequest::None => return false,
            DeviceRequest::Whole { .. } => {
                DeviceAmount::share(WHOLE_DEVICE_MILLI, device.memory_bytes)
            }
            DeviceRequest::Share { compute_milli, memory_bytes } => {
                DeviceAmount::share(*compute_milli, *memory_bytes)
            }
            DeviceRequest::Replicas { count } => {
                DeviceAmount { mode: Mode::Replicated, replicas: *count, ..Default::default() }
            }
            DeviceRequest::Slice { profile } => {
                let mut tables = self.world.mig_tables.iter();
                let table = tables.find(|table| device.mig_table.as_ref() == Some(&table.name));
                let profile = table.and_then(|t| t.profiles.iter().find(|p| p.name == *profile));
                let Some(profile) = profile else { return false };
                DeviceAmount {
                    mode: Mode::Sliced,
                    compute_slices: profile.compute_slices,
                    slice_mask: amount.slice_mask,
                    ..Default::default()
                }
            }
            DeviceRequest::Counters { amounts } => {
                let has = |name: &str| device.counters.iter().any(|(have, _)| have == name);
                if !amounts.iter().all(|(name, _)| has(name)) {
                    return false;
                }
                let asked = |name: &str| amounts.iter().find(|(n, _)| n == name).map_or(0, |a| a.1);
                DeviceAmount {
                    mode: Mode::Counted,
                    counters: device.counters.iter().map(|(name, _)| asked(name)).collect(),
                    ..Default::default()
                }
            }
        };
        *amount == expected
    }

    fn wants_one_island(&self) -> bool {
        matches!(self.requirement.device, DeviceRequest::Whole { same_island: true, .. })
    }

    fn device(&self, index: u16, problem: DeviceProblem) -> Violation {
        Violation::Device { pod: self.pod, node: self.name.clone(), index, problem }
    }

    fn too_little(&self, index: u16, axis: &str, asked: i64, free: i64) -> Violation {
        let (axis, node) = (axis.to_owned(), self.name.clone());
        Violation::DeviceAmount { pod: self.pod, node, index, axis, asked, free }
    }
}

/// Whether the names allow the node.
pub(crate) fn is_named(requirement: &Requirement, node: &Node) -> bool {
    let names = &requirement.node_names;
    names.is_empty() || names.iter().any(|name| **name == *node.name)
}

/// Whether the node is as the condition says.
pub(crate) fn holds(condition: &NodeCondition, node: &Node) -> bool {
    let term = |term: &SelectorTerm| term.accepts(label(node, &term.key));
    condition.any_of.iter().any(|terms| terms.iter().all(term))
}

/// Whether the taint keeps the pod away from no node.
pub(crate) fn tolerates(requirement: &Requirement, taint: &Taint) -> bool {
    taint.effect == TaintEffect::PreferNoSchedule
        || requirement.tolerations.iter().any(|toleration| toleration.accepts(taint))
}

/// A label of the node, or one of the two that stand for its name and for the whole cluster.
pub(crate) fn label<'n>(node: &'n Node, key: &str) -> Option<&'n str> {
    if key == "metadata.name" {
        return Some(&node.name);
    }
    let whole_cluster = (key == dovetail_model::node::CLUSTER_LABEL).then_some("");
    whole_cluster.or_else(|| node.labels.get(key).map(String::as_str))
}

fn allows(requirement: &Requirement, device: &Device) -> bool {
    let models = &requirement.gpu_models;
    (models.is_empty() || models.contains(&device.model))
        && device.memory_bytes >= requirement.min_device_memory_bytes
}
