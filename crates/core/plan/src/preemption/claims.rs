//! What is kept for jobs until those have left who were stopped for them.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_model::{
    DeviceAmount, HeldDevices, HoldingId, JobId, Knowledge, NodeId, PreemptionReservation,
    ReservationId,
};

use crate::engine::{Foreign, Jobs};
use crate::gang::Gang;
use dovetail_state::State;
use dovetail_state::beyond::beyond;
use dovetail_state::holdings::Amounts;
use dovetail_state::kept::ToKeep;
use rustc_hash::FxHashSet;

/// What is left of holdings that are to leave, besides what claims count on.
pub(crate) type Leaving = BTreeMap<HoldingId, (Amounts, HeldDevices)>;

/// Per node what is to be kept.
pub(crate) type Wanted = BTreeMap<NodeId, (Amounts, HeldDevices)>;

/// Claims have reservations from here on; whoever else reserves uses smaller ones.
const FIRST: u32 = 1 << 31;

/// Reservations for jobs that are next have numbers from here on, below those of claims.
pub(crate) const FIRST_OF_RESERVED: u32 = 1 << 30;

/// All claims, by job.
#[derive(Clone, Debug, Default)]
pub(crate) struct Claims {
    all: BTreeMap<JobId, PreemptionReservation>,
    version: u64,
}

impl Claims {
    /// Another one whenever a claim may have changed.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    pub(crate) fn get(&self, job: JobId) -> Option<&PreemptionReservation> {
        self.all.get(&job)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &PreemptionReservation> {
        self.all.values()
    }

    pub(crate) fn insert(&mut self, claim: PreemptionReservation) {
        self.version += 1;
        self.all.insert(claim.job, claim);
    }

    pub(crate) fn remove(&mut self, job: JobId) -> Option<PreemptionReservation> {
        self.version += 1;
        self.all.remove(&job)
    }

    /// The lowest number that no claim has.
    pub(crate) fn unused(&self) -> ReservationId {
        self.unused_from(FIRST)
    }

    /// The lowest number from this one on that no claim has.
    pub(crate) fn unused_from(&self, first: u32) -> ReservationId {
        let used: BTreeSet<ReservationId> = self.iter().map(|claim| claim.reservation).collect();
        let free = (first..).map(ReservationId).find(|number| !used.contains(number));
        free.expect("there are fewer claims than numbers")
    }
}

/// What claims are looked at beside: jobs, and what others hold.
pub(crate) type Beside<'b> = (&'b Jobs, &'b Foreign);

impl Claims {
    /// When a claim is given back even if nothing else happens.
    pub(crate) fn due_ms(&self) -> Option<u64> {
        self.iter().map(|claim| claim.until_ms).min()
    }

    /// Jobs whose claims were in vain.
    pub(crate) fn late(&self, now_ms: u64) -> Vec<JobId> {
        let late = self.iter().filter(|claim| claim.until_ms <= now_ms);
        late.map(|claim| claim.job).collect()
    }

    /// Claims that a job of this priority may take from: of jobs of a lower one, for which nobody
    /// gives back.
    pub(crate) fn below(
        &self,
        jobs: &Jobs,
        priority: i32,
    ) -> impl Iterator<Item = &PreemptionReservation> {
        self.iter().filter(move |claim| {
            let record = jobs.records.get(&claim.job);
            !claim.is_reclaimed && record.is_some_and(|record| record.job.priority < priority)
        })
    }

    /// The lowest priority of a job whose claim any other may take from.
    pub(crate) fn lowest(&self, jobs: &Jobs) -> Option<i32> {
        let open = self.iter().filter(|claim| !claim.is_reclaimed);
        let records = open.filter_map(|claim| jobs.records.get(&claim.job));
        records.map(|record| record.job.priority).min()
    }

    /// Keeps for each claim what it needs beyond what those still hold who are to leave. What one
    /// of them frees is counted on once, however many wait for it.
    pub(crate) fn keep_all(&mut self, state: &mut State, beside: Beside<'_>) {
        self.keep_all_beside(state, beside, |_, _| Vec::new());
    }

    /// The same, beside what is held for others in the room of each job.
    pub(crate) fn keep_all_beside(
        &mut self,
        state: &mut State,
        beside: Beside<'_>,
        in_its_room: impl Fn(&State, JobId) -> Vec<HoldingId>,
    ) {
        let jobs: Vec<JobId> = self.iter().map(|claim| claim.job).collect();
        let mut leaving = Leaving::new();
        for job in jobs {
            let others = in_its_room(state, job);
            self.keep(job, state, beside, (others, &mut leaving));
        }
    }

    /// The same for a claim that is new, and for those that its places may change something for:
    /// on the same nodes, directly or by what lies between them.
    pub(crate) fn keep_new(&mut self, job: JobId, state: &mut State, beside: Beside<'_>) {
        let mut leaving = Leaving::new();
        for job in self.connected_with(job) {
            self.keep(job, state, beside, (Vec::new(), &mut leaving));
        }
    }

    /// Jobs whose claims have nodes in common with that of a job, or with others of these jobs.
    fn connected_with(&self, job: JobId) -> BTreeSet<JobId> {
        let mut jobs = BTreeSet::new();
        // order-free: only looked up.
        let mut nodes: FxHashSet<&str> = FxHashSet::default();
        let mut next: Vec<&PreemptionReservation> = self.get(job).into_iter().collect();
        while !next.is_empty() {
            for claim in next {
                jobs.insert(claim.job);
                nodes.extend(claim.places.iter().map(|place| &*place.node));
            }
            let is_new = |claim: &&PreemptionReservation| {
                !jobs.contains(&claim.job)
                    && claim.places.iter().any(|place| nodes.contains(&*place.node))
            };
            next = self.iter().filter(is_new).collect();
        }
        jobs
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The claim of a job, to be changed.
    pub(crate) fn get_mut(&mut self, job: JobId) -> Option<&mut PreemptionReservation> {
        self.version += 1;
        self.all.get_mut(&job)
    }

    fn keep(
        &mut self,
        job: JobId,
        state: &mut State,
        beside: Beside<'_>,
        (others, leaving): (Vec<HoldingId>, &mut Leaving),
    ) {
        let Some(claim) = self.all.get_mut(&job) else { return };
        let counted_on = claim.awaited.len();
        let mut awaited = still_held(claim, state, beside);
        self.version += u64::from(claim.awaited.len() != counted_on);
        awaited.extend(others);
        let wanted = match beside.0.records.get(&job) {
            Some(record) => wanted_by_claim(state, &record.gang, (&*claim, &awaited), leaving),
            None => Wanted::new(),
        };
        keep_wanted(state, claim.reservation, wanted);
    }

    /// Inside a transaction: as if everything were kept that claims are for.
    pub(crate) fn fill_all(&self, state: &mut State, jobs: &Jobs) {
        self.fill_but(|_| false, state, jobs);
    }

    /// The same, but for those of some jobs.
    pub(crate) fn fill_but(&self, but: impl Fn(JobId) -> bool, state: &mut State, jobs: &Jobs) {
        for claim in self.iter().filter(|claim| !but(claim.job)) {
            for id in state.holdings.kept_by(claim.reservation) {
                state.release(id);
            }
            self.fill(claim.job, state, jobs);
        }
    }

    /// Inside a transaction: as if all were there that a claim is for.
    pub(crate) fn fill(&self, job: JobId, state: &mut State, jobs: &Jobs) {
        if let (Some(claim), Some(record)) = (self.get(job), jobs.records.get(&job)) {
            hold_claim(state, claim, &record.gang);
        }
    }
}

/// What those hold who are still there of whom a claim counts on; it forgets the others.
pub(crate) fn still_held(
    claim: &mut PreemptionReservation,
    state: &State,
    (jobs, foreign): Beside<'_>,
) -> Vec<HoldingId> {
    let mut awaited: Vec<HoldingId> = Vec::new();
    claim.awaited.retain(|owner| {
        let held = jobs.held_by_owner(state, foreign, owner);
        awaited.extend(held);
        held.is_some()
    });
    awaited
}

/// Keeps this for a reservation, and nothing else.
pub(crate) fn keep_wanted(state: &mut State, reservation: ReservationId, wanted: Wanted) {
    let kept = state.holdings.kept_by(reservation);
    let records = || kept.iter().map(|id| state.holdings.get(*id));
    let is_kept = |(node, (amounts, devices)): (&NodeId, &(Amounts, HeldDevices))| {
        let record = records().find(|record| record.node == *node);
        record.is_some_and(|record| {
            record.amounts == *amounts && are_same(state, *node, &record.devices, devices)
        })
    };
    if wanted.len() == kept.len() && wanted.iter().all(is_kept) {
        return;
    }
    kept.into_iter().for_each(|id| drop(state.remove_holding(id)));
    for (node, (amounts, devices)) in wanted {
        ToKeep { node, reservation, amounts, devices }.keep(state);
    }
}

/// Whether the devices are the same ones, or as many where the kubelet chooses.
fn are_same(state: &State, node: NodeId, kept: &HeldDevices, wanted: &HeldDevices) -> bool {
    match state.nodes.cold(node).node.knowledge {
        Knowledge::Assigned => kept == wanted,
        Knowledge::Counted => {
            let amounts = |devices: &HeldDevices| -> Vec<DeviceAmount> {
                let mut amounts: Vec<_> = devices.iter().map(|(_, a)| a.clone()).collect();
                amounts.sort_unstable();
                amounts
            };
            amounts(kept) == amounts(wanted)
        }
    }
}

/// Per node what is to be kept while `awaited` are still there.
pub(crate) fn wanted_by_claim(
    state: &State,
    gang: &Gang,
    (claim, awaited): (&PreemptionReservation, &[HoldingId]),
    leaving: &mut Leaving,
) -> Wanted {
    let mut wanted = Wanted::new();
    for place in &claim.places {
        let Some(node) = state.nodes.find(&place.node) else { continue };
        let Some(set) = gang.sets.get(usize::from(place.pod.pod_set)) else { continue };
        let (amounts, devices) = wanted.entry(node).or_default();
        amounts.add(&state.shapes.get(set.shape).demand.amounts);
        devices.extend(place.devices.iter().cloned());
    }
    let mut by_node: BTreeMap<NodeId, Vec<HoldingId>> = BTreeMap::new();
    for id in awaited.iter().filter(|id| state.holdings.contains(**id)) {
        by_node.entry(state.holdings.get(*id).node).or_default().push(*id);
    }
    for (node, (amounts, devices)) in &mut wanted {
        let mut devices_left = HeldDevices::new();
        let here = by_node.remove(node).unwrap_or_default();
        for id in &here {
            let record = state.holdings.get(*id);
            let left = leaving
                .entry(*id)
                .or_insert_with(|| (record.amounts.clone(), record.devices.clone()));
            amounts.take_from(&mut left.0);
            devices_left.append(&mut left.1);
        }
        let claimed = std::mem::take(devices);
        *devices = beyond(state, (*node, claim.reservation), claimed, &mut devices_left);
        // Whose of them it was makes no difference from here on.
        if let Some(left) = here.first().and_then(|id| leaving.get_mut(id)) {
            left.1 = devices_left;
        }
    }
    wanted.retain(|_, (amounts, devices)| *amounts != Amounts::default() || !devices.is_empty());
    wanted
}

/// Inside a transaction: holds all that a claim is for, and tells what that is.
pub(super) fn hold_claim(
    state: &mut State,
    claim: &PreemptionReservation,
    gang: &Gang,
) -> Vec<HoldingId> {
    let mut held = Vec::new();
    for place in &claim.places {
        let Some(node) = state.nodes.find(&place.node) else { continue };
        let Some(set) = gang.sets.get(usize::from(place.pod.pod_set)) else { continue };
        let amounts = state.shapes.get(set.shape).demand.amounts.clone();
        let (reservation, devices) = (claim.reservation, place.devices.clone());
        held.push(ToKeep { node, reservation, amounts, devices }.hold(state));
    }
    held
}
