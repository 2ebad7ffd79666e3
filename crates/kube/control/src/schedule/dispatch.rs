//! What becomes of decided binds: held until their volumes are there, sent, and settled by their
//! outcome.
//!
//! Every decision is assumed at once: what it takes is no longer free. It ends in one of three
//! ways: the watch shows the pod on its node; the watch shows that the pod went elsewhere or is
//! gone; or the bind had no effect, or a volume did not come, and the pod is pending again after a
//! pause. What the answer to a bind says about a pod beyond that is not used: the watch says it,
//! too, and in the right order.

use std::sync::Arc;

use dovetail_cluster::world::{Bind, Decision, DecisionStage, GangDecision, PodKey};
use dovetail_model::PodId;
use dovetail_translate::NotYet;

use super::claiming::Claiming;
use super::known::Known;
use super::news::News;
use super::outbox::Outbox;
use super::pauses::{PauseLength, Pauses};
use super::provisioning::Provisioning;
use crate::bind::{BindOutcome, BindReport, Cause};

/// A bind that failed for a reason that lies with the server is sent again at most so often; then
/// the pod itself is suspected.
const RESENDS: u32 = 3;

/// Decisions on their way.
#[derive(Debug, Default)]
pub(super) struct Dispatch {
    pub(super) outbox: Outbox,
    pub(super) provisioning: Provisioning,
    pub(super) claiming: Claiming,
    pub(super) pauses: Pauses,
    /// Nothing is written.
    pub(super) is_dry_run: bool,
}

impl Dispatch {
    /// Takes the outcome of a bind.
    pub(super) fn outcome(&mut self, known: &mut Known, report: BindReport) {
        let number = report.bind.decision;
        let is_current = known.world.decisions().is_current(number);
        let decisions = known.world.decisions_mut();
        let decision = match report.outcome {
            BindOutcome::Bound => decisions.bound(number),
            _ => decisions.settle(number),
        };
        let Some(decision) = decision else { return };
        match &report.outcome {
            BindOutcome::Bound => {
                self.pauses.server_answers();
                self.forget_pauses(known, decision.pod);
                let waited_ms = known.now_ms - decision.since_ms;
                known.news.push(News::Bound { report, waited_ms });
                return;
            }
            BindOutcome::NotBound(cause) => self.not_bound(known, &decision, is_current, cause),
            // The watch shows what became of the pod.
            BindOutcome::BoundByOther { .. } | BindOutcome::Gone | BindOutcome::Terminating => {
                self.pauses.server_answers();
            }
            BindOutcome::Gated | BindOutcome::Unknown => {}
        }
        known.news.push(News::NotBound(report));
    }

    /// The next bind to send, if any may be sent now.
    pub(super) fn next_bind(&mut self, known: &mut Known) -> Option<Arc<Bind>> {
        if known.now_ms < self.pauses.server_until_ms() {
            return None;
        }
        loop {
            let number = self.outbox.next()?;
            let Some(decision) = known.world.decisions().get(number) else { continue };
            let (bind, gang) = (Arc::clone(&decision.bind), decision.gang);
            if !self.may_begin(known, gang) {
                continue;
            }
            let decisions = known.world.decisions_mut();
            if decisions.is_current(number) {
                decisions.advance(number, DecisionStage::Sent);
                return Some(bind);
            }
            decisions.settle(number);
        }
    }

    /// The bind is not sent and will not be: its pod stays assumed.
    pub(super) fn would_bind(&mut self, known: &mut Known, bind: &Arc<Bind>) {
        if let Some(decision) = known.world.decisions_mut().settle(bind.decision) {
            let waited_ms = known.now_ms - decision.since_ms;
            known.news.push(News::WouldBind { bind: Arc::clone(bind), waited_ms });
        }
    }

    /// Whether a bind may be the first of its gang, or is not. If the gang is not whole any more
    /// before anything of it was sent, nothing is sent: it is decided again.
    fn may_begin(&mut self, known: &mut Known, gang: Option<GangDecision>) -> bool {
        let Some(gang) = gang.filter(|gang| self.outbox.begin(*gang)) else { return true };
        let decisions = known.world.decisions();
        let numbers: Vec<u64> = (gang.first..gang.first + gang.size as u64).collect();
        if numbers.iter().all(|number| decisions.is_current(*number)) {
            return true;
        }
        self.outbox.take_back(&numbers);
        self.release_decided(known, &numbers);
        known.take_back(&numbers);
        false
    }

    fn not_bound(
        &mut self,
        known: &mut Known,
        decision: &Decision,
        is_current: bool,
        cause: &Cause,
    ) {
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
        if !is_current {
            return;
        }
        let Bind { decision: number, pod, node, .. } = &*decision.bind;
        if asked_ms.is_some() && decision.tries < RESENDS {
            known.world.decisions_mut().try_again(*number);
            return self.outbox.send_again(*number);
        }
        let (pause, why) = match cause {
            Cause::Refused { code, message } => {
                let (node, message) = (node.to_string(), message.clone());
                (PauseLength::Long, Some(NotYet::NotBound { node, code: *code, message }))
            }
            Cause::ServerFailed { code, message } => {
                let (node, message) = (node.to_string(), message.clone());
                (PauseLength::Short, Some(NotYet::NotBound { node, code: *code, message }))
            }
            _ => (PauseLength::Short, None),
        };
        self.release_devices(known, &[decision.pod]);
        self.pauses.pause_pod(known.now_ms, pod, pause);
        let events = known.world.pause_pod(pod, why);
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

    /// When to send or to decide again even if nothing happens.
    pub(super) fn due_ms(&self, now_ms: u64) -> Option<u64> {
        let server_ms = self.pauses.server_until_ms();
        let server_ms = (self.outbox.to_send() > 0 && now_ms < server_ms).then_some(server_ms);
        let others =
            [self.pauses.pods.next_due_ms(), self.provisioning.due_ms(), self.claiming.due_ms()];
        server_ms.into_iter().chain(others.into_iter().flatten()).min()
    }
}
