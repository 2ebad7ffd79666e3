//! The life of binds: sent once, and where the answer leaves open whether the server has carried
//! one out, its pod is read when the request can no longer take effect.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::answer::{BindOutcome, BindVerdict, Cause, of_bind, of_pod};
use super::body::request;
use super::{Bind, BindReport};
use crate::request::{ApiRequest, ApiResponse};

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
    bind: Arc<Bind>,
    /// From sending to the answer, if one came.
    took_ms: Option<u64>,
    /// Why its effect is open; `None` while the bind itself is on its way.
    doubt: Option<BindDoubt>,
}

#[derive(Debug)]
struct BindDoubt {
    cause: Cause,
    pause_ms: u64,
}

impl Binds {
    /// A bind goes out: its request.
    pub(crate) fn send(&mut self, bind: Arc<Bind>) -> ApiRequest {
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
    pub(crate) fn next_read(&mut self, own_ms: u64) -> Option<(u64, ApiRequest)> {
        let (due_ms, decision) = *self.due.first().filter(|(due_ms, _)| *due_ms <= own_ms)?;
        self.due.remove(&(due_ms, decision));
        let bind = &self.open.get(&decision)?.bind;
        Some((decision, ApiRequest::read_pod(&bind.pod)))
    }

    /// When the next pod is to be read, by the own clock.
    pub(crate) fn due_ms(&self) -> Option<u64> {
        self.due.first().map(|(due_ms, _)| *due_ms)
    }

    /// Takes the answer to a bind; its report, if its outcome is known now.
    pub(crate) fn answered(
        &mut self,
        decision: u64,
        answer: &ApiResponse,
        own_ms: u64,
    ) -> Option<BindReport> {
        let open = self.open.get_mut(&decision)?;
        let Some(answered) = &answer.answered else {
            let cause = if self.is_stopping { Cause::Stopped } else { Cause::NotLeading };
            return self.end(decision, BindOutcome::NotBound(cause));
        };
        open.took_ms = answered.is_ok().then_some(answer.took_ms);
        let (cause, due_ms) = match of_bind(answered) {
            BindVerdict::Final(outcome) => return self.end(decision, outcome),
            BindVerdict::LookNow(cause) => (cause, own_ms),
            BindVerdict::LookLater(cause) => (cause, answer.over_ms),
        };
        open.doubt = Some(BindDoubt { cause, pause_ms: READ_PAUSES_MS.0 });
        self.in_doubt += 1;
        if self.is_stopping {
            return self.end(decision, BindOutcome::Unknown);
        }
        self.due.insert((due_ms, decision));
        None
    }

    /// Takes what was read of the pod of a bind in doubt; its report, if its outcome is known now.
    pub(crate) fn read(
        &mut self,
        decision: u64,
        answer: &ApiResponse,
        own_ms: u64,
    ) -> Option<BindReport> {
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
    pub(crate) fn stop(&mut self) -> Vec<BindReport> {
        self.is_stopping = true;
        self.due.clear();
        let in_doubt = self.open.iter().filter(|(_, open)| open.doubt.is_some());
        let in_doubt: Vec<u64> = in_doubt.map(|(decision, _)| *decision).collect();
        let unknown = in_doubt.into_iter().filter_map(|one| self.end(one, BindOutcome::Unknown));
        unknown.collect()
    }

    fn end(&mut self, decision: u64, outcome: BindOutcome) -> Option<BindReport> {
        let Open { bind, took_ms, doubt } = self.open.remove(&decision)?;
        self.in_doubt -= usize::from(doubt.is_some());
        Some(BindReport { bind, outcome, answered_in_ms: took_ms })
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use dovetail_cluster::world::PodKey;
    use serde_json::{Value, json};

    use super::super::{DECISION, EPOCH};
    use super::*;
    use crate::answer::{Answered, NoAnswer};

    fn bind() -> Arc<Bind> {
        Arc::new(Bind {
            decision: 7,
            pod: PodKey { namespace: "n".into(), name: "p".into(), uid: "u".into() },
            node: "m".into(),
            epoch: 2,
            tag: "2-7".to_owned(),
        })
    }

    fn answer(answered: Option<Answered>) -> ApiResponse {
        ApiResponse { number: 1, answered, took_ms: 40, over_ms: 4_000 }
    }

    fn says(code: u16, body: &Value) -> ApiResponse {
        answer(Some(Ok((code, None, Bytes::from(body.to_string())))))
    }

    fn lost() -> ApiResponse {
        answer(Some(Err(NoAnswer { unsent: false, error: "cut".to_owned() })))
    }

    #[test]
    fn a_bind_without_answer_is_looked_into_when_it_can_take_effect_no_more() {
        let mut binds = Binds::default();
        binds.send(bind());
        assert_eq!((binds.answered(7, &lost(), 100), binds.in_doubt()), (None, 1));
        assert_eq!((binds.next_read(3_999), binds.due_ms()), (None, Some(4_000)));
        let (decision, request) = binds.next_read(4_000).expect("a read");
        assert_eq!((decision, &*request.path), (7, "/api/v1/namespaces/n/pods/p"));
        // The pod cannot be read at once.
        assert_eq!(binds.read(7, &says(503, &json!({})), 4_010), None);
        assert_eq!((binds.next_read(4_109), binds.due_ms()), (None, Some(4_110)));
        binds.next_read(4_110).expect("another read");
        let ours = json!({"metadata": {"uid": "u", "annotations": {DECISION: "2-7", EPOCH: "2"}},
            "spec": {"nodeName": "m"}});
        let report = binds.read(7, &says(200, &ours), 4_120).expect("a report");
        assert_eq!((report.outcome, report.answered_in_ms), (BindOutcome::Bound, None));
        assert_eq!((binds.in_doubt(), binds.on_their_way(), binds.due_ms()), (0, 0, None));
    }

    #[test]
    fn a_conflict_is_looked_into_at_once_and_what_was_not_sent_is_not() {
        let mut binds = Binds::default();
        binds.send(bind());
        assert_eq!(binds.answered(7, &says(409, &json!({})), 100), None);
        binds.next_read(100).expect("a read");
        let report = binds.read(7, &says(404, &json!({})), 110).expect("a report");
        assert_eq!((report.outcome, report.answered_in_ms), (BindOutcome::Gone, Some(40)));
        binds.send(bind());
        let report = binds.answered(7, &answer(None), 200).expect("a report");
        assert_eq!(report.outcome, BindOutcome::NotBound(Cause::NotLeading));
    }

    #[test]
    fn at_the_end_what_is_in_doubt_stays_unknown_and_what_is_on_its_way_is_waited_for() {
        let mut binds = Binds::default();
        let other = Arc::new(Bind { decision: 8, ..(*bind()).clone() });
        [bind(), other].into_iter().for_each(|bind| drop(binds.send(bind)));
        assert_eq!(binds.answered(7, &lost(), 100), None);
        let unknown: Vec<BindOutcome> = binds.stop().into_iter().map(|one| one.outcome).collect();
        assert_eq!((unknown, binds.on_their_way()), (vec![BindOutcome::Unknown], 1));
        let report = binds.answered(8, &lost(), 200).expect("a report");
        assert_eq!((report.outcome, binds.due_ms()), (BindOutcome::Unknown, None));
    }
}
