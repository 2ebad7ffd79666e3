//! Decisions whose pods have claims without volumes (`WaitForFirstConsumer`): each claim is
//! annotated with the node of its pod, and nothing of the decision is sent before all have their
//! volumes. Meanwhile the pods' room is held.
//!
//! It is what kube-scheduler does before it binds: annotation `volume.kubernetes.io/selected-node`,
//! then waiting until each claim is bound. A provisioner that cannot make a volume there takes the
//! annotation back; then, and when it takes too long, the whole decision is undone.

use std::collections::BTreeMap;

use dovetail_cluster::translate::NotYet;
use dovetail_cluster::world::{ClaimKey, PodKey, VolumePatience};
use dovetail_model::{JobId, NodeName, PodId};
use dovetail_plan::Cause as Refusal;

use super::decisions::Decisions;
use super::known::Known;
use super::pauses::Pause;
use crate::order::{Order, OrderEnd};

/// Decisions that wait for volumes.
#[derive(Debug)]
pub(super) struct Provisioning {
    pub(super) wait_ms: u64,
    made: u64,
    open: BTreeMap<u64, Open>,
    /// Whether anything has changed since they were checked.
    is_stale: bool,
}

impl Default for Provisioning {
    fn default() -> Self {
        let VolumePatience { wait_ms } = VolumePatience::default();
        Self { wait_ms, made: 0, open: BTreeMap::new(), is_stale: false }
    }
}

/// One of them: all pods of a job that were decided at once.
#[derive(Debug)]
struct Open {
    binds: Vec<(PodId, NodeName)>,
    since_ms: u64,
    until_ms: u64,
    claims: BTreeMap<ClaimKey, Choice>,
    /// Claims that were without a volume when the pods last said so.
    reported: Vec<ClaimKey>,
}

/// The node that is chosen for a claim.
#[derive(Clone, Debug)]
struct Choice {
    /// The first pod that uses it, and where that goes.
    pod: PodId,
    node: NodeName,
    written: Written,
}

/// How far its writing is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Written {
    NotYet,
    /// It is on its way, to this version of the claim.
    Ordered(Box<str>),
    /// This version of the claim was replaced by one that says it.
    Done(Box<str>),
    /// The claim has another version than this one.
    Changed(Box<str>),
    /// The server does not take it.
    Failed(String),
}

/// How far a decision is.
enum Progress {
    PendingJobs(Vec<Order>),
    Ready,
    /// Some of its pods are not to go where they were to, or nothing more is to be waited for.
    Void,
    Failed(PodId, NotYet),
}

impl Provisioning {
    /// Pods of decisions that wait for volumes.
    pub(super) fn pods(&self) -> usize {
        self.open.values().map(|open| open.binds.len()).sum()
    }

    /// When the first is given up.
    pub(super) fn due_ms(&self) -> Option<u64> {
        self.open.values().map(|open| open.until_ms).min()
    }

    /// Something has changed.
    pub(super) fn recheck(&mut self) {
        self.is_stale = true;
    }

    /// Notes what became of the choice of a node for a claim.
    pub(super) fn written(&mut self, claim: &ClaimKey, node: &str, version: &str, end: OrderEnd) {
        self.is_stale = true;
        let choices = self.open.values_mut().filter_map(|open| open.claims.get_mut(claim));
        let ordered = Written::Ordered(version.into());
        for choice in choices.filter(|one| *one.node == *node && one.written == ordered) {
            choice.written = match &end {
                OrderEnd::Done => Written::Done(version.into()),
                OrderEnd::Gone | OrderEnd::CalledOff => Written::Changed(version.into()),
                OrderEnd::Refused { code, message } => {
                    Written::Failed(format!("the server refuses it ({code}): {message}"))
                }
                OrderEnd::Unanswered { problem } => Written::Failed(problem.clone()),
            };
        }
    }
}

impl Decisions {
    /// Sends what was decided about a job, now or when the claims of its pods have volumes.
    pub(super) fn send_when_provisioned(
        &mut self,
        known: &Known,
        job: JobId,
        binds: Vec<(PodId, NodeName)>,
        since_ms: u64,
    ) {
        let mut claims = BTreeMap::new();
        if !self.is_dry_run {
            for (pod, node) in &binds {
                for claim in known.world.volumes().claims_without_volume(*pod) {
                    let choice = Choice { pod: *pod, node: node.clone(), written: Written::NotYet };
                    // Where pods share one, the first chooses.
                    claims.entry(claim).or_insert(choice);
                }
            }
        }
        if claims.is_empty() {
            return self.outbox.add(binds, since_ms);
        }
        let all = &mut self.provisioning;
        // What was decided about it before holds no longer.
        all.open.retain(|_, open| {
            open.binds
                .iter()
                .all(|(pod, _)| pod.job != job || !binds.iter().any(|(other, _)| other == pod))
        });
        all.made += 1;
        all.is_stale = true;
        let until_ms = known.now_ms.saturating_add(all.wait_ms);
        let reported = Vec::new();
        let open = Open { binds, since_ms, until_ms, claims, reported };
        all.open.insert(all.made, open);
    }

    /// Looks what became of the claims, and goes on.
    pub(super) fn provision(&mut self, known: &mut Known) {
        let is_due = self.provisioning.due_ms().is_some_and(|due_ms| due_ms <= known.now_ms);
        if !std::mem::take(&mut self.provisioning.is_stale) && !is_due {
            return;
        }
        for number in self.provisioning.open.keys().copied().collect::<Vec<_>>() {
            let Some(mut open) = self.provisioning.open.remove(&number) else { continue };
            match self.progress_of(known, &mut open) {
                Progress::PendingJobs(orders) => {
                    known.orders.extend(orders);
                    report_missing(known, &mut open);
                    self.provisioning.open.insert(number, open);
                }
                Progress::Ready => {
                    known.world.have_their_volumes(open.binds.iter().map(|(pod, _)| *pod));
                    self.outbox.add(open.binds, open.since_ms);
                }
                Progress::Void => self.undo(known, &open, None),
                Progress::Failed(pod, why) => self.undo(known, &open, Some((pod, why))),
            }
        }
        // What is said of those that were undone is heard now.
        known.take_reports();
    }

    /// Gives up decisions that wait for volumes where pods of them are to make room: nothing of
    /// these has begun, so no pod has to be evicted.
    pub(super) fn give_up_for_others(&mut self, known: &mut Known, victims: &[PodId]) {
        let is_victim = |(pod, _): &(PodId, NodeName)| victims.contains(pod);
        let open = &self.provisioning.open;
        let given_up = open.iter().filter(|(_, open)| open.binds.iter().any(is_victim));
        for number in given_up.map(|(number, _)| *number).collect::<Vec<_>>() {
            if let Some(open) = self.provisioning.open.remove(&number) {
                self.undo(known, &open, None);
            }
        }
    }

    fn progress_of(&self, known: &mut Known, open: &mut Open) -> Progress {
        let is_current =
            |(pod, node): &(PodId, NodeName)| known.world.pods().assumed_on(*pod) == Some(node);
        if !open.binds.iter().all(is_current) {
            return Progress::Void;
        }
        let mut orders = Vec::new();
        let mut waits = false;
        let is_late = open.until_ms <= known.now_ms;
        for (key, choice) in &mut open.claims {
            match self.progress_of_claim(known, key, choice, is_late) {
                Ok(order) => {
                    waits |= order.is_some();
                    orders.extend(order.flatten());
                }
                Err(why) => return Progress::Failed(choice.pod, why),
            }
        }
        match waits {
            true => Progress::PendingJobs(orders),
            false if can_reach_their_volumes(known, open) => Progress::Ready,
            false => Progress::Void,
        }
    }

    /// Nothing if a claim has its volume; what is to be written if it waits, if anything.
    fn progress_of_claim(
        &self,
        known: &Known,
        key: &ClaimKey,
        choice: &mut Choice,
        is_late: bool,
    ) -> Result<Option<Option<Order>>, NotYet> {
        let name = key.name.to_string();
        let Some(claim) = known.world.volumes().claim(key) else {
            return Err(NotYet::ClaimMissing { claim: name });
        };
        if claim.meta.is_deleting() {
            return Err(NotYet::ClaimDeleting { claim: name });
        }
        if known.world.volumes().has_volume(claim) {
            return Ok(None);
        }
        let node = choice.node.to_string();
        let provisioner = known.world.volumes().provisioner(claim).to_owned();
        if is_late {
            let within_s = self.provisioning.wait_ms / 1_000;
            return Err(NotYet::ProvisionedLate { claim: name, node, provisioner, within_s });
        }
        let selected = claim.selected_node.as_deref();
        if let Some(other) = selected.filter(|selected| *selected != node) {
            let other = other.to_owned();
            return Err(NotYet::ClaimElsewhere { claim: name, node, other });
        }
        let version = &claim.meta.resource_version;
        if selected.is_some() || claim.is_bound() {
            if let Written::NotYet | Written::Changed(_) = choice.written {
                choice.written = Written::Done(Box::default());
            }
            return Ok(Some(None));
        }
        match &choice.written {
            // The watch does not show the write yet, or the write is on its way.
            Written::Done(before) | Written::Changed(before) if before == version => Ok(Some(None)),
            Written::Ordered(_) => Ok(Some(None)),
            Written::Done(_) => Err(NotYet::NotProvisioned { claim: name, node, provisioner }),
            Written::Failed(problem) => {
                let problem = problem.clone();
                Err(NotYet::ClaimNotWritten { claim: name, node, problem })
            }
            Written::NotYet | Written::Changed(_) => {
                choice.written = Written::Ordered(version.clone());
                let (claim, version) = (key.clone(), version.clone());
                Ok(Some(Some(Order::SelectNode { claim, version, node })))
            }
        }
    }

    /// The decision is void, and the room is free. A pod that failed is left alone for a while.
    fn undo(&mut self, known: &mut Known, open: &Open, failed: Option<(PodId, NotYet)>) {
        let failed_pod = failed.as_ref().map(|(pod, _)| *pod);
        if let Some((pod, why)) = failed
            && let Some(key) = known.world.pods().pod_of(pod).map(PodKey::of)
        {
            self.pauses.pause_pod(known.now_ms, &key, Pause::Long);
            let events = known.world.pause_pod(&key, Some(why));
            known.apply(events);
        }
        let is_open = |(pod, node): &&(PodId, NodeName)| {
            Some(*pod) != failed_pod && known.world.pods().assumed_on(*pod) == Some(node)
        };
        let pods: Vec<PodId> = open.binds.iter().filter(is_open).map(|(pod, _)| *pod).collect();
        let events = known.world.bind_failed(&pods);
        known.apply(events);
    }
}

/// All pods of a decision say for which volumes they wait, when that is new or has changed.
fn report_missing(known: &mut Known, open: &mut Open) {
    let is_missing =
        |key: &&ClaimKey| known.world.volumes().claim(key).is_none_or(|claim| !claim.is_bound());
    let missing: Vec<ClaimKey> = open.claims.keys().filter(is_missing).cloned().collect();
    if missing.is_empty() || open.reported == missing {
        return;
    }
    let pods: Vec<PodId> = open.binds.iter().map(|(pod, _)| *pod).collect();
    known.world.wait_for_volumes(&pods, &missing);
    open.reported = missing;
}

/// Whether the volumes that were made can be reached from where the pods are to go.
fn can_reach_their_volumes(known: &mut Known, open: &Open) -> bool {
    let is_out_of_reach =
        |cause: Refusal| matches!(cause, Refusal::VolumeNodeAffinity | Refusal::VolumeZone);
    open.binds.iter().all(|(pod, node)| {
        let Some(asked) = known.world.volumes().asked_by_volumes(*pod) else { return false };
        let refusals = known.engine_mut().and_then(|engine| engine.ask().refusals(&asked, node));
        !refusals.into_iter().flatten().any(|refusal| is_out_of_reach(refusal.cause))
    })
}
