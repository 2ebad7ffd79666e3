//! Bookings: capacity that somebody asked to have reserved from one time to another.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::{JobId, QueueName, ReservationId};
use crate::job::{Job, PodSet};
use crate::preemption::PreemptionReservation;
use crate::requirement::Requirement;
use crate::too_large::TooLarge;

/// Room of bookings is kept under reservations from this number on, below those of jobs.
const FIRST_OF_BOOKINGS: u32 = 1 << 29;

/// Room for some pods of one shape, from one time to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Booking {
    /// Unique among bookings.
    pub name: String,
    /// Whose jobs may use it; `None` is nobody, as in a drain.
    pub beneficiary: Option<Beneficiary>,
    pub requirement: Arc<Requirement>,
    /// For how many pods.
    pub count: u32,
    /// When the beneficiary may use it first.
    pub from_ms: u64,
    /// When it ends; pods that run by then stay.
    pub to_ms: u64,
    /// An earlier engine admitted it: it is not refused again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub was_admitted: bool,
}

/// Whose jobs may use what is booked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Beneficiary {
    /// All jobs of this queue.
    Queue(QueueName),
    /// Jobs of this name.
    Job(String),
}

impl Beneficiary {
    /// Whether a job may use it. The name of a gang may have a kind before it.
    pub fn is(&self, job: &Job) -> bool {
        match self {
            Self::Queue(queue) => job.queue == *queue,
            Self::Job(name) => {
                let before = job.name.strip_suffix(name.as_str());
                before.is_some_and(|kind| kind.is_empty() || kind.ends_with(' '))
            }
        }
    }
}

impl Booking {
    /// The pods that it has room for, as one gang that nobody submitted.
    pub fn as_job(&self, id: JobId) -> Job {
        let requirement = Arc::clone(&self.requirement);
        let mut job = Job::single(id, &self.name, 0, Arc::clone(&requirement));
        job.pod_sets = vec![PodSet::fixed("main", requirement, self.count)];
        job
    }

    /// Whether both are about the same room at the same time for the same jobs.
    pub fn asks_as(&self, other: &Self) -> bool {
        let asked = |booking: &Self| Self { was_admitted: false, ..booking.clone() };
        asked(self) == asked(other)
    }

    /// Whether both are in force at some time.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.from_ms < other.to_ms && other.from_ms < self.to_ms
    }
}

/// What became of a booking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BookingVerdict {
    /// Nothing was decided yet.
    #[default]
    Requested,
    /// There is room for it, and its time has not come.
    Admitted,
    /// There is no room for it at its time.
    Refused {
        /// The earliest later time at which there would be; `None` if no known end makes room.
        earliest_ms: Option<u64>,
        /// What no node had enough of for one of its pods, if that was so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        too_large: Option<TooLarge>,
    },
    /// Its beneficiary may use it.
    Active,
    /// Its time is over.
    Ended,
}

impl BookingVerdict {
    /// Whether room is reserved.
    pub fn is_in_force(self) -> bool {
        matches!(self, Self::Admitted | Self::Active)
    }
}

/// A booking with what was decided about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Booked {
    pub booking: Booking,
    pub verdict: BookingVerdict,
    /// Its places, and whose room it counts on: of pods that are expected to end before its time,
    /// that were lent it until then, or that run in it. `until_ms` is its time; the job is none.
    pub claim: PreemptionReservation,
    /// When the places were chosen.
    pub since_ms: u64,
}

impl Booked {
    /// What is to be booked; `number` is unique among bookings.
    pub fn requested(booking: Booking, number: u32) -> Self {
        let reservation = ReservationId(FIRST_OF_BOOKINGS + number);
        let claim = PreemptionReservation {
            job: JobId((1 << 63) | u64::from(reservation.0)),
            reservation,
            places: Vec::new(),
            awaited: Vec::new(),
            until_ms: booking.from_ms,
            is_reclaimed: false,
        };
        Self { booking, verdict: BookingVerdict::Requested, claim, since_ms: 0 }
    }

    /// Its number among bookings.
    pub fn number(&self) -> u32 {
        self.claim.reservation.0 - FIRST_OF_BOOKINGS
    }

    /// Places that it should have and has not, because nodes are gone.
    pub fn missing(&self) -> u32 {
        self.booking.count.saturating_sub(self.claim.places.len() as u32)
    }
}
