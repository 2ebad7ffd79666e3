//! What an unschedulable job says: that it starts when terminating pods have gone, that the room is
//! reserved for others, or that new nodes would help.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use dovetail_model::{Job, JobId, PendingReason};
use dovetail_plan::{Engine, View};

use super::exempt::ExemptVictims;
use super::questions::Questions;
use crate::status::{self, WaitingReason};

/// Jobs before one of which it is tried what they will take. Beyond that one may be promised what
/// another gets.
const MOST_BEFORE: usize = 256;

/// Jobs that were promised to start when the pods have gone that are terminating.
#[derive(Debug, Default)]
pub(super) struct Promises(BTreeSet<JobId>);

impl Promises {
    /// Whether no job was promised that.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a job has its place when those have gone: one that those before it, which were
    /// promised so, do not take.
    fn hold(&mut self, engine: &mut Engine, job: &Job) -> bool {
        let waits = |job: JobId| engine.job(job).filter(|job| job.start_ms.is_none());
        self.0.retain(|other| *other != job.id && waits(*other).is_some());
        let alone = engine.ask().what_if_job(job, &View::AfterReleasing);
        if !alone.is_ok_and(|places| places.is_some()) {
            return false;
        }
        // As those that wait are tried, their queues aside.
        let place = |job: &Job| (Reverse(job.priority), job.id);
        let told = self.0.iter().filter_map(|other| engine.job(*other)).map(place);
        let mut before: Vec<_> = told.filter(|other| *other < place(job)).collect();
        before.sort_unstable();
        let mut turns: Vec<JobId> =
            before.into_iter().map(|(_, job)| job).take(MOST_BEFORE).collect();
        turns.push(job.id);
        let is_kept = engine.ask().would_start_in_turn(&turns).contains(&job.id);
        if is_kept {
            self.0.insert(job.id);
        }
        is_kept
    }
}

impl Questions<'_> {
    /// What a job says that no node takes now; `None` if it does not wait.
    pub(super) fn no_room(&mut self, job: JobId) -> Option<WaitingReason> {
        let nodes = self.known.world.nodes().names();
        let engine = self.known.engine_mut()?;
        let waiting = engine.job(job).filter(|job| job.start_ms.is_none())?.clone();
        if self.explained.promises.hold(engine, &waiting) {
            return Some(WaitingReason::for_those_that_end());
        }
        if let Some(gang) = self.reserved_for(&waiting) {
            return Some(WaitingReason::for_reservation(&gang));
        }
        let (world, engine) = self.known.both();
        let reason = PendingReason::Unschedulable;
        let mut says = status::waiting(engine?, job, reason, &nodes, world.rules(), |_| true)?;
        if let Some(reserved) = self.blocking_reservations(&waiting) {
            says.message = status::with_sentence(&says.message, &reserved);
        }
        let mut victims = ExemptVictims { known: self.known, exemptions: self.exemptions };
        if let Some(exempt) = victims.described(job) {
            says.message = format!("{} {exempt}", says.message);
        }
        Some(says)
    }

    /// The gang, as it is shown, for whose lost members the room is reserved in which a job would
    /// start.
    fn reserved_for(&mut self, job: &Job) -> Option<String> {
        let rooms: Vec<(String, String)> = self.known.world.gangs().reservations().collect();
        let engine = self.known.engine_mut()?;
        let mut fits_without = |gang: Option<&str>| {
            let of_gang = rooms.iter().filter(|(_, of)| gang.is_none_or(|gang| of == gang));
            let names: Vec<String> = of_gang.map(|(name, _)| name.clone()).collect();
            !names.is_empty() && engine.ask().would_fit_without(job, names).unwrap_or(false)
        };
        if !fits_without(None) {
            return None;
        }
        let gangs: BTreeSet<&str> = rooms.iter().map(|(_, gang)| &**gang).collect();
        let enough = gangs.into_iter().find(|gang| fits_without(Some(gang)));
        Some(enough.unwrap_or("several gangs").to_owned())
    }
}
