//! The event log: what happened and what was decided, line by line, and its hash.
//!
//! Equal inputs give equal logs. Each line is hashed together with the hash before it (SHA-256), so
//! that two runs can be compared without keeping either, and a paused run goes on where it stopped.

use std::fmt::Write as _;

use dovetail_model::{Action, Event, Place, PodId, PreemptReason};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// A log of which only the hash is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EventLog {
    chain: [u8; 32],
    #[serde(skip)]
    line: String,
}

impl EventLog {
    /// Adds something that happened: its time, what it is, and whom it concerns.
    pub fn happened(&mut self, now_ms: u64, event: &Event) {
        let (what, whom) = described(event);
        self.line.clear();
        writeln!(self.line, "{now_ms} {what} {whom}").expect("writing to a string");
        self.chain();
    }

    /// Adds a decision.
    pub fn decided(&mut self, action: &Action) {
        self.line.clear();
        let line = &mut self.line;
        let written = match action {
            Action::Bind { pod, node, devices } => {
                let mut written =
                    write!(line, "bind {}.{}.{} {node}", pod.job.0, pod.pod_set, pod.ordinal);
                for (index, amount) in devices {
                    written = written.and(write!(
                        line,
                        " {index}:{}:{}:{}:{}",
                        amount.compute_milli,
                        amount.memory_bytes,
                        amount.replicas,
                        amount.slice_mask
                    ));
                }
                written
            }
            Action::Preempt { job, victims, places, cost, until_ms, reason } => {
                let mut written = write!(line, "preempt {} until {until_ms} {cost:?}", job.0);
                for pod in victims {
                    let PodId { job, pod_set, ordinal } = pod;
                    written = written.and(write!(line, " -{}.{pod_set}.{ordinal}", job.0));
                }
                for Place { pod, node, .. } in places {
                    written = written.and(write!(line, " +{}.{}@{node}", pod.pod_set, pod.ordinal));
                }
                if *reason != PreemptReason::Priority {
                    written = written.and(write!(line, " for {reason:?}"));
                }
                written
            }
            Action::GivenBack { job } => write!(line, "given back {}", job.0),
            Action::RoomGivenUp { job, name } => write!(line, "room given up {} {name:?}", job.0),
            Action::Wait { job, reason } => write!(line, "wait {} {reason:?}", job.0),
            Action::Lost { job } => write!(line, "lost {}", job.0),
            Action::Publish { version, values } => write!(line, "publish {version} {values:?}"),
        };
        written.expect("writing to a string");
        self.chain();
    }

    /// The hash so far, in hexadecimal.
    pub fn hash(&self) -> String {
        self.chain.iter().fold(String::with_capacity(64), |mut text, byte| {
            write!(text, "{byte:02x}").expect("writing to a string");
            text
        })
    }

    fn chain(&mut self) {
        let mut hasher = Sha256::new();
        hasher.update(self.chain);
        hasher.update(self.line.as_bytes());
        self.chain = hasher.finalize().into();
    }
}

fn described(event: &Event) -> (&'static str, String) {
    match event {
        Event::NodeChanged(node) => ("node_changed", node.name.to_string()),
        Event::NodeCondition { node, condition } => {
            ("node_condition", format!("{node} {condition:?}"))
        }
        Event::NodeRemoved { node } => ("node_removed", node.to_string()),
        Event::QueueChanged(queue) => ("queue_changed", queue.name.clone()),
        Event::QueueRemoved { name } => ("queue_removed", name.clone()),
        Event::Submitted(job) => ("submitted", format!("{} {}", job.id.0, job.name)),
        Event::JobChanged(job) => ("job_changed", format!("{} {}", job.id.0, job.name)),
        Event::Adopted { job, .. } => ("adopted", format!("{} {}", job.id.0, job.name)),
        Event::Confirmed { pod } => ("confirmed", format!("{pod:?}")),
        Event::BindFailed { pod } => ("bind_failed", format!("{pod:?}")),
        Event::PodEnded { pod, .. } => ("pod_ended", format!("{pod:?}")),
        Event::HeldChanged(holding) => ("held_changed", format!("{:?}", holding.owner)),
        Event::Ended { job, .. } => ("ended", job.0.to_string()),
        Event::Ending { job, .. } => ("ending", job.0.to_string()),
        Event::Checkpointed { job, .. } => ("checkpointed", job.0.to_string()),
        Event::ForeignHeld(holding) => ("foreign_held", holding.node.to_string()),
        Event::ForeignReleased { name } => ("foreign_released", name.clone()),
        Event::BookingSet(booking) => ("booking_set", booking.name.clone()),
        Event::BookingRemoved { name } => ("booking_removed", name.clone()),
        Event::ReservationEnded { reservation } => ("reservation_ended", reservation.0.to_string()),
        Event::CountsChanged { owner, .. } => ("counts_changed", format!("{owner:?}")),
        Event::BudgetChanged(budget) => {
            ("budget_changed", format!("{} {}", budget.name, budget.disruptions_allowed))
        }
        Event::BudgetRemoved { name } => ("budget_removed", name.clone()),
        Event::PolicyChanged { name } => ("policy_changed", name.clone()),
        Event::Tick => ("tick", String::new()),
    }
}
