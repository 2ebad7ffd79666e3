//! The book of statuses that are no pod's: no client, no clock.
//!
//! What an object is to say changes with every decision. It is written when it has changed, but at
//! most once in some seconds, and never again while the object says it.

use std::collections::BTreeMap;

use serde_json::Value;

use super::announcements::TROUBLE_MS;
use super::due::Due;
use super::{StatusOf, StatusWrite, WriteOutcome};
use crate::pause::{ServerPause, doubled};

/// A status is written at most so often.
const CHANGE_MS: u64 = 5_000;
/// After so long it is checked whether an object still says what it should.
const LOOK_MS: u64 = 600_000;
/// An object that changed is checked again after so long.
const CHANGED_MS: u64 = 1_000;
/// First and longest pause of an object whose status the server refuses.
const REFUSED_MS: (u64, u64) = (10_000, 600_000);

/// An object as the watch shows it, beside what it is to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchedStatus {
    Gone,
    /// It says what it should.
    Says,
    /// This patch would make it say so.
    Differs(Value),
}

/// What objects are to say.
#[derive(Debug, Default)]
pub struct Statuses {
    entries: BTreeMap<StatusOf, StatusEntry>,
    due: Due<StatusOf>,
    server: ServerPause,
}

#[derive(Debug)]
struct StatusEntry {
    wanted: Value,
    due_ms: Option<u64>,
    written_ms: Option<u64>,
    refusals: u32,
    /// One write at a time.
    is_on_its_way: bool,
}

impl Statuses {
    /// What an object is to say from now on. Each time it is checked whether it does: it may be
    /// another of its name by now.
    pub fn wants(&mut self, of: StatusOf, wanted: Value, now_ms: u64) {
        let due_ms = match self.entries.get_mut(&of) {
            Some(entry) => {
                let is_known = entry.wanted == wanted;
                entry.wanted = wanted;
                // A server that refused it is not asked again for that.
                if entry.is_on_its_way || is_known && entry.refusals > 0 {
                    // Its outcome says when the next one is due.
                    return;
                }
                let due_ms = entry.written_ms.map_or(now_ms, |at_ms| now_ms.max(at_ms + CHANGE_MS));
                entry.due_ms.filter(|_| is_known).map_or(due_ms, |known_ms| known_ms.min(due_ms))
            }
            None => {
                let entry = StatusEntry {
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
        look: impl Fn(&StatusOf, &Value) -> WatchedStatus,
    ) -> Option<StatusWrite> {
        if now_ms < self.server.until_ms() {
            return None;
        }
        loop {
            let of = self.due.first(now_ms)?;
            let entry = self.entries.get_mut(&of)?;
            self.due.clear(&mut entry.due_ms, &of);
            match look(&of, &entry.wanted) {
                WatchedStatus::Gone => drop(self.entries.remove(&of)),
                WatchedStatus::Says => self.set_due(&of, now_ms + LOOK_MS),
                WatchedStatus::Differs(patch) => {
                    entry.is_on_its_way = true;
                    return Some(StatusWrite { of, patch });
                }
            }
        }
    }

    /// What became of a write.
    pub fn outcome(&mut self, of: &StatusOf, written: &WriteOutcome, now_ms: u64) {
        match written {
            WriteOutcome::Troubled { retry_after_ms } => {
                self.server.begin(TROUBLE_MS, now_ms, *retry_after_ms);
            }
            WriteOutcome::NotLeading => return *self = Self::default(),
            WriteOutcome::Done | WriteOutcome::Changed | WriteOutcome::Refused { .. } => {
                self.server.answers()
            }
        }
        let until_ms = self.server.until_ms();
        let Some(entry) = self.entries.get_mut(of) else { return };
        entry.is_on_its_way = false;
        let due_ms = match written {
            WriteOutcome::Done => {
                (entry.written_ms, entry.refusals) = (Some(now_ms), 0);
                // It is checked again: what it is to say may have changed meanwhile.
                now_ms + CHANGE_MS
            }
            WriteOutcome::Changed => now_ms + CHANGED_MS,
            WriteOutcome::Refused { .. } => {
                entry.refusals += 1;
                now_ms + doubled(REFUSED_MS, entry.refusals - 1)
            }
            WriteOutcome::Troubled { .. } | WriteOutcome::NotLeading => until_ms,
        };
        self.set_due(of, due_ms);
    }

    /// When to ask for the next write.
    pub fn due_ms(&self) -> Option<u64> {
        self.due.first_ms().map(|due_ms| due_ms.max(self.server.until_ms()))
    }

    fn set_due(&mut self, of: &StatusOf, due_ms: u64) {
        if let Some(entry) = self.entries.get_mut(of) {
            self.due.set(&mut entry.due_ms, of, due_ms);
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
                true => WatchedStatus::Says,
                false => WatchedStatus::Differs(wanted.clone()),
            };
            if let Some(write) = book.next(now_ms, look) {
                said = write.patch;
                writes += 1;
                book.outcome(&of, &WriteOutcome::Done, now_ms);
            }
        }
        assert_eq!((said, writes), (json!(30_000), 7), "at 0, 5, … and 30 s");
    }

    #[test]
    fn an_object_that_is_made_again_under_its_name_gets_its_status() {
        let mut book = Statuses::default();
        let of = StatusOf::reservation("night");
        let mut said = Value::Null;
        let mut written = Vec::new();
        for now_ms in (0..60_000).step_by(1_000) {
            // It is deleted and made again, without a status, in the middle.
            if now_ms == 30_000 {
                said = Value::Null;
            }
            book.wants(of.clone(), json!("Admitted"), now_ms);
            let look = |_: &StatusOf, wanted: &Value| match *wanted == said {
                true => WatchedStatus::Says,
                false => WatchedStatus::Differs(wanted.clone()),
            };
            if let Some(write) = book.next(now_ms, look) {
                said = write.patch;
                written.push(now_ms);
                book.outcome(&of, &WriteOutcome::Done, now_ms);
            }
        }
        assert_eq!(written, [0, 30_000]);
    }

    #[test]
    fn what_is_refused_or_gone_is_not_tried_for_ever() {
        let mut book = Statuses::default();
        let of = StatusOf::group("blue", "train");
        let mut tries = 0;
        for now_ms in 0..100_000 {
            book.wants(of.clone(), json!(1), now_ms);
            let look = |_: &StatusOf, wanted: &Value| WatchedStatus::Differs(wanted.clone());
            if book.next(now_ms, look).is_some() {
                tries += 1;
                let refused = WriteOutcome::Refused { code: 403, message: String::new() };
                book.outcome(&of, &refused, now_ms);
            }
        }
        assert_eq!(tries, 4, "at 0, 10, 30 and 70 s");
        assert_eq!(book.next(1_000_000, |_, _| WatchedStatus::Gone), None);
        assert_eq!(book.due_ms(), None);
    }
}
