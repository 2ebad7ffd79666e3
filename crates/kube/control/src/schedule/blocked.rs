//! What keeps a job pending that no node takes, although there is capacity for it: disruption
//! budgets of pods that would make room for it, and Reservations of free GPUs.

use std::collections::BTreeSet;

use dovetail_cluster::queues::shown_name;
use dovetail_cluster::world::PodKey;
use dovetail_model::{Booked, BookingVerdict, HoldingId, Job, JobId};
use dovetail_objects::Pod;
use dovetail_units::time::time;

use super::exempt::{fits_without, named};
use super::news::News;
use super::questions::Questions;
use crate::status::{UNSCHEDULABLE, WAITING_FOR_QUOTA, with_sentence};

/// Operations that a search for the message of a pod may take: decisions wait for it. A question
/// may take as many as all searches of a cycle.
const MOST_OPERATIONS: u64 = 100_000;

/// Free capacity that a Reservation holds.
struct HeldCapacity {
    reservation: String,
    to_ms: u64,
    holdings: Vec<HoldingId>,
}

impl Questions<'_> {
    /// The message of a pending job, with the disruption budgets that keep pods from being evicted
    /// for it. What its pods write names them where no node takes it, and they are news then; an
    /// answer to a question names them also where its queue has no quota left.
    pub(crate) fn with_budgets(&mut self, job: JobId, (word, message): (&str, &str)) -> String {
        let only_asks = self.explained.only_asks;
        let needs_room = word == UNSCHEDULABLE || only_asks && word == WAITING_FOR_QUOTA;
        let blocked = needs_room.then(|| self.blocked_by_budgets(job)).flatten();
        let Some(text) = blocked else { return message.to_owned() };
        let message = with_sentence(message, &text);
        if !only_asks {
            let pods = self.known.world.pods().pending_pods(job);
            let first = pods.first().map(|pod| PodKey::of(pod));
            self.known.news.extend(first.map(|pod| News::PreemptionBlocked { pod, text }));
        }
        message
    }

    /// The disruption budgets without which pods would be evicted for a job, with these pods and
    /// their queues; nothing if the job would not start then either, or that is not found out.
    fn blocked_by_budgets(&mut self, job: JobId) -> Option<String> {
        let most = self.known.config.preemption.max_operations;
        let is_alone = self.explained.only_asks;
        let max_operations = if is_alone { most } else { most.min(MOST_OPERATIONS) };
        let blocking = self.known.engine_mut()?.ask().blocking_budgets(job, max_operations)?;
        let world = &self.known.world;
        let budgets = blocking.budgets.iter().filter_map(|name| world.preemption().budget(name));
        let budgets: Vec<String> = budgets.collect();
        let engine = self.known.engine()?;
        let victims = || blocking.victims.iter();
        let queues: BTreeSet<String> = victims()
            .filter_map(|pod| engine.job(pod.job))
            .map(|job| shown_name(&job.queue).to_owned())
            .collect();
        let pods: Vec<&Pod> = victims().filter_map(|pod| world.pods().pod_of(*pod)).collect();
        let queues: Vec<String> = queues.into_iter().collect();
        let verb = if budgets.len() == 1 { "does" } else { "do" };
        (!budgets.is_empty() && !pods.is_empty()).then(|| {
            format!(
                "It would start if pods of {} were evicted, which {} {verb} not allow now: {}.",
                listed("queue", &queues),
                listed("PodDisruptionBudget", &budgets),
                named(pods.into_iter())
            )
        })
    }

    /// The Reservations that hold the free capacity in which a job would start, and until when.
    pub(super) fn blocking_reservations(&mut self, waiting: &Job) -> Option<String> {
        let engine = self.known.engine_mut()?;
        let is_its_own = |booked: &Booked| {
            let of = booked.booking.beneficiary.as_ref();
            booked.verdict == BookingVerdict::Active && of.is_some_and(|of| of.is(waiting))
        };
        let in_force = engine.list().bookings().filter(|booked| booked.verdict.is_in_force());
        let held = in_force.filter(|booked| !is_its_own(booked)).map(|booked| HeldCapacity {
            reservation: booked.booking.name.clone(),
            to_ms: booked.booking.to_ms,
            holdings: engine.state().holdings.kept_by(booked.claim.reservation),
        });
        let held: Vec<HeldCapacity> = held.filter(|one| !one.holdings.is_empty()).collect();
        let mut fits = |held: &[&HeldCapacity]| {
            let holdings = held.iter().flat_map(|one| &one.holdings).copied().collect();
            fits_without(engine, waiting, holdings)
        };
        let all: Vec<&HeldCapacity> = held.iter().collect();
        if all.is_empty() || fits(&[]) || !fits(&all) {
            return None;
        }
        let one = all.iter().find(|one| fits(&[**one])).map(|one| vec![*one]);
        let told = one.unwrap_or(all);
        let until_ms = told.iter().map(|one| one.to_ms).max()?;
        let names: Vec<String> = told.iter().map(|one| one.reservation.clone()).collect();
        Some(format!(
            "{} {} the free capacity in which it would start, until {}.",
            listed("Reservation", &names),
            if names.len() == 1 { "reserves" } else { "reserve" },
            time(until_ms)
        ))
    }
}

/// Names behind their kind.
fn listed(kind: &str, names: &[String]) -> String {
    match names {
        [one] => format!("{kind} {one}"),
        [before @ .., last] => format!("{kind}s {} and {last}", before.join(", ")),
        [] => format!("{kind}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::listed;

    #[test]
    fn names_are_listed_behind_their_kind() {
        let names: Vec<String> = ["a", "b", "c"].map(str::to_owned).into();
        assert_eq!(listed("queue", &names[..1]), "queue a");
        assert_eq!(listed("queue", &names[..2]), "queues a and b");
        assert_eq!(listed("queue", &names), "queues a, b and c");
    }
}
