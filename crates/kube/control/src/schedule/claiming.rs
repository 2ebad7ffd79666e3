//! Decisions whose pods have claims of devices: the devices are set aside at once, the claims are
//! written (finalizer, allocation, the pod that they are reserved for), and nothing of the decision
//! is bound before all of that is there.
//!
//! What is to be written next follows from the claim as the watch shows it, so that a crash at any
//! point is taken up by the next leader, and a write that lost a race is decided anew. What was
//! written for a decision that is undone is taken back.

use std::collections::BTreeMap;

use dovetail_cluster::translate::NotYet;
use dovetail_cluster::world::{ClaimKey, DeviceClaimView, DevicesAside, Stage};
use dovetail_model::{NodeName, PodId};

use super::dispatch::Dispatch;
use super::known::Known;
use super::pauses::Pause;
use super::provisioning::{advance, decided_for, pods_of};
use crate::order::{Order, OrderEnd};

/// How long the claims of a decision may take to be written.
const WAIT_MS: u64 = 60_000;

/// Decisions whose claims are being written.
#[derive(Debug, Default)]
pub(super) struct Claiming {
    /// By the number of the first decision about their job.
    open: BTreeMap<u64, Open>,
    /// The version of each claim that a write was ordered for, and what went wrong with it.
    written: BTreeMap<ClaimKey, (Box<str>, Option<String>)>,
    is_stale: bool,
}

#[derive(Debug)]
struct Open {
    numbers: Vec<u64>,
    until_ms: u64,
    /// Whether devices are set aside for all of them.
    is_set_aside: bool,
}

/// How far the claims of a job are.
enum Progress {
    Waits(Vec<Order>),
    Ready,
    Void,
    Failed(u64, NotYet),
}

impl Claiming {
    /// Pods of decisions whose claims are being written.
    pub(super) fn pods(&self) -> usize {
        self.open.values().map(|open| open.numbers.len()).sum()
    }

    /// When the first is given up.
    pub(super) fn due_ms(&self) -> Option<u64> {
        self.open.values().map(|open| open.until_ms).min()
    }

    /// Something has changed.
    pub(super) fn recheck(&mut self) {
        self.is_stale = true;
    }

    /// Notes what became of a write. What was done, or came too late, the watch shows.
    pub(super) fn written(&mut self, claim: &ClaimKey, version: &str, end: OrderEnd) {
        self.is_stale = true;
        let problem = match end {
            OrderEnd::Done | OrderEnd::Gone | OrderEnd::CalledOff => None,
            OrderEnd::Refused { code, message } => {
                Some(format!("the server refuses it ({code}): {message}"))
            }
            OrderEnd::Unanswered { problem } => Some(problem),
        };
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
            decisions.get(*number).is_some_and(|decision| view.has_any(decision.pod))
        };
        let Some(first) = numbers.first().copied().filter(|_| numbers.iter().any(has_any)) else {
            return self.send_when_provisioned(known, numbers);
        };
        advance(known.world.decisions_mut(), &numbers, Stage::Provisioning);
        let until_ms = known.now_ms.saturating_add(WAIT_MS);
        self.claiming.open.insert(first, Open { numbers, until_ms, is_set_aside: false });
        self.claiming.is_stale = true;
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

    /// Checks what became of the claims, and goes on.
    pub(super) fn claim(&mut self, known: &mut Known) {
        let is_due = self.claiming.due_ms().is_some_and(|due_ms| due_ms <= known.now_ms);
        if !std::mem::take(&mut self.claiming.is_stale) && !is_due {
            return;
        }
        for number in self.claiming.open.keys().copied().collect::<Vec<_>>() {
            let Some(mut open) = self.claiming.open.remove(&number) else { continue };
            if !open.is_set_aside && !self.set_aside(known, &open.numbers) {
                continue;
            }
            open.is_set_aside = true;
            match self.progress_of_claims(known, &open) {
                Progress::Waits(orders) => {
                    known.orders.extend(orders);
                    self.claiming.open.insert(number, open);
                }
                Progress::Ready => {
                    advance(known.world.decisions_mut(), &open.numbers, Stage::Queued);
                    self.send_when_provisioned(known, open.numbers);
                }
                Progress::Void => self.undo(known, &open.numbers, None),
                Progress::Failed(decision, why) => {
                    self.undo(known, &open.numbers, Some((decision, why)));
                }
            }
        }
        if self.claiming.open.is_empty() {
            self.claiming.written.clear();
        }
        known.take_reports();
    }

    /// Sets devices aside for all pods of a job on their nodes, or undoes what was decided of it. A
    /// pod alone is decided again at once: where it can go is known anew.
    fn set_aside(&mut self, known: &mut Known, numbers: &[u64]) -> bool {
        let decisions = known.world.decisions();
        let view = DeviceClaimView::of(&known.world);
        let decided = numbers.iter().filter_map(|number| decisions.get(*number));
        let decided = decided.filter(|decision| view.has_any(decision.pod));
        let decided: Vec<(PodId, NodeName)> =
            decided.map(|decision| (decision.pod, decision.bind.node.clone())).collect();
        if let Some(events) = DevicesAside::of(&mut known.world).set(&decided) {
            known.apply(events);
            return true;
        }
        let node = decided.first().map(|(_, node)| node.to_string()).unwrap_or_default();
        let first = numbers.first().filter(|_| numbers.len() > 1);
        let why = first.map(|first| (*first, NotYet::DevicesTaken { node }));
        self.undo(known, numbers, why);
        false
    }

    /// Takes back what was written for pods that are not bound after all.
    pub(super) fn release_devices(&mut self, known: &mut Known, pods: &[PodId]) {
        let events = DevicesAside::of(&mut known.world).give_back(pods);
        let view = DeviceClaimView::of(&known.world);
        let writes = pods.iter().flat_map(|pod| view.writes_to_undo(*pod));
        let orders: Vec<Order> = writes.map(|write| Order::WriteClaim(Box::new(write))).collect();
        known.orders.extend(orders);
        known.apply(events);
    }

    /// The same for the pods of decisions.
    pub(super) fn release_decided(&mut self, known: &mut Known, numbers: &[u64]) {
        let pods = pods_of(known, numbers);
        self.release_devices(known, &pods);
    }

    fn progress_of_claims(&mut self, known: &Known, open: &Open) -> Progress {
        let decisions = known.world.decisions();
        if self.is_dry_run {
            return Progress::Ready;
        }
        if !open.numbers.iter().all(|number| decisions.is_current(*number)) {
            return Progress::Void;
        }
        let (mut orders, mut waits) = (Vec::new(), false);
        for decision in open.numbers.iter().filter_map(|number| decisions.get(*number)) {
            let (number, node) = (decision.bind.decision, &*decision.bind.node);
            let writes = match DeviceClaimView::of(&known.world).next_writes(decision.pod, node) {
                Ok(writes) => writes,
                Err(why) => return Progress::Failed(number, why),
            };
            for write in writes {
                waits = true;
                let claim = write.claim.name.to_string();
                let known_write = self.claiming.written.get(&write.claim);
                let problem = match known_write.filter(|(version, _)| *version == write.version) {
                    Some((_, None)) if open.until_ms > known.now_ms => continue,
                    Some((_, None)) => format!("it was not done within {} s", WAIT_MS / 1_000),
                    Some((_, Some(problem))) => problem.clone(),
                    None => {
                        let ordered = (write.version.clone(), None);
                        self.claiming.written.insert(write.claim.clone(), ordered);
                        orders.push(Order::WriteClaim(Box::new(write)));
                        continue;
                    }
                };
                let node = node.to_owned();
                return Progress::Failed(number, NotYet::ClaimNotWritten { claim, node, problem });
            }
        }
        match waits {
            true => Progress::Waits(orders),
            false => Progress::Ready,
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
            self.pauses.pause_pod(known.now_ms, pod, Pause::Long);
            let events = known.world.pause_pod(pod, Some(why));
            known.apply(events);
        }
        known.take_back(numbers);
    }
}
