//! The table of holdings.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use dovetail_model::{HeldDevices, HoldingId, HoldingPhase, NodeId, Owner, PodId, ReservationId};
use smallvec::SmallVec;

/// Amounts of a node besides devices, with names interned.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Amounts {
    pub cpu_milli: i64,
    pub memory_bytes: i64,
    pub ephemeral_bytes: i64,
    pub pod_slots: i64,
    /// Interned name and amount, ascending by name.
    pub extended: SmallVec<[(u32, i64); 1]>,
}

impl Amounts {
    /// The amount of an extended resource, if there is any of it.
    pub fn of_extended(&self, name: u32) -> Option<i64> {
        let amount = self.extended.iter().find(|(other, _)| *other == name);
        amount.map(|(_, amount)| *amount)
    }
}

/// One holding with names interned.
#[derive(Clone, Debug)]
pub struct HoldingRecord {
    pub node: NodeId,
    pub owner: Owner,
    pub phase: HoldingPhase,
    pub reservation: Option<ReservationId>,
    pub amounts: Amounts,
    pub devices: HeldDevices,
    /// Interned selectors that count the pod.
    pub counts_into: SmallVec<[u32; 2]>,
    /// Interned volumes attached to the node, ascending.
    pub attachments: SmallVec<[u32; 2]>,
}

impl HoldingRecord {
    /// Whether it is an allocation of which nobody knows when it ends.
    fn has_no_end(&self) -> bool {
        let is_kept = matches!(self.phase, HoldingPhase::Kept { .. });
        !is_kept && self.owner != Owner::Reservation && self.phase.expected_end_ms().is_none()
    }

    /// Who holds it, in a form that has an order and is the same after a restart.
    pub fn holder(&self) -> (Option<PodId>, &str, Option<ReservationId>, &HeldDevices) {
        let (pod, name) = match &self.owner {
            Owner::Pod(pod) => (Some(*pod), ""),
            Owner::Foreign(name) => (None, name.as_str()),
            Owner::Reservation => (None, ""),
        };
        (pod, name, self.reservation, &self.devices)
    }
}

/// Records by identity. An identity is used again after its holding is gone.
#[derive(Clone, Debug, Default)]
pub struct Holdings {
    records: Vec<Option<HoldingRecord>>,
    free: Vec<u32>,
    by_end: BTreeSet<(u64, HoldingId)>,
    /// Those that are ending.
    releasing: BTreeSet<HoldingId>,
    /// Of how many it is not known when they end.
    without_end: u64,
    reserved: BTreeMap<ReservationId, BTreeSet<HoldingId>>,
}

impl Holdings {
    /// A holding; it must exist.
    pub fn get(&self, id: HoldingId) -> &HoldingRecord {
        self.records[id.index()].as_ref().expect("a holding that is there")
    }

    /// Whether there is such a holding.
    pub fn contains(&self, id: HoldingId) -> bool {
        self.records.get(id.index()).is_some_and(Option::is_some)
    }

    /// All holdings, by identity.
    pub fn iter(&self) -> impl Iterator<Item = (HoldingId, &HoldingRecord)> {
        self.records
            .iter()
            .enumerate()
            .filter_map(|(slot, record)| Some((HoldingId(slot as u64), record.as_ref()?)))
    }

    /// Holdings that are ending and not late with it, by identity.
    pub fn leaving(&self, now_ms: u64) -> impl Iterator<Item = HoldingId> {
        let is_leaving = move |id: &HoldingId| self.get(*id).phase.is_leaving(now_ms);
        self.releasing.iter().copied().filter(is_leaving)
    }

    /// How many allocations there are, beside what is kept for others, of which nobody knows when
    /// they end.
    pub fn without_end(&self) -> u64 {
        self.without_end
    }

    /// Holdings expected to have ended by `time_ms`, earliest first.
    pub fn ending_by(&self, time_ms: u64) -> impl Iterator<Item = HoldingId> {
        self.by_end.range(..=(time_ms, HoldingId(u64::MAX))).map(|(_, id)| *id)
    }

    /// Holdings expected to end after one time and by another, the earliest first, each with its
    /// end.
    pub fn ending_between(
        &self,
        after_ms: u64,
        by_ms: u64,
    ) -> impl Iterator<Item = (u64, HoldingId)> {
        let last = (by_ms.max(after_ms), HoldingId(u64::MAX));
        let range = (Bound::Excluded((after_ms, HoldingId(u64::MAX))), Bound::Included(last));
        self.by_end.range(range).copied()
    }

    /// What a reservation keeps.
    pub fn kept_by(&self, reservation: ReservationId) -> Vec<HoldingId> {
        self.reserved.get(&reservation).into_iter().flatten().copied().collect()
    }

    /// The identity that the next [`Holdings::insert`] gives.
    pub fn next_id(&self) -> HoldingId {
        HoldingId(self.free.last().map_or(self.records.len() as u64, |slot| u64::from(*slot)))
    }

    /// Adds a holding under the next identity.
    pub fn insert(&mut self, record: HoldingRecord) -> HoldingId {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.records.push(None);
            self.records.len() as u32 - 1
        });
        let id = HoldingId(u64::from(slot));
        self.link(id, &record);
        self.records[slot as usize] = Some(record);
        id
    }

    /// Puts a record back under the identity that [`Holdings::remove`] freed last.
    pub fn restore(&mut self, id: HoldingId, record: HoldingRecord) {
        let slot = self.free.pop();
        assert_eq!(slot.map(u64::from), Some(id.0), "holdings are restored in reverse order");
        self.link(id, &record);
        self.records[id.index()] = Some(record);
    }

    /// Takes a holding out; it must exist.
    pub fn remove(&mut self, id: HoldingId) -> HoldingRecord {
        let record = self.records[id.index()].take().expect("a holding is released once");
        self.unlink_phase(id, &record);
        if let (Owner::Reservation, Some(reservation)) = (&record.owner, record.reservation)
            && let Some(kept) = self.reserved.get_mut(&reservation)
        {
            kept.remove(&id);
            if kept.is_empty() {
                self.reserved.remove(&reservation);
            }
        }
        self.free.push(id.0 as u32);
        record
    }

    /// Changes the phase of a holding.
    pub fn set_phase(&mut self, id: HoldingId, phase: HoldingPhase) {
        let mut record = self.records[id.index()].take().expect("a holding that is there");
        self.unlink_phase(id, &record);
        record.phase = phase;
        self.link_phase(id, &record);
        self.records[id.index()] = Some(record);
    }

    /// Moves a holding's devices to other indices of the same node (counted devices only).
    pub fn set_devices(&mut self, id: HoldingId, devices: HeldDevices) {
        self.records[id.index()].as_mut().expect("a holding that is there").devices = devices;
    }

    /// Changes the selectors that count a holding.
    pub fn set_counts(&mut self, id: HoldingId, counts_into: SmallVec<[u32; 2]>) {
        let record = self.records[id.index()].as_mut().expect("a holding that is there");
        record.counts_into = counts_into;
    }

    fn link(&mut self, id: HoldingId, record: &HoldingRecord) {
        self.link_phase(id, record);
        if let (Owner::Reservation, Some(reservation)) = (&record.owner, record.reservation) {
            self.reserved.entry(reservation).or_default().insert(id);
        }
    }

    fn link_phase(&mut self, id: HoldingId, record: &HoldingRecord) {
        if let Some(end_ms) = record.phase.expected_end_ms() {
            self.by_end.insert((end_ms, id));
        }
        if matches!(record.phase, HoldingPhase::Releasing { .. }) {
            self.releasing.insert(id);
        }
        self.without_end += u64::from(record.has_no_end());
    }

    fn unlink_phase(&mut self, id: HoldingId, record: &HoldingRecord) {
        if let Some(end_ms) = record.phase.expected_end_ms() {
            self.by_end.remove(&(end_ms, id));
        }
        if matches!(record.phase, HoldingPhase::Releasing { .. }) {
            self.releasing.remove(&id);
        }
        self.without_end -= u64::from(record.has_no_end());
    }
}
