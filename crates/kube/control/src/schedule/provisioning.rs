//! Decisions whose pods have claims without volumes (`WaitForFirstConsumer`): each claim is
//! annotated with the node of its pod, and nothing of the decision is sent before all have their
//! volumes. Meanwhile the pods' room is held.
//!
//! It is what kube-scheduler does before it binds: annotation `volume.kubernetes.io/selected-node`,
//! then waiting until each claim is bound. A provisioner that cannot make a volume there takes the
//! annotation back; then, and when it takes too long, the whole decision is undone.

use std::collections::BTreeMap;

use dovetail_cluster::world::{ClaimKey, DecidedPods, DecisionStage, Decisions, VolumePatience};
use dovetail_model::PodId;
use dovetail_plan::Cause as Refusal;
use dovetail_translate::NotYet;

use super::dispatch::Dispatch;
use super::known::Known;
use crate::order::{OrderEnd, PodOrder};

/// Decisions that wait for volumes.
#[derive(Debug)]
pub(super) struct Provisioning {
    pub(super) wait_ms: u64,
    /// By the number of the first decision about their job.
    open: BTreeMap<u64, Open>,
    /// Whether anything has changed since they were checked.
    is_stale: bool,
}

impl Default for Provisioning {
    fn default() -> Self {
        let VolumePatience { wait_ms } = VolumePatience::default();
        Self { wait_ms, open: BTreeMap::new(), is_stale: false }
    }
}

/// What all pods of a job that were decided at once wait for.
#[derive(Debug)]
struct Open {
    /// Their decisions.
    numbers: Vec<u64>,
    until_ms: u64,
    claims: BTreeMap<ClaimKey, NodeChoice>,
    /// Claims that were without a volume when that was last reported.
    reported: Vec<ClaimKey>,
}

/// The node that is chosen for a claim.
#[derive(Clone, Debug)]
struct NodeChoice {
    /// The decision about the first pod that uses it.
    decision: u64,
    written: WriteProgress,
}

/// How far its writing is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum WriteProgress {
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

/// How far the decisions about a job are.
enum ProvisioningProgress {
    Waits(Vec<PodOrder>),
    Ready,
    /// Some of its pods are not to go where they were to, or nothing more is to be waited for.
    Void,
    /// This decision cannot be carried out.
    Failed(u64, NotYet),
}

impl Provisioning {
    /// Pods of decisions that wait for volumes.
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

    /// Notes what became of the choice of a node for a claim.
    pub(super) fn written(
        &mut self,
        decisions: &Decisions,
        claim: &ClaimKey,
        (node, version): (&str, &str),
        end: OrderEnd,
    ) {
        self.is_stale = true;
        let choices = self.open.values_mut().filter_map(|open| open.claims.get_mut(claim));
        let ordered = WriteProgress::Ordered(version.into());
        let is_for = |choice: &NodeChoice| {
            decisions.get(choice.decision).is_some_and(|decision| *decision.bind.node == *node)
        };
        for choice in choices.filter(|one| is_for(one) && one.written == ordered) {
            choice.written = match &end {
                OrderEnd::Done => WriteProgress::Done(version.into()),
                OrderEnd::Gone | OrderEnd::CalledOff => WriteProgress::Changed(version.into()),
                OrderEnd::Refused { code, message } => {
                    WriteProgress::Failed(format!("the API server rejected it ({code}): {message}"))
                }
                OrderEnd::Unanswered { problem } => WriteProgress::Failed(problem.clone()),
            };
        }
    }
}

impl Dispatch {
    /// Sends what was decided about a job, now or when the claims of its pods have volumes.
    pub(super) fn send_when_provisioned(&mut self, known: &mut Known, numbers: Vec<u64>) {
        let mut claims = BTreeMap::new();
        let decisions = known.world.decisions();
        let Some(first) = numbers.first().and_then(|first| decisions.get(*first)) else { return };
        let (first, gang) = (first.bind.decision, first.gang);
        if !self.is_dry_run {
            for decision in numbers.iter().filter_map(|number| decisions.get(*number)) {
                for claim in known.world.volumes().claims_without_volume(decision.pod) {
                    let decision = decision.bind.decision;
                    // Where pods share one, the first chooses.
                    claims
                        .entry(claim)
                        .or_insert(NodeChoice { decision, written: WriteProgress::NotYet });
                }
            }
        }
        if claims.is_empty() {
            return self.outbox.add(&numbers, gang);
        }
        advance(known.world.decisions_mut(), &numbers, DecisionStage::Provisioning);
        self.provisioning.is_stale = true;
        let until_ms = known.now_ms.saturating_add(self.provisioning.wait_ms);
        let open = Open { numbers, until_ms, claims, reported: Vec::new() };
        self.provisioning.open.insert(first, open);
    }

    /// Checks what became of the claims, and goes on.
    pub(super) fn provision(&mut self, known: &mut Known) {
        let is_due = self.provisioning.due_ms().is_some_and(|due_ms| due_ms <= known.now_ms);
        if !std::mem::take(&mut self.provisioning.is_stale) && !is_due {
            return;
        }
        for number in self.provisioning.open.keys().copied().collect::<Vec<_>>() {
            let Some(mut open) = self.provisioning.open.remove(&number) else { continue };
            match self.progress_of(known, &mut open) {
                ProvisioningProgress::Waits(orders) => {
                    known.orders.extend(orders);
                    report_missing(known, &mut open);
                    self.provisioning.open.insert(number, open);
                }
                ProvisioningProgress::Ready => {
                    advance(known.world.decisions_mut(), &open.numbers, DecisionStage::Queued);
                    let gang = known.world.decisions().get(number).and_then(|first| first.gang);
                    self.outbox.add(&open.numbers, gang);
                }
                ProvisioningProgress::Void => self.undo(known, &open.numbers, None),
                ProvisioningProgress::Failed(decision, why) => {
                    self.undo(known, &open.numbers, Some((decision, why)));
                }
            }
        }
        // What is said of those that were undone is reported now.
        known.take_reports();
    }

    /// Gives up decisions that wait for volumes where pods of them are to make room: nothing of
    /// these has begun, so no pod has to be evicted.
    pub(super) fn give_up_for_others(&mut self, known: &mut Known, victims: &[PodId]) {
        let open = self.provisioning.open.iter().map(|(first, open)| (*first, &*open.numbers));
        for number in decided_for(known, open, victims) {
            if let Some(open) = self.provisioning.open.remove(&number) {
                self.undo(known, &open.numbers, None);
            }
        }
    }

    fn progress_of(&self, known: &mut Known, open: &mut Open) -> ProvisioningProgress {
        let decisions = known.world.decisions();
        if !open.numbers.iter().all(|number| decisions.is_current(*number)) {
            return ProvisioningProgress::Void;
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
                Err(why) => return ProvisioningProgress::Failed(choice.decision, why),
            }
        }
        match waits {
            true => ProvisioningProgress::Waits(orders),
            false if can_reach_their_volumes(known, open) => ProvisioningProgress::Ready,
            false => ProvisioningProgress::Void,
        }
    }

    /// Nothing if a claim has its volume; what is to be written if it waits, if anything.
    fn progress_of_claim(
        &self,
        known: &Known,
        key: &ClaimKey,
        choice: &mut NodeChoice,
        is_late: bool,
    ) -> Result<Option<Option<PodOrder>>, NotYet> {
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
        let decision = known.world.decisions().get(choice.decision);
        let node = decision.map_or(String::new(), |decision| decision.bind.node.to_string());
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
            if let WriteProgress::NotYet | WriteProgress::Changed(_) = choice.written {
                choice.written = WriteProgress::Done(Box::default());
            }
            return Ok(Some(None));
        }
        match &choice.written {
            // The watch does not show the write yet, or the write is on its way.
            WriteProgress::Done(before) | WriteProgress::Changed(before) if before == version => {
                Ok(Some(None))
            }
            WriteProgress::Ordered(_) => Ok(Some(None)),
            WriteProgress::Done(_) => {
                Err(NotYet::NotProvisioned { claim: name, node, provisioner })
            }
            WriteProgress::Failed(problem) => {
                let problem = problem.clone();
                Err(NotYet::ClaimNotWritten { claim: name, node, problem })
            }
            WriteProgress::NotYet | WriteProgress::Changed(_) => {
                choice.written = WriteProgress::Ordered(version.clone());
                let (claim, version) = (key.clone(), version.clone());
                Ok(Some(Some(PodOrder::SelectNode { claim, version, node })))
            }
        }
    }
}

pub(super) fn advance(decisions: &mut Decisions, numbers: &[u64], stage: DecisionStage) {
    numbers.iter().for_each(|number| decisions.advance(*number, stage));
}

/// Of decisions that wait, by the first about each job, those about any of these pods.
pub(super) fn decided_for<'o>(
    known: &Known,
    open: impl Iterator<Item = (u64, &'o [u64])>,
    pods: &[PodId],
) -> Vec<u64> {
    let decided = open.filter(|(_, numbers)| {
        pods_of(known, numbers).iter().any(|decided| pods.contains(decided))
    });
    decided.map(|(first, _)| first).collect()
}

/// The pods of these decisions, as the engine names them.
pub(super) fn pods_of(known: &Known, numbers: &[u64]) -> Vec<PodId> {
    let decisions = known.world.decisions();
    numbers.iter().filter_map(|number| Some(decisions.get(*number)?.pod)).collect()
}

/// All pods of a decision report for which volumes they wait, when that is new or has changed.
fn report_missing(known: &mut Known, open: &mut Open) {
    let is_missing =
        |key: &&ClaimKey| known.world.volumes().claim(key).is_none_or(|claim| !claim.is_bound());
    let missing: Vec<ClaimKey> = open.claims.keys().filter(is_missing).cloned().collect();
    if missing.is_empty() || open.reported == missing {
        return;
    }
    let pods = pods_of(known, &open.numbers);
    DecidedPods::of(&mut known.world, &pods).for_volumes(&missing);
    open.reported = missing;
}

/// Whether the volumes that were made can be reached from where the pods are to go.
fn can_reach_their_volumes(known: &mut Known, open: &Open) -> bool {
    let is_out_of_reach =
        |cause: Refusal| matches!(cause, Refusal::VolumeNodeAffinity | Refusal::VolumeZone);
    open.numbers.iter().all(|number| {
        let Some(decision) = known.world.decisions().get(*number) else { return false };
        let node = decision.bind.node.clone();
        let Some(asked) = known.world.volumes().asked_by_volumes(decision.pod) else {
            return false;
        };
        let refusals = known.engine_mut().and_then(|engine| engine.ask().refusals(&asked, &node));
        !refusals.into_iter().flatten().any(|refusal| is_out_of_reach(refusal.cause))
    })
}
