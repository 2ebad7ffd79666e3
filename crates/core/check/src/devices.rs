//! What is held of the devices of one node.

use dovetail_model::{DeviceAmount, HeldDevices, Knowledge, MigTable, Mode, Node};

/// Amounts held: per device, or of the whole pool where the kubelet chooses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeviceBooks {
    pub(crate) used: Vec<UsedAmounts>,
    pub(crate) pooled: bool,
    /// Amounts held of devices the node does not have.
    pub(crate) beyond: i64,
}

/// What is held of one device, or of the pool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct UsedAmounts {
    /// Amounts per way of use, in the order of [`MODES`].
    pub(crate) holders: [i64; 4],
    pub(crate) compute_milli: i64,
    pub(crate) memory_bytes: i64,
    pub(crate) replicas: i64,
    /// Per memory slice, how many slices lie on it.
    pub(crate) slices: [i64; 16],
    pub(crate) compute_slices: i64,
    pub(crate) counters: Vec<i64>,
}

pub(crate) const MODES: [Mode; 4] = [Mode::Shared, Mode::Sliced, Mode::Replicated, Mode::Counted];

impl DeviceBooks {
    pub(crate) fn empty(node: &Node) -> Self {
        let pooled = node.knowledge == Knowledge::Counted;
        let places = if pooled { 1 } else { node.devices.len() };
        Self { used: vec![UsedAmounts::default(); places], pooled, beyond: 0 }
    }

    pub(crate) fn apply(&mut self, devices: &HeldDevices, sign: i64) {
        for (index, amount) in devices {
            let place = if self.pooled { 0 } else { usize::from(*index) };
            match self.used.get_mut(place) {
                Some(used) => used.apply(amount, sign),
                None => self.beyond += sign,
            }
        }
    }

    /// The first axis of which more is held than there is, with what is free of it.
    pub(crate) fn overcommitted(&self, node: &Node, tables: &[MigTable]) -> Option<(String, i64)> {
        if self.beyond > 0 {
            return Some(("devices".to_owned(), -self.beyond));
        }
        let lost = |(index, used): (usize, &UsedAmounts)| {
            !node.devices[index].healthy && used.holders.iter().any(|count| *count > 0)
        };
        if !self.pooled && self.used.iter().enumerate().any(lost) {
            return Some(("healthy devices".to_owned(), -1));
        }
        (0..self.used.len()).find_map(|place| {
            let free = self.free(place, node, tables);
            let (axis, free) = free.axes().find(|(_, free)| *free < 0)?;
            Some((format!("{axis} of device {place}"), free))
        })
    }

    /// Whether an amount can be kept beside what others hold already.
    pub(crate) fn has_room(
        &self,
        index: u16,
        amount: &DeviceAmount,
        node: &Node,
        tables: &[MigTable],
    ) -> bool {
        let place = if self.pooled { 0 } else { usize::from(index) };
        let Some(used) = self.used.get(place) else { return false };
        let mut after = self.clone();
        after.apply(&HeldDevices::from_iter([(index, amount.clone())]), 1);
        let other = |(count, mode): (&i64, Mode)| *count > 0 && mode != amount.mode;
        let overlaps = |bit: usize| amount.slice_mask >> bit & 1 == 1 && used.slices[bit] > 0;
        let is_clear = !used.holders.iter().zip(MODES).any(other) && !(0..16).any(overlaps);
        (self.pooled || is_clear)
            && after.free(place, node, tables).axes().all(|(_, free)| free >= 0)
    }

    /// Whether devices are counted and some are in another mode than this: what is free of the pool
    /// does not prove then that a device is free.
    pub(crate) fn mixes(&self, mode: Mode) -> bool {
        let others = |used: &UsedAmounts| {
            let mut held = used.holders.iter().zip(MODES);
            held.any(|(count, of)| *count > 0 && of != mode)
        };
        self.pooled && self.used.iter().any(others)
    }

    /// What is free of a device, or of the pool, by axis.
    pub(crate) fn free(&self, place: usize, node: &Node, tables: &[MigTable]) -> FreeAmounts {
        let used = &self.used[place];
        let mut total = Total::default();
        match self.pooled {
            true => node.devices.iter().filter(|d| d.healthy).for_each(|d| total.add(d, tables)),
            false => total.add(&node.devices[place], tables),
        }
        let whole = if self.pooled { total.devices - used.devices_needed(node) } else { 0 };
        let counters = total.counters.into_iter().enumerate();
        let held = |place: usize| used.counters.get(place).copied().unwrap_or(0);
        FreeAmounts {
            plain: [
                ("compute_milli", total.compute_milli - used.compute_milli),
                ("memory_bytes", total.memory_bytes - used.memory_bytes),
                ("replicas", total.replicas - used.replicas),
                ("compute_slices", total.compute_slices - used.compute_slices),
                ("whole devices", whole),
            ],
            counters: counters.map(|(place, (name, sum))| (name, sum - held(place))).collect(),
        }
    }
}

/// What is free of one device, or of the pool; signed.
pub(crate) struct FreeAmounts {
    plain: [(&'static str, i64); 5],
    counters: Vec<(String, i64)>,
}

impl FreeAmounts {
    pub(crate) fn axes(&self) -> impl Iterator<Item = (&str, i64)> {
        let counters = self.counters.iter().map(|(name, free)| (name.as_str(), *free));
        self.plain.into_iter().chain(counters)
    }

    /// What is asked by an amount, in the order of [`FreeAmounts::axes`].
    pub(crate) fn asked(amount: &DeviceAmount) -> impl Iterator<Item = i64> {
        let plain = [
            amount.compute_milli,
            amount.memory_bytes,
            i64::from(amount.replicas),
            i64::from(amount.compute_slices),
            0,
        ];
        plain.into_iter().chain(amount.counters.iter().copied())
    }
}

impl UsedAmounts {
    fn apply(&mut self, amount: &DeviceAmount, sign: i64) {
        for (count, mode) in self.holders.iter_mut().zip(MODES) {
            *count += if amount.mode == mode { sign } else { 0 };
        }
        self.compute_milli += sign * amount.compute_milli;
        self.memory_bytes += sign * amount.memory_bytes;
        self.replicas += sign * i64::from(amount.replicas);
        self.compute_slices += sign * i64::from(amount.compute_slices);
        for (bit, count) in self.slices.iter_mut().enumerate() {
            *count += sign * i64::from(amount.slice_mask >> bit & 1);
        }
        if self.counters.len() < amount.counters.len() {
            self.counters.resize(amount.counters.len(), 0);
        }
        for (used, held) in self.counters.iter_mut().zip(&amount.counters) {
            *used += sign * held;
        }
        // An amount that is gone leaves no trace, so that books compare by value.
        let kept = self.counters.iter().rposition(|used| *used != 0).map_or(0, |last| last + 1);
        self.counters.truncate(kept);
    }

    /// The fewest devices of the pool that the ways of use can be spread over.
    fn devices_needed(&self, node: &Node) -> i64 {
        let most_replicas = node.devices.iter().map(|d| i64::from(d.replicas)).max().unwrap_or(0);
        let by_replicas = div_ceil(self.replicas, most_replicas.max(1));
        let others = i64::from(self.holders[1] > 0) + i64::from(self.holders[3] > 0);
        div_ceil(self.compute_milli, 1000) + by_replicas + others
    }
}

#[derive(Default)]
struct Total {
    devices: i64,
    compute_milli: i64,
    memory_bytes: i64,
    replicas: i64,
    compute_slices: i64,
    counters: Vec<(String, i64)>,
}

impl Total {
    fn add(&mut self, device: &dovetail_model::Device, tables: &[MigTable]) {
        self.devices += 1;
        self.compute_milli += 1000;
        self.memory_bytes += device.memory_bytes;
        self.replicas += i64::from(device.replicas);
        let table = tables.iter().find(|table| device.mig_table.as_ref() == Some(&table.name));
        self.compute_slices += table.map_or(0, |table| i64::from(table.compute_slices));
        for (place, (name, total)) in device.counters.iter().enumerate() {
            match self.counters.get_mut(place) {
                Some((_, sum)) => *sum += total,
                None => self.counters.push((name.clone(), *total)),
            }
        }
    }
}

fn div_ceil(amount: i64, by: i64) -> i64 {
    (amount + by - 1).div_euclid(by)
}
