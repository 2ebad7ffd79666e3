//! Decisions whose pods have claims of devices: the devices are set aside at once, the claims are
//! written (finalizer, allocation, the pod that they are reserved for), and nothing of the decision
//! is bound before all of that is there.
//!
//! What is to be written next follows from the claim as the watch shows it, so that a crash at any
//! point is taken up by the next leader, and a write that lost a race is decided anew. What was
//! written for a decision that is undone is taken back.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_cluster::world::{
    Change, ClaimKey, ClaimWrite, DecidedPods, DecisionStage, DeviceClaimView, DevicePatience,
    DevicesAside, UnservedClaim,
};
use dovetail_model::{NodeName, PodId};
use dovetail_objects::Kind;
use dovetail_translate::NotYet;

use super::dispatch::Dispatch;
use super::known::Known;
use super::pauses::PauseLength;
use super::provisioning::{advance, decided_for, pods_of};
use crate::order::{OrderEnd, PodOrder};

/// How long the claims of a decision may take to be written.
const WAIT_MS: u64 = 60_000;
/// How long devices with binding conditions may take to be ready; kube-scheduler's
/// `bindingTimeout`.
const READY_WITHIN_MS: u64 = 600_000;
/// After how long a claim is removed again, if the server did not do it.
const REMOVE_AGAIN_MS: u64 = 60_000;

/// Decisions whose claims are being written.
#[derive(Debug, Default)]
pub(super) struct Claiming {
    /// By the number of the first decision about their job.
    open: BTreeMap<u64, Open>,
    /// The version of each claim that a write was ordered for, and what went wrong with it.
    written: BTreeMap<ClaimKey, (Box<str>, Option<String>)>,
    /// Claims that are being removed.
    removed: BTreeMap<ClaimKey, Removal>,
    stale: StaleClaims,
}

/// Namespace and name of a pod or a claim.
type ObjectName = (Box<str>, Box<str>);

/// What has changed since the decisions were checked. While the claims of hundreds of pods are
/// being written, each change that the watch shows concerns one of them.
#[derive(Debug, Default)]
struct StaleClaims {
    is_any: bool,
    /// Whether all decisions are to be checked.
    is_all: bool,
    /// Pods and claims, if not.
    names: BTreeSet<ObjectName>,
}

/// A claim that is being removed, because its pod has not started.
#[derive(Debug)]
struct Removal {
    /// The version for which a write was ordered.
    version: Box<str>,
    /// When it is ordered again, after the server did not carry it out.
    again_ms: Option<u64>,
}

#[derive(Debug)]
struct Open {
    numbers: Vec<u64>,
    until_ms: u64,
    /// Whether devices are set aside for all of them.
    is_set_aside: bool,
    /// Since when all claims are written.
    written_ms: Option<u64>,
    /// Devices that were not ready when that was last reported.
    reported: Vec<String>,
    /// What its writes follow from, if all that it asks for are ordered.
    awaited: Option<Vec<ObjectName>>,
}

impl Open {
    /// Whether it waits for writes, and nothing that they follow from has changed.
    fn still_waits(&self, stale: &StaleClaims, now_ms: u64) -> bool {
        let is_same = |names: &Vec<ObjectName>| names.iter().all(|one| !stale.names.contains(one));
        !stale.is_all && self.until_ms > now_ms && self.awaited.as_ref().is_some_and(is_same)
    }
}

/// How far the claims of a job are.
enum ClaimProgress {
    Waits(Vec<PodOrder>),
    /// All is written, and these devices become ready first.
    NotReady {
        devices: Vec<String>,
        until_ms: u64,
    },
    Ready,
    Void,
    Failed(u64, NotYet),
}

impl Claiming {
    /// Pods of decisions whose claims are being written.
    pub(super) fn pods(&self) -> usize {
        self.open.values().map(|open| open.numbers.len()).sum()
    }

    /// When the first is given up, or a claim is to be removed again.
    pub(super) fn due_ms(&self) -> Option<u64> {
        let removals = self.removed.values().filter_map(|removal| removal.again_ms);
        self.open.values().map(|open| open.until_ms).chain(removals).min()
    }

    /// Notes that an object has changed.
    pub(super) fn recheck(&mut self, change: &Change) {
        self.stale.is_any = true;
        if self.open.is_empty() {
            return;
        }
        let changed = match change {
            Change::Applied(object) => Some((object.kind(), object.meta())),
            Change::Deleted(kind, meta) => Some((*kind, meta)),
            Change::Listing(_) | Change::Listed(_) | Change::Absent(_) => None,
        };
        match changed {
            Some((Kind::Pod | Kind::DeviceClaim, meta)) => {
                self.stale.names.insert((meta.namespace.clone(), meta.name.clone()));
            }
            _ => self.stale.is_all = true,
        }
    }

    /// Notes that all decisions are to be checked again.
    fn recheck_all(&mut self) {
        (self.stale.is_any, self.stale.is_all) = (true, true);
    }

    /// Notes what became of a write. What was done, or came too late, the watch shows.
    pub(super) fn written(&mut self, write: &ClaimWrite, end: OrderEnd, now_ms: u64) {
        let (claim, version) = (&write.claim, &*write.version);
        self.stale.is_any = true;
        if let Some(removal) = self.removed.get_mut(claim)
            && matches!(end, OrderEnd::Refused { .. } | OrderEnd::Unanswered { .. })
        {
            removal.again_ms = Some(now_ms.saturating_add(REMOVE_AGAIN_MS));
        }
        let problem = match end {
            OrderEnd::Done | OrderEnd::Gone | OrderEnd::CalledOff => None,
            OrderEnd::Refused { code, message } => {
                Some(format!("the API server rejected it ({code}): {message}"))
            }
            OrderEnd::Unanswered { problem } => Some(problem),
        };
        if problem.is_some() {
            self.recheck_all();
        }
        if let Some((_, known)) = self.written.get_mut(claim).filter(|(of, _)| **of == *version) {
            *known = problem;
        }
    }
}

impl Dispatch {
    /// Sends what was decided about a job, now or when the claims of its pods have devices and
    /// volumes.
    pub(super) fn send(&mut self, known: &mut Known, numbers: Vec<u64>) {
        let decisions = known.world.decisions();
        let view = DeviceClaimView::of(&known.world);
        let has_any = |number: &u64| {
            let decision = decisions.get(*number);
            decision.is_some_and(|decision| view.has_any(decision.pod, &decision.bind.node))
        };
        let Some(first) = numbers.first().copied().filter(|_| numbers.iter().any(has_any)) else {
            return self.send_when_provisioned(known, numbers);
        };
        advance(known.world.decisions_mut(), &numbers, DecisionStage::Provisioning);
        let until_ms = known.now_ms.saturating_add(WAIT_MS);
        let (is_set_aside, written_ms, reported, awaited) = (false, None, Vec::new(), None);
        let open = Open { numbers, until_ms, is_set_aside, written_ms, reported, awaited };
        self.claiming.open.insert(first, open);
        self.claiming.stale.is_any = true;
    }

    /// Gives up decisions whose claims are being written where pods of them are to make room.
    pub(super) fn give_up_claims(&mut self, known: &mut Known, victims: &[PodId]) {
        let open = self.claiming.open.iter().map(|(first, open)| (*first, &*open.numbers));
        for number in decided_for(known, open, victims) {
            if let Some(open) = self.claiming.open.remove(&number) {
                self.undo(known, &open.numbers, None);
            }
        }
    }

    /// Sets devices aside for what was decided since the last time.
    pub(super) fn set_new_aside(&mut self, known: &mut Known) {
        let is_new = |(first, open): (&u64, &Open)| (!open.is_set_aside).then_some(*first);
        for number in self.claiming.open.iter().filter_map(is_new).collect::<Vec<_>>() {
            let Some(mut open) = self.claiming.open.remove(&number) else { continue };
            if self.set_aside(known, &open.numbers) {
                open.is_set_aside = true;
                self.claiming.open.insert(number, open);
            }
        }
    }

    /// Checks what became of the claims, and goes on.
    pub(super) fn claim(&mut self, known: &mut Known) {
        let is_due = self.claiming.due_ms().is_some_and(|due_ms| due_ms <= known.now_ms);
        let stale = std::mem::take(&mut self.claiming.stale);
        if !stale.is_any && !is_due {
            return;
        }
        self.set_new_aside(known);
        for number in self.claiming.open.keys().copied().collect::<Vec<_>>() {
            let Some(mut open) = self.claiming.open.remove(&number) else { continue };
            match self.progress_of_claims(known, &mut open, &stale) {
                ClaimProgress::Waits(orders) => {
                    known.orders.extend(orders);
                    self.claiming.open.insert(number, open);
                }
                ClaimProgress::NotReady { devices, until_ms } => {
                    if open.reported != devices {
                        let pods = pods_of(known, &open.numbers);
                        DecidedPods::of(&mut known.world, &pods).for_devices(&devices);
                    }
                    (open.reported, open.until_ms) = (devices, until_ms);
                    self.claiming.open.insert(number, open);
                }
                ClaimProgress::Ready => {
                    advance(known.world.decisions_mut(), &open.numbers, DecisionStage::Queued);
                    self.send_when_provisioned(known, open.numbers);
                }
                ClaimProgress::Void => self.undo(known, &open.numbers, None),
                ClaimProgress::Failed(decision, why) => {
                    self.undo(known, &open.numbers, Some((decision, why)));
                }
            }
        }
        if self.claiming.open.is_empty() {
            self.claiming.written.clear();
        }
        self.remove_what_is_left(known);
        known.take_reports();
    }

    /// Removes the claims that were created for pods which have not started.
    fn remove_what_is_left(&mut self, known: &mut Known) {
        if self.is_dry_run {
            return;
        }
        let writes = DeviceClaimView::of(&known.world).writes_to_remove();
        let removed = &mut self.claiming.removed;
        removed.retain(|claim, _| writes.iter().any(|write| write.claim == *claim));
        for write in writes {
            let known_removal = removed.get(&write.claim);
            let is_ordered = known_removal.is_some_and(|removal| {
                let is_due = removal.again_ms.is_some_and(|again_ms| again_ms <= known.now_ms);
                removal.version == write.version && !is_due
            });
            if !is_ordered {
                let removal = Removal { version: write.version.clone(), again_ms: None };
                removed.insert(write.claim.clone(), removal);
                known.orders.extend([PodOrder::WriteClaim(Box::new(write))]);
            }
        }
    }

    /// Sets devices aside for all pods of a job on their nodes, or undoes what was decided of it,
    /// and leaves it alone for a while: what the engine knew of the node was wrong.
    fn set_aside(&mut self, known: &mut Known, numbers: &[u64]) -> bool {
        let decisions = known.world.decisions();
        let view = DeviceClaimView::of(&known.world);
        let decided = numbers.iter().filter_map(|number| decisions.get(*number));
        let decided = decided.filter(|decision| view.has_any(decision.pod, &decision.bind.node));
        let decided: Vec<(PodId, NodeName)> =
            decided.map(|decision| (decision.pod, decision.bind.node.clone())).collect();
        let set_aside = DevicesAside::of(&mut known.world).set(&decided);
        let UnservedClaim { pod, claim, node } = match set_aside {
            Ok(events) => {
                known.apply(events);
                return true;
            }
            Err(unserved) => unserved,
        };
        let taken = NotYet::DevicesTaken { pod, claim, node };
        let why = numbers.first().map(|first| (*first, taken));
        self.undo(known, numbers, why);
        false
    }

    /// Takes back what was written for pods that are not bound after all.
    pub(super) fn release_devices(&mut self, known: &mut Known, pods: &[PodId]) {
        let events = DevicesAside::of(&mut known.world).give_back(pods);
        let view = DeviceClaimView::of(&known.world);
        let writes = pods.iter().flat_map(|pod| view.writes_to_undo(*pod));
        let orders: Vec<PodOrder> =
            writes.map(|write| PodOrder::WriteClaim(Box::new(write))).collect();
        for claim in pods.iter().filter_map(|pod| view.new_claim_of(*pod)) {
            self.claiming.written.remove(&claim);
        }
        // What is left of them is removed once no decision about them is left.
        self.claiming.recheck_all();
        known.orders.extend(orders);
        known.apply(events);
    }

    /// The same for the pods of decisions.
    pub(super) fn release_decided(&mut self, known: &mut Known, numbers: &[u64]) {
        let pods = pods_of(known, numbers);
        self.release_devices(known, &pods);
    }

    fn progress_of_claims(
        &mut self,
        known: &Known,
        open: &mut Open,
        stale: &StaleClaims,
    ) -> ClaimProgress {
        let decisions = known.world.decisions();
        if self.is_dry_run {
            return ClaimProgress::Ready;
        }
        if !open.numbers.iter().all(|number| decisions.is_current(*number)) {
            return ClaimProgress::Void;
        }
        // Devices may have been given back since.
        if open.still_waits(stale, known.now_ms) && !self.claiming.stale.is_all {
            return ClaimProgress::Waits(Vec::new());
        }
        open.awaited = None;
        let (mut orders, mut waits) = (Vec::new(), false);
        for decision in open.numbers.iter().filter_map(|number| decisions.get(*number)) {
            let (number, node) = (decision.bind.decision, &*decision.bind.node);
            let writes = match DeviceClaimView::of(&known.world).next_writes(decision.pod, node) {
                Ok(writes) => writes,
                Err(why) => return ClaimProgress::Failed(number, why),
            };
            for write in writes {
                waits = true;
                let claim = write.claim.name.to_string();
                let known_write = self.claiming.written.get(&write.claim);
                let problem = match known_write.filter(|(version, _)| *version == write.version) {
                    Some((_, None)) if open.until_ms > known.now_ms => continue,
                    Some((_, None)) => format!("it timed out after {} s", WAIT_MS / 1_000),
                    Some((_, Some(problem))) => problem.clone(),
                    None => {
                        let ordered = (write.version.clone(), None);
                        self.claiming.written.insert(write.claim.clone(), ordered);
                        orders.push(PodOrder::WriteClaim(Box::new(write)));
                        continue;
                    }
                };
                let node = node.to_owned();
                return ClaimProgress::Failed(
                    number,
                    NotYet::ClaimNotWritten { claim, node, problem },
                );
            }
        }
        match waits {
            true => {
                open.awaited = Some(rests_on(known, &open.numbers));
                ClaimProgress::Waits(orders)
            }
            false => readiness(known, open),
        }
    }

    /// The decisions are void, and what they took is free. A pod that failed is left alone for a
    /// while.
    pub(super) fn undo(
        &mut self,
        known: &mut Known,
        numbers: &[u64],
        failed: Option<(u64, NotYet)>,
    ) {
        self.release_decided(known, numbers);
        if let Some((number, why)) = failed
            && let Some(failed) = known.world.decisions_mut().settle(number)
        {
            let pod = &failed.bind.pod;
            self.pauses.pause_pod(known.now_ms, pod, PauseLength::Long);
            let events = known.world.pause_pod(pod, Some(why));
            known.apply(events);
        }
        known.take_back(numbers);
    }
}

/// The objects that the writes of decisions follow from.
fn rests_on(known: &Known, numbers: &[u64]) -> Vec<ObjectName> {
    let (decisions, view) = (known.world.decisions(), DeviceClaimView::of(&known.world));
    let decided = numbers.iter().filter_map(|number| decisions.get(*number));
    decided.flat_map(|decision| view.rests_on(decision.pod)).collect()
}

/// Whether all devices of decisions are ready whose claims are written.
fn readiness(known: &Known, open: &mut Open) -> ClaimProgress {
    let since_ms = *open.written_ms.get_or_insert(known.now_ms);
    let patience = DevicePatience { within_ms: READY_WITHIN_MS, since_ms };
    let view = DeviceClaimView::of(&known.world);
    let decisions = known.world.decisions();
    let (mut waiting, mut until_ms) = (Vec::new(), u64::MAX);
    for decision in open.numbers.iter().filter_map(|number| decisions.get(*number)) {
        match view.not_ready(decision.pod, &decision.bind.node, patience) {
            Ok(devices) => waiting.extend(devices),
            Err(why) => return ClaimProgress::Failed(decision.bind.decision, why),
        }
        until_ms = view.ready_by_ms(decision.pod, patience).unwrap_or(until_ms).min(until_ms);
    }
    waiting.sort();
    waiting.dedup();
    match waiting.is_empty() {
        true => ClaimProgress::Ready,
        false => ClaimProgress::NotReady { devices: waiting, until_ms },
    }
}
