//! The life of single writes about pods and claims: sent, judged by their answer, and sent again
//! after a pause where the server may do later what it did not do now.

use std::collections::{BTreeMap, BTreeSet};

use super::kinds::OrderEnd;
use super::requests::{Nomination, request};
use super::step::{NextWrite, OrderWrite, judge};
use crate::answer::NoAnswer;
use crate::request::{ApiRequest, ApiResponse, Now};

/// A write is tried so often.
const TRIES: u32 = 6;
/// First and longest pause between two tries.
const PAUSES_MS: (u64, u64) = (100, 5_000);

/// Writes that are not settled, by number.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    made: u64,
    open: BTreeMap<u64, WriteAttempt>,
    /// Writes that are not on their way: when each is due, and its number.
    due: BTreeSet<(u64, u64)>,
}

#[derive(Debug)]
struct WriteAttempt {
    /// The order that it belongs to.
    order: u64,
    step: OrderWrite,
    nomination: Nomination,
    tried: u32,
    pause_ms: u64,
}

/// What an answer came to.
pub(super) enum Settled {
    /// Nothing more may be written.
    NotLeading,
    /// The write goes on: at once, or after a pause because of a problem.
    GoesOn(Option<(OrderWrite, String)>),
    Over {
        order: u64,
        step: OrderWrite,
        end: OrderEnd,
    },
}

impl Attempts {
    /// A write is to be sent.
    pub(super) fn begin(&mut self, order: u64, step: OrderWrite, own_ms: u64) {
        self.made += 1;
        let nomination = Nomination::first(&step);
        let attempt = WriteAttempt { order, step, nomination, tried: 0, pause_ms: PAUSES_MS.0 };
        self.open.insert(self.made, attempt);
        self.due.insert((own_ms, self.made));
    }

    /// The next write that is due, with its number.
    pub(super) fn next(&mut self, scheduler: &str, now: Now) -> Option<(u64, ApiRequest)> {
        let (due_ms, number) = *self.due.first().filter(|(due_ms, _)| *due_ms <= now.own_ms)?;
        self.due.remove(&(due_ms, number));
        let WriteAttempt { step, nomination, .. } = self.open.get(&number)?;
        Some((number, request(step, nomination, scheduler, now.wall_ms)))
    }

    /// When the next write is due, by the own clock.
    pub(super) fn due_ms(&self) -> Option<u64> {
        self.due.first().map(|(due_ms, _)| *due_ms)
    }

    /// Takes the answer to a write.
    pub(super) fn answered(
        &mut self,
        number: u64,
        answer: &ApiResponse,
        own_ms: u64,
    ) -> Option<Settled> {
        let attempt = self.open.get_mut(&number)?;
        let Some(answered) = &answer.answered else { return Some(Settled::NotLeading) };
        if let (OrderWrite::Nominate(pod, ..), Ok((code, _, body))) = (&attempt.step, answered)
            && let Some(next) = attempt.nomination.next(pod, *code, body)
        {
            attempt.nomination = next;
            self.due.insert((own_ms, number));
            return Some(Settled::GoesOn(None));
        }
        let next = match answered {
            // What was read of a pod that has got a node, or is another one.
            Ok((200, ..)) if attempt.nomination == Nomination::Reading => {
                NextWrite::End(OrderEnd::Gone)
            }
            Ok((code, _, body)) => judge(&attempt.step, *code, body),
            Err(NoAnswer { error, .. }) => NextWrite::Again(None, error.clone()),
        };
        attempt.tried += 1;
        let is_last = attempt.tried == TRIES;
        let end = match next {
            NextWrite::End(end) => end,
            // Of what these say nothing is done, whatever came of the tries before.
            NextWrite::Again(Some(code @ (429 | 500)), message) if is_last => {
                OrderEnd::Refused { code, message }
            }
            // It has another UID after all.
            NextWrite::Again(Some(409), _) if is_last => OrderEnd::Gone,
            NextWrite::Again(code, problem) => {
                let says = code.map(|code| format!("the API server returned {code}: "));
                let problem = format!("{}{problem}", says.unwrap_or_default());
                if !is_last {
                    self.due.insert((own_ms.saturating_add(attempt.pause_ms), number));
                    attempt.pause_ms = PAUSES_MS.1.min(2 * attempt.pause_ms);
                    attempt.nomination = Nomination::first(&attempt.step);
                    return Some(Settled::GoesOn(Some((attempt.step.clone(), problem))));
                }
                OrderEnd::Unanswered { problem }
            }
        };
        let WriteAttempt { order, step, .. } = self.open.remove(&number)?;
        Some(Settled::Over { order, step, end })
    }

    /// Takes back the write of an order that was not sent, not even once.
    pub(super) fn take_back(&mut self, order: u64) -> Option<OrderWrite> {
        let is_unsent = |attempt: &WriteAttempt| attempt.order == order && attempt.tried == 0;
        let is_it = |(_, number): &&(u64, u64)| self.open.get(number).is_some_and(is_unsent);
        let due = *self.due.iter().find(is_it)?;
        self.due.remove(&due);
        self.open.remove(&due.1).map(|attempt| attempt.step)
    }

    /// Nothing of an order is sent or waited for any more.
    pub(super) fn forget(&mut self, order: u64) {
        self.open.retain(|_, attempt| attempt.order != order);
        let open = &self.open;
        self.due.retain(|(_, number)| open.contains_key(number));
    }

    /// Nothing that is not on its way is sent.
    pub(super) fn stop(&mut self) {
        for (_, number) in std::mem::take(&mut self.due) {
            self.open.remove(&number);
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use dovetail_cluster::world::PodKey;

    use super::super::eviction::Leaves;
    use super::*;

    fn answer(answered: Result<(u16, Option<u64>, Bytes), NoAnswer>) -> ApiResponse {
        ApiResponse { number: 0, answered: Some(answered), took_ms: 0, over_ms: 0 }
    }

    #[test]
    fn a_write_is_tried_six_times_with_pauses_that_double() {
        for (code, is_refused) in [(Some(503), false), (Some(429), true), (None, false)] {
            let mut attempts = Attempts::default();
            let pod = PodKey { namespace: "n".into(), name: "p".into(), uid: "u".into() };
            attempts.begin(7, OrderWrite::Leave(pod, Leaves::Deleted), 0);
            let mut sent_ms = Vec::new();
            let end = loop {
                let own_ms = attempts.due_ms().expect("a write");
                let now = Now { wall_ms: 0, own_ms };
                let (number, _) = attempts.next("s", now).expect("a request");
                sent_ms.push(own_ms);
                let lost = NoAnswer { unsent: false, error: "silence".to_owned() };
                let answered = code.map_or(Err(lost), |code| Ok((code, None, Bytes::new())));
                match attempts.answered(number, &answer(answered), own_ms) {
                    Some(Settled::GoesOn(Some(_))) => {}
                    Some(Settled::Over { order: 7, end, .. }) => break end,
                    _ => panic!("an end or another try"),
                }
            };
            assert_eq!(sent_ms, [0, 100, 300, 700, 1_500, 3_100]);
            assert_eq!(matches!(end, OrderEnd::Refused { .. }), is_refused);
            assert_eq!(matches!(end, OrderEnd::Unanswered { .. }), !is_refused);
        }
    }
}
