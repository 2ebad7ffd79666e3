//! The life of binds: sent once, and where the answer leaves open whether the server has carried
//! one out, its pod is read when the request can no longer take effect.

use std::collections::{BTreeMap, BTreeSet};

use super::answer::{Cause, Outcome, Verdict, of_bind, of_pod};
use super::body::request;
use super::{Bind, Report};
use crate::request::{Answer, Request};

/// First and longest pause between two reads of a pod that cannot be read.
const READ_PAUSES_MS: (u64, u64) = (100, 5_000);

/// Binds whose outcome is not known, by the number of their decision.
#[derive(Debug, Default)]
pub(crate) struct Binds {
    open: BTreeMap<u64, Open>,
    /// Pods to read: when, and the decision.
    due: BTreeSet<(u64, u64)>,
    in_doubt: usize,
    is_stopping: bool,
}

#[derive(Debug)]
struct Open {
    bind: Bind,
    /// From sending to the answer, if one came.
    took_ms: Option<u64>,
    /// Why its effect is open; `None` while the bind itself is on its way.
    doubt: Option<Doubt>,
}

#[derive(Debug)]
struct Doubt {
    cause: Cause,
    pause_ms: u64,
}

impl Binds {
    /// A bind goes out: its request.
    pub(crate) fn send(&mut self, bind: Bind) -> Request {
        let request = request(&bind);
        let open = Open { bind, took_ms: None, doubt: None };
        self.open.insert(open.bind.decision, open);
        request
    }

    /// Binds whose answer has not come.
    pub(crate) fn on_their_way(&self) -> usize {
        self.open.len() - self.in_doubt
    }

    /// Binds whose effect is open.
    pub(crate) fn in_doubt(&self) -> usize {
        self.in_doubt
    }

    /// The next pod to be read, with the number of its decision.
    pub(crate) fn next_read(&mut self, own_ms: u64) -> Option<(u64, Request)> {
        let (due_ms, decision) = *self.due.first().filter(|(due_ms, _)| *due_ms <= own_ms)?;
        self.due.remove(&(due_ms, decision));
        let bind = &self.open.get(&decision)?.bind;
        Some((decision, Request::read_pod(&bind.pod)))
    }

    /// When the next pod is to be read, by the own clock.
    pub(crate) fn due_ms(&self) -> Option<u64> {
        self.due.first().map(|(due_ms, _)| *due_ms)
    }

    /// Takes the answer to a bind; its report, if its outcome is known now.
    pub(crate) fn answered(
        &mut self,
        decision: u64,
        answer: &Answer,
        own_ms: u64,
    ) -> Option<Report> {
        let open = self.open.get_mut(&decision)?;
        let Some(answered) = &answer.answered else {
            let cause = if self.is_stopping { Cause::Stopped } else { Cause::NotLeading };
            return self.end(decision, Outcome::NotBound(cause));
        };
        open.took_ms = answered.is_ok().then_some(answer.took_ms);
        let (cause, due_ms) = match of_bind(answered) {
            Verdict::Final(outcome) => return self.end(decision, outcome),
            Verdict::LookNow(cause) => (cause, own_ms),
            Verdict::LookLater(cause) => (cause, answer.over_ms),
        };
        open.doubt = Some(Doubt { cause, pause_ms: READ_PAUSES_MS.0 });
        self.in_doubt += 1;
        if self.is_stopping {
            return self.end(decision, Outcome::Unknown);
        }
        self.due.insert((due_ms, decision));
        None
    }

    /// Takes what was read of the pod of a bind in doubt; its report, if its outcome is known now.
    pub(crate) fn read(&mut self, decision: u64, answer: &Answer, own_ms: u64) -> Option<Report> {
        let open = self.open.get_mut(&decision)?;
        let doubt = open.doubt.as_mut()?;
        let answered = answer.answered.as_ref();
        if let Some(outcome) = answered.and_then(|one| of_pod(&open.bind, one, &doubt.cause)) {
            return self.end(decision, outcome);
        }
        self.due.insert((own_ms.saturating_add(doubt.pause_ms), decision));
        doubt.pause_ms = READ_PAUSES_MS.1.min(2 * doubt.pause_ms);
        None
    }

    /// Nothing is sent or read any more: what is in doubt stays unknown.
    pub(crate) fn stop(&mut self) -> Vec<Report> {
        self.is_stopping = true;
        self.due.clear();
        let in_doubt = self.open.iter().filter(|(_, open)| open.doubt.is_some());
        let in_doubt: Vec<u64> = in_doubt.map(|(decision, _)| *decision).collect();
        let unknown = in_doubt.into_iter().filter_map(|one| self.end(one, Outcome::Unknown));
        unknown.collect()
    }

    fn end(&mut self, decision: u64, outcome: Outcome) -> Option<Report> {
        let Open { bind, took_ms, doubt } = self.open.remove(&decision)?;
        self.in_doubt -= usize::from(doubt.is_some());
        Some(Report { bind, outcome, answered_in_ms: took_ms })
    }
}
