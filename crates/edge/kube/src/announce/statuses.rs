//! The book of statuses that are no pod's: no client, no clock.
//!
//! What an object is to say changes with every decision. It is written when it has changed, but at most once
//! in some seconds, and never again while the object says it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::announcements::{TROUBLE_MS, doubled};
use super::{StatusOf, StatusWrite, Written};

/// A status is written at most so often.
const CHANGE_MS: u64 = 5_000;
/// After so long it is looked whether an object still says what it should.
const LOOK_MS: u64 = 600_000;
/// An object that changed is looked at again after so long.
const CHANGED_MS: u64 = 1_000;
/// First and longest pause of an object whose status the server refuses.
const REFUSED_MS: (u64, u64) = (10_000, 600_000);

/// An object as the watch shows it, beside what it is to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look {
    /// It is gone.
    Gone,
    /// It says what it should.
    Says,
    /// This patch would make it say so.
    Differs(Value),
}

/// What objects are to say.
#[derive(Debug, Default)]
pub struct Statuses {
    entries: BTreeMap<StatusOf, Entry>,
    due: BTreeSet<(u64, StatusOf)>,
    failures: u32,
    until_ms: u64,
}

#[derive(Debug)]
struct Entry {
    wanted: Value,
    due_ms: Option<u64>,
    written_ms: Option<u64>,
    refusals: u32,
    /// One write at a time.
    is_on_its_way: bool,
}

impl Statuses {
    /// What an object is to say from now on.
    pub fn wants(&mut self, of: StatusOf, wanted: Value, now_ms: u64) {
        let due_ms = match self.entries.get_mut(&of) {
            Some(entry) if entry.wanted == wanted => return,
            Some(entry) => {
                entry.wanted = wanted;
                if entry.is_on_its_way {
                    // Its outcome says when the next one is due.
                    return;
                }
                entry.written_ms.map_or(now_ms, |at_ms| now_ms.max(at_ms + CHANGE_MS))
            }
            None => {
                let entry = Entry {
                    wanted,
                    due_ms: None,
                    written_ms: None,
                    refusals: 0,
                    is_on_its_way: false,
                };
                self.entries.insert(of.clone(), entry);
                now_ms
            }
        };
        self.set_due(&of, due_ms);
    }

    /// The next write, if one may be begun now. `look` compares an object with what it is to say.
    pub fn next(
        &mut self,
        now_ms: u64,
        look: impl Fn(&StatusOf, &Value) -> Look,
    ) -> Option<StatusWrite> {
        if now_ms < self.until_ms {
            return None;
        }
        loop {
            let (_, of) = self.due.first().filter(|(due_ms, _)| *due_ms <= now_ms)?.clone();
            self.clear_due(&of);
            let entry = self.entries.get_mut(&of)?;
            match look(&of, &entry.wanted) {
                Look::Gone => drop(self.entries.remove(&of)),
                Look::Says => self.set_due(&of, now_ms + LOOK_MS),
                Look::Differs(patch) => {
                    entry.is_on_its_way = true;
                    return Some(StatusWrite { of, patch });
                }
            }
        }
    }

    /// What became of a write.
    pub fn outcome(&mut self, of: &StatusOf, written: &Written, now_ms: u64) {
        match written {
            Written::Troubled { retry_after_ms } => self.pause(now_ms, *retry_after_ms),
            Written::NotLeading => return *self = Self::default(),
            Written::Done | Written::Changed | Written::Refused { .. } => self.failures = 0,
        }
        let until_ms = self.until_ms;
        let Some(entry) = self.entries.get_mut(of) else { return };
        entry.is_on_its_way = false;
        let due_ms = match written {
            Written::Done => {
                (entry.written_ms, entry.refusals) = (Some(now_ms), 0);
                // It is looked at again: what it is to say may have changed meanwhile.
                now_ms + CHANGE_MS
            }
            Written::Changed => now_ms + CHANGED_MS,
            Written::Refused { .. } => {
                entry.refusals += 1;
                now_ms + doubled(REFUSED_MS, entry.refusals - 1)
            }
            Written::Troubled { .. } | Written::NotLeading => until_ms,
        };
        self.set_due(of, due_ms);
    }

    /// When to ask for the next write.
    pub fn due_ms(&self) -> Option<u64> {
        self.due.first().map(|(due_ms, _)| (*due_ms).max(self.until_ms))
    }

    /// Writes that were on their way together fail together, which is one failure.
    fn pause(&mut self, now_ms: u64, retry_after_ms: Option<u64>) {
        if now_ms < self.until_ms {
            return;
        }
        let own_ms = doubled(TROUBLE_MS, self.failures);
        self.failures = self.failures.saturating_add(1);
        self.until_ms = now_ms + retry_after_ms.map_or(own_ms, |asked_ms| asked_ms.max(own_ms));
    }

    fn set_due(&mut self, of: &StatusOf, due_ms: u64) {
        self.clear_due(of);
        if let Some(entry) = self.entries.get_mut(of) {
            entry.due_ms = Some(due_ms);
            self.due.insert((due_ms, of.clone()));
        }
    }

    fn clear_due(&mut self, of: &StatusOf) {
        if let Some(due_ms) = self.entries.get_mut(of).and_then(|entry| entry.due_ms.take()) {
            self.due.remove(&(due_ms, of.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_status_is_written_when_it_changes_and_not_more_often_than_it_may() {
        let mut book = Statuses::default();
        let of = StatusOf::queue("team");
        let mut said = Value::Null;
        let mut writes = 0;
        for now_ms in 0..60_000 {
            // Every decision changes it, up to the middle.
            book.wants(of.clone(), json!(now_ms.min(30_000)), now_ms);
            let look = |_: &StatusOf, wanted: &Value| match *wanted == said {
                true => Look::Says,
                false => Look::Differs(wanted.clone()),
            };
            if let Some(write) = book.next(now_ms, look) {
                said = write.patch;
                writes += 1;
                book.outcome(&of, &Written::Done, now_ms);
            }
        }
        assert_eq!((said, writes), (json!(30_000), 7), "at 0, 5, … and 30 s");
    }

    #[test]
    fn what_is_refused_or_gone_is_not_tried_for_ever() {
        let mut book = Statuses::default();
        let of = StatusOf::group("blue", "train");
        book.wants(of.clone(), json!(1), 0);
        let mut tries = 0;
        for now_ms in 0..100_000 {
            let look = |_: &StatusOf, wanted: &Value| Look::Differs(wanted.clone());
            if book.next(now_ms, look).is_some() {
                tries += 1;
                let refused = Written::Refused { code: 403, message: String::new() };
                book.outcome(&of, &refused, now_ms);
            }
        }
        assert_eq!(tries, 4, "at 0, 10, 30 and 70 s");
        assert_eq!(book.next(1_000_000, |_, _| Look::Gone), None);
        assert_eq!(book.due_ms(), None);
    }
}
