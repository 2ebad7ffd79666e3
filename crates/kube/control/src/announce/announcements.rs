//! The book of what is announced: no client, no clock.

use std::collections::{BTreeMap, VecDeque};

use dovetail_cluster::world::PodKey;
use dovetail_objects::harmless;
use dovetail_translate::NotYet;

use super::due::Due;
use super::written::{WriteOutcome, WriteResult};
use super::{AnnouncedWrite, Note, PodCondition};
use crate::pause::{ServerPause, doubled};
use crate::status::{Reason, WaitingReason, is_own_word};

/// The message of a condition is changed at most so often, its reason more often.
const CHANGE_MS: u64 = 10_000;
const NEW_REASON_MS: u64 = 1_000;
/// A waiting event with another text but the same word comes at most so often.
const REPEAT_MS: u64 = 300_000;
/// After so long it is checked whether a pod is still pending and its condition is still right.
const LOOK_MS: u64 = 600_000;
/// A pod that changed is checked again after so long.
const CHANGED_MS: u64 = 1_000;
/// First and longest pause of all writes when the server is in trouble; each failure doubles it.
pub(super) const TROUBLE_MS: (u64, u64) = (200, 30_000);
/// An event is tried so often.
const TRIES: u32 = 6;

/// How much may be owed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Events that wait to be written; what comes beyond is given up.
    pub events: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { events: 131_072 }
    }
}

/// A waiting pod as the watch shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchedPod<'a> {
    pub resource_version: &'a str,
    /// Reason and message of its condition `PodScheduled`, if that is false.
    pub says: Option<(&'a str, &'a str)>,
}

/// What waiting pods are to say, and the events that are owed.
#[derive(Debug, Default)]
pub struct Announcements {
    limits: Limits,
    pods: BTreeMap<PodKey, AnnouncedPod>,
    /// When a pod is to be checked.
    due: Due<PodKey>,
    events: VecDeque<(Box<Note>, u32)>,
    given_up: u64,
    server: ServerPause,
    /// Conditions and events take turns.
    is_turn_of_events: bool,
}

#[derive(Debug)]
struct AnnouncedPod {
    waiting: WaitingReason,
    since_ms: u64,
    due_ms: Option<u64>,
    written_ms: Option<u64>,
    /// The last event about its waiting: its word, and when.
    told: Option<(&'static str, u64)>,
    refusals: u32,
    /// A write about it is on its way: one at a time.
    is_on_its_way: bool,
    /// A write that was not answered, or is not this book's: what its object says may be this.
    in_doubt: Option<WaitingReason>,
    /// When it got its node, if a write about it was on its way then.
    bound_ms: Option<u64>,
}

impl AnnouncedPod {
    fn new(waiting: WaitingReason, since_ms: u64) -> Self {
        Self {
            waiting,
            since_ms,
            due_ms: None,
            written_ms: None,
            told: None,
            refusals: 0,
            is_on_its_way: false,
            in_doubt: None,
            bound_ms: None,
        }
    }

    /// The event about what its object says, unless that was announced.
    fn event(&mut self, pod: &PodKey, says: &WaitingReason, now_ms: u64) -> Option<Note> {
        self.in_doubt = None;
        let word = says.word();
        let is_told = |(told, at_ms): (&str, u64)| told == word && now_ms < at_ms + REPEAT_MS;
        if self.told.is_some_and(is_told) {
            return None;
        }
        // A pod that could not start is tried again: that it waits for volumes again is no news.
        let is_retry = matches!(says.reason, Reason::Volumes | Reason::Devices);
        if is_retry && self.told.is_some_and(|(_, at_ms)| now_ms < at_ms + REPEAT_MS) {
            return None;
        }
        self.told = Some((word, now_ms));
        Some(Note::waits(pod.clone(), says, now_ms))
    }
}

impl Announcements {
    /// An empty book.
    pub fn new(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// A pod waits, and is to say so if it does not.
    pub fn waits(&mut self, pod: PodKey, waiting: WaitingReason, now_ms: u64) {
        let due_ms = match self.pods.get_mut(&pod) {
            // Its time is set, or its write is on its way.
            Some(entry) if entry.waiting == waiting => return,
            Some(entry) => {
                let before = std::mem::replace(&mut entry.waiting, waiting);
                if entry.is_on_its_way {
                    // The outcome of that write says when the next one is due.
                    return;
                }
                let is_same = before.reason == entry.waiting.reason;
                let pause_ms = if is_same { CHANGE_MS } else { NEW_REASON_MS };
                entry.written_ms.map_or(now_ms, |at_ms| now_ms.max(at_ms + pause_ms))
            }
            None => {
                self.pods.insert(pod.clone(), AnnouncedPod::new(waiting, now_ms));
                now_ms
            }
        };
        self.set_due(&pod, due_ms);
    }

    /// A pod is pending, and another write of ours sets its condition: in a moment it is checked
    /// whether it has.
    pub fn expect(&mut self, pod: PodKey, waiting: WaitingReason, now_ms: u64) {
        let new = || AnnouncedPod::new(waiting.clone(), now_ms);
        let entry = self.pods.entry(pod.clone()).or_insert_with(new);
        entry.waiting = waiting.clone();
        entry.in_doubt = Some(waiting);
        if !entry.is_on_its_way {
            self.set_due(&pod, now_ms + CHANGED_MS);
        }
    }

    /// A pod is left untouched: an event says so unless its owner wants it so or an event gave the
    /// cause lately (`is_repeat`), and its condition does if it says something of ours that is out
    /// of date.
    pub fn is_left_untouched(&mut self, pod: PodKey, why: &NotYet, is_repeat: bool, now_ms: u64) {
        let waiting = WaitingReason::left_untouched(why);
        if waiting.only_corrects() && !why.is_held_back() && !is_repeat {
            self.note(Note::left_untouched(pod.clone(), &waiting.message, now_ms));
        }
        let told = waiting.only_corrects().then(|| waiting.word());
        self.waits(pod.clone(), waiting, now_ms);
        if let Some((entry, word)) = self.pods.get_mut(&pod).zip(told) {
            entry.told = Some((word, now_ms));
        }
    }

    /// A pod was given a node.
    pub fn bound(&mut self, pod: PodKey, node: &str, decision: &str, now_ms: u64) {
        match self.pods.get_mut(&pod).filter(|entry| entry.is_on_its_way) {
            // Its condition by then is announced when the answer comes.
            Some(entry) => entry.bound_ms = Some(now_ms),
            None => self.forget(&pod),
        }
        self.note(Note::scheduled(pod, node, decision, now_ms));
    }

    /// An event is to be written.
    pub fn note(&mut self, note: Note) {
        if self.events.len() >= self.limits.events {
            self.given_up += 1;
            return;
        }
        self.events.push_back((Box::new(note), 0));
    }

    /// The next write, if one may be begun now. `look` gives a pod that still waits as it is.
    pub fn next<'a>(
        &mut self,
        now_ms: u64,
        look: impl Fn(&PodKey) -> Option<WatchedPod<'a>>,
    ) -> Option<AnnouncedWrite> {
        if now_ms < self.server.until_ms() {
            return None;
        }
        self.is_turn_of_events = !self.is_turn_of_events;
        if self.is_turn_of_events {
            return self.next_event().or_else(|| self.next_condition(now_ms, look));
        }
        self.next_condition(now_ms, look).or_else(|| self.next_event())
    }

    /// What became of a write.
    pub fn outcome(&mut self, report: WriteResult, now_ms: u64) {
        match &report.written {
            WriteOutcome::Troubled { retry_after_ms } => {
                self.server.begin(TROUBLE_MS, now_ms, *retry_after_ms);
            }
            WriteOutcome::NotLeading => return *self = Self::new(self.limits),
            WriteOutcome::Done | WriteOutcome::Changed | WriteOutcome::Refused { .. } => {
                self.server.answers()
            }
        }
        match report.write {
            AnnouncedWrite::Event(note, tries) => {
                let is_open = matches!(report.written, WriteOutcome::Troubled { .. });
                match is_open && tries + 1 < TRIES {
                    true => self.events.push_front((note, tries + 1)),
                    false => self.given_up += u64::from(report.written != WriteOutcome::Done),
                }
            }
            // Another book's.
            AnnouncedWrite::Status(_) => {}
            AnnouncedWrite::Condition(condition) => {
                self.condition_outcome(&condition, &report.written, now_ms);
            }
        }
    }

    /// When to ask for the next write.
    pub fn due_ms(&self) -> Option<u64> {
        let event_ms = (!self.events.is_empty()).then_some(0);
        let pod_ms = self.due.first_ms();
        event_ms.into_iter().chain(pod_ms).min().map(|due_ms| due_ms.max(self.server.until_ms()))
    }

    /// Events that wait to be written.
    pub fn events(&self) -> usize {
        self.events.len()
    }

    /// Events that were given up because too many waited or because the server did not take them,
    /// since the last call.
    pub fn given_up(&mut self) -> u64 {
        std::mem::take(&mut self.given_up)
    }

    fn next_event(&mut self) -> Option<AnnouncedWrite> {
        let (note, tries) = self.events.pop_front()?;
        Some(AnnouncedWrite::Event(note, tries))
    }

    fn next_condition<'a>(
        &mut self,
        now_ms: u64,
        look: impl Fn(&PodKey) -> Option<WatchedPod<'a>>,
    ) -> Option<AnnouncedWrite> {
        loop {
            let pod = self.due.first(now_ms)?;
            let entry = self.pods.get_mut(&pod)?;
            self.due.clear(&mut entry.due_ms, &pod);
            let Some(seen) = look(&pod) else {
                self.forget(&pod);
                continue;
            };
            let says_ours = seen.says.is_some_and(|(word, _)| is_own_word(word));
            if entry.waiting.only_corrects() && !says_ours {
                self.forget(&pod);
                continue;
            }
            if seen.says == Some((entry.waiting.word(), &*harmless(&entry.waiting.message))) {
                // The condition of another writer is announced already, but not ours whose answer
                // was lost.
                let waiting = entry.waiting.clone();
                let is_ours = entry.in_doubt.take().is_some_and(|unsure| unsure == waiting);
                let event = is_ours.then(|| entry.event(&pod, &waiting, now_ms)).flatten();
                entry.told.get_or_insert((waiting.word(), now_ms));
                self.set_due(&pod, now_ms + LOOK_MS);
                if let Some(note) = event {
                    self.note(note);
                }
                continue;
            }
            entry.is_on_its_way = true;
            return Some(AnnouncedWrite::Condition(Box::new(PodCondition {
                pod,
                resource_version: seen.resource_version.to_owned(),
                waiting: entry.waiting.clone(),
                since_ms: seen.says.is_none().then_some(entry.since_ms),
            })));
        }
    }

    fn condition_outcome(&mut self, condition: &PodCondition, written: &WriteOutcome, now_ms: u64) {
        let pod = &condition.pod;
        let Some(entry) = self.pods.get_mut(pod) else { return };
        entry.is_on_its_way = false;
        if let Some(bound_ms) = entry.bound_ms {
            let is_said = *written == WriteOutcome::Done;
            let event = is_said.then(|| entry.event(pod, &condition.waiting, bound_ms)).flatten();
            self.forget(pod);
            event.into_iter().for_each(|note| self.note(note));
            return;
        }
        let due_ms = match written {
            WriteOutcome::Done => {
                entry.written_ms = Some(now_ms);
                entry.refusals = 0;
                let is_current = entry.waiting == condition.waiting;
                if let Some(note) = entry.event(pod, &condition.waiting, now_ms) {
                    self.note(note);
                }
                now_ms + if is_current { LOOK_MS } else { NEW_REASON_MS }
            }
            WriteOutcome::Changed => now_ms + CHANGED_MS,
            WriteOutcome::Refused { .. } => {
                let pause_ms = doubled((CHANGE_MS, LOOK_MS), entry.refusals);
                entry.refusals += 1;
                now_ms + pause_ms
            }
            WriteOutcome::Troubled { .. } => {
                entry.in_doubt = Some(condition.waiting.clone());
                self.server.until_ms()
            }
            WriteOutcome::NotLeading => return,
        };
        self.set_due(pod, due_ms);
    }

    fn set_due(&mut self, pod: &PodKey, due_ms: u64) {
        if let Some(entry) = self.pods.get_mut(pod) {
            self.due.set(&mut entry.due_ms, pod, due_ms);
        }
    }

    fn forget(&mut self, pod: &PodKey) {
        if let Some(mut entry) = self.pods.remove(pod) {
            self.due.clear(&mut entry.due_ms, pod);
        }
    }
}
