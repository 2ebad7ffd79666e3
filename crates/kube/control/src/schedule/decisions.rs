//! What becomes of decided binds: held until their volumes are there, sent, and settled by their
//! outcome.
//!
//! Every decision is assumed at once: what it takes is no longer free. It ends in one of three
//! ways: the watch shows the pod on its node; the watch shows that the pod went elsewhere or is
//! gone; or the bind had no effect, or a volume did not come, and the pod waits again after a
//! pause. What the answer to a bind says about a pod beyond that is not used: the watch says it,
//! too, and in the right order.

use dovetail_cluster::translate::NotYet;
use dovetail_cluster::translate::gang::gang_decision;
use dovetail_cluster::world::PodKey;
use dovetail_model::PodId;

use super::known::Known;
use super::news::News;
use super::outbox::{Decision, Outbox};
use super::pauses::{Pause, Pauses};
use super::provisioning::Provisioning;
use crate::bind::{Bind, Cause, Outcome, Report};

/// A bind that failed for a reason that lies with the server is sent again at most so often; then
/// the pod itself is suspected.
const RESENDS: u32 = 3;

/// Decisions that are not confirmed.
#[derive(Debug, Default)]
pub(super) struct Decisions {
    /// It goes into every bind.
    pub(super) epoch: u64,
    pub(super) outbox: Outbox,
    pub(super) provisioning: Provisioning,
    pub(super) pauses: Pauses,
    /// Nothing is written.
    pub(super) is_dry_run: bool,
}

impl Decisions {
    /// Takes the outcome of a bind.
    pub(super) fn outcome(&mut self, known: &mut Known, report: Report) {
        let Some(decision) = self.outbox.settle(report.bind.decision) else { return };
        let pod = decision.pod;
        match &report.outcome {
            Outcome::Bound => {
                self.pauses.server_answers();
                self.forget_pauses(known, pod);
                let waited_ms = known.now_ms - decision.since_ms;
                known.news.push(News::Bound { report, waited_ms });
                return;
            }
            Outcome::NotBound(cause) => {
                self.not_bound(known, report.bind.decision, decision, cause)
            }
            // The watch shows what became of the pod.
            Outcome::BoundByOther { .. } | Outcome::Gone | Outcome::Terminating => {
                self.pauses.server_answers();
            }
            Outcome::Gated | Outcome::Unknown => {}
        }
        known.news.push(News::NotBound(report));
    }

    /// The next bind to send, if any may be sent now.
    pub(super) fn next_bind(&mut self, known: &mut Known) -> Option<Bind> {
        if known.now_ms < self.pauses.server_until_ms() {
            return None;
        }
        loop {
            let (number, decision) = self.outbox.next()?;
            if !self.may_begin(known, &decision) {
                continue;
            }
            if let Some(bind) = self.bind(known, number, &decision) {
                return Some(bind);
            }
            self.outbox.settle(number);
        }
    }

    /// The bind is not sent and will not be: its pod stays assumed.
    pub(super) fn keep(&mut self, known: &mut Known, bind: &Bind) {
        if let Some(decision) = self.outbox.settle(bind.decision) {
            let waited_ms = known.now_ms - decision.since_ms;
            known.news.push(News::WouldBind { bind: bind.clone(), waited_ms });
        }
    }

    /// Whether a bind may be the first of its gang, or is not. If the gang is not whole any more
    /// before anything of it was sent, nothing is sent: it is decided again.
    fn may_begin(&mut self, known: &mut Known, decision: &Decision) -> bool {
        let Some(all) = decision.gang.and_then(|gang| self.outbox.begin(gang)) else { return true };
        let size = decision.gang.map_or(1, |gang| gang.size);
        if all.len() == size && all.iter().all(|(_, one)| is_current(known, one)) {
            return true;
        }
        let current = all.iter().filter(|(_, one)| is_current(known, one));
        let pods: Vec<PodId> = current.map(|(_, one)| one.pod).collect();
        let numbers: Vec<u64> = all.iter().map(|(number, _)| *number).collect();
        self.outbox.take_back(&numbers);
        let events = known.world.bind_failed(&pods);
        known.apply(events);
        false
    }

    /// The bind of a decision, unless it is out of date.
    fn bind(&self, known: &Known, number: u64, decision: &Decision) -> Option<Bind> {
        if !is_current(known, decision) {
            return None;
        }
        Some(Bind {
            decision: number,
            pod: PodKey::of(known.world.pods().pod_of(decision.pod)?),
            node: decision.node.to_string(),
            epoch: self.epoch,
            tag: match decision.gang {
                Some(gang) => gang_decision(self.epoch, gang.number, gang.size),
                None => known.world.pods().name_of_decision(decision.pod, self.epoch, number),
            },
        })
    }

    fn not_bound(&mut self, known: &mut Known, number: u64, decision: Decision, cause: &Cause) {
        let asked_ms = match cause {
            Cause::Busy { retry_after_ms } => Some(*retry_after_ms),
            Cause::ServerFailed { code: 502..=504, .. } | Cause::NoAnswer { .. } => Some(None),
            // Nothing more is sent in this leadership.
            Cause::NotLeading | Cause::Stopped => return,
            Cause::Conflict | Cause::Refused { .. } | Cause::ServerFailed { .. } => None,
        };
        if let Some(asked_ms) = asked_ms {
            self.pauses.pause_server(known.now_ms, asked_ms);
        }
        if !is_current(known, &decision) {
            return;
        }
        if asked_ms.is_some() && decision.tries < RESENDS {
            return self.outbox.send_again(number, decision);
        }
        let Some(pod) = known.world.pods().pod_of(decision.pod).map(PodKey::of) else { return };
        let (pause, why) = match cause {
            Cause::Refused { code, message } => {
                let (node, message) = (decision.node.to_string(), message.clone());
                (Pause::Long, Some(NotYet::NotBound { node, code: *code, message }))
            }
            Cause::ServerFailed { code, message } => {
                let (node, message) = (decision.node.to_string(), message.clone());
                (Pause::Short, Some(NotYet::NotBound { node, code: *code, message }))
            }
            _ => (Pause::Short, None),
        };
        self.pauses.pause_pod(known.now_ms, &pod, pause);
        let events = known.world.pause_pod(&pod, why);
        known.apply(events);
        known.take_reports();
    }

    /// A pod runs, or will: what failed before is forgotten.
    pub(super) fn forget_pauses(&mut self, known: &Known, pod: PodId) {
        if self.pauses.pods.is_empty() {
            return;
        }
        if let Some(pod) = known.world.pods().pod_of(pod) {
            self.pauses.pods.forget(&PodKey::of(pod));
        }
    }

    /// Lets pods take part again whose pause is over.
    pub(super) fn wake(&mut self, known: &mut Known) {
        while let Some(pod) = self.pauses.pods.pop_due(known.now_ms) {
            let events = known.world.resume_pod(&pod);
            known.apply(events);
        }
        let world = &known.world;
        self.pauses.pods.sweep(|pod| world.pods().has(pod));
    }

    /// When to send or to look again even if nothing happens.
    pub(super) fn due_ms(&self, now_ms: u64) -> Option<u64> {
        let server_ms = self.pauses.server_until_ms();
        let server_ms = (self.outbox.to_send() > 0 && now_ms < server_ms).then_some(server_ms);
        let others = [self.pauses.pods.next_due_ms(), self.provisioning.due_ms()];
        server_ms.into_iter().chain(others.into_iter().flatten()).min()
    }
}

/// Whether the pod still waits for this very bind.
fn is_current(known: &Known, decision: &Decision) -> bool {
    !decision.is_superseded && known.world.pods().assumed_on(decision.pod) == Some(&decision.node)
}
