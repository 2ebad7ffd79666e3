//! Events: everything that can happen to the engine.

use serde::{Deserialize, Serialize};

use crate::booking::Booking;
use crate::history::HowEnded;
use crate::holding::{Holding, Owner};
use crate::ids::{JobId, NodeName, PodId, QueueName, ReservationId};
use crate::job::Job;
use crate::node::{Node, NodeAvailability};
use crate::preemption::Budget;
use crate::queue::Queue;
use crate::selectors::Selectors;

/// Something that happened outside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// A node appeared or any part of it changed; what it holds stays.
    NodeChanged(Box<Node>),
    /// A node's condition changed and nothing else.
    NodeCondition {
        node: NodeName,
        /// Its condition now.
        condition: NodeAvailability,
    },
    /// A node is gone, and with it everything it held: its jobs are over.
    NodeRemoved {
        node: NodeName,
    },
    QueueChanged(Box<Queue>),
    /// A queue is gone: it bounds nothing any more, and those below it hang below the root.
    QueueRemoved {
        name: QueueName,
    },
    Submitted(Box<Job>),
    /// A job that waits is described anew: what its pods need, its priority, its place in the
    /// order.
    JobChanged(Box<Job>),
    /// A job that somebody placed before: an earlier leader, or a user by hand. It runs.
    Adopted {
        /// The job, with the pods it has.
        job: Box<Job>,
        /// What its pods hold, each on a node that is there.
        holdings: Vec<Holding>,
    },
    /// A decision to run a pod took effect.
    Confirmed {
        pod: PodId,
    },
    /// A decision to run a pod could not be carried out: it holds nothing. A job left without any
    /// pod waits again, in the place it had; another runs on without this one.
    BindFailed {
        pod: PodId,
    },
    /// A pod that held something left, finished or failed: it is free. With its last pod a job is
    /// over.
    PodEnded {
        pod: PodId,
        /// How that of its job ended whose last pod it was.
        #[serde(default, skip_serializing_if = "HowEnded::is_completed")]
        how: HowEnded,
    },
    /// A pod of a running job holds something else than before, or on another node, or is ending.
    HeldChanged(Box<Holding>),
    /// A job left, finished, failed or cancelled; everything it held is free. What is to run again
    /// is submitted again under the same identity.
    Ended {
        job: JobId,
        #[serde(default, skip_serializing_if = "HowEnded::is_completed")]
        how: HowEnded,
    },
    /// A job is ending: it holds what it holds until then.
    Ending {
        job: JobId,
        /// When it is expected to be gone; `None` is unknown.
        expected_end_ms: Option<u64>,
    },
    /// Somebody else holds capacity, or no longer holds the same.
    ForeignHeld(Box<Holding>),
    /// Somebody else's capacity is free again.
    ForeignReleased {
        /// Name in [`crate::holding::Owner::Foreign`].
        name: String,
    },
    /// A running job has written a checkpoint.
    Checkpointed {
        job: JobId,
        /// When it was complete.
        at_ms: u64,
    },
    /// Other selectors count something that is already held, by a pod or by somebody else.
    CountsChanged {
        /// Who holds it.
        owner: Owner,
        /// All selectors that count it from now on.
        counts_into: Selectors,
    },
    /// A budget of disruptions appeared, or allows another number.
    BudgetChanged(Budget),
    /// A budget of disruptions is gone.
    BudgetRemoved {
        name: String,
    },
    /// Capacity is to be reserved for a time, or another than before.
    BookingSet(Box<Booking>),
    /// A booking is withdrawn; what is reserved for it is free.
    BookingRemoved {
        name: String,
    },
    /// A reservation is over; what it kept is free.
    ReservationEnded {
        reservation: ReservationId,
    },
    /// Nodes are chosen by another policy from now on.
    PolicyChanged {
        name: String,
    },
    /// Time passed and nothing else.
    Tick,
}

impl Event {
    /// A job did its work, or left for a reason that nobody knows.
    pub fn ended(job: JobId) -> Self {
        Self::Ended { job, how: HowEnded::Completed }
    }

    /// A pod did its work, or left for a reason that nobody knows.
    pub fn pod_ended(pod: PodId) -> Self {
        Self::PodEnded { pod, how: HowEnded::Completed }
    }
}
