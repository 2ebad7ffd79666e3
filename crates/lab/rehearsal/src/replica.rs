//! One process of the scheduler: a candidate for the leadership, and what it decides while it
//! leads.

use std::collections::BTreeMap;

use dovetail_cluster::world::Change;
use dovetail_control::Control;
use dovetail_control::control::{Credits, Input, Settings};
use dovetail_control::lead::{Candidate, ElectionPhase, LeaseTimes};
use dovetail_control::request::{Now, RequestClass};
use dovetail_objects::Kind;

use crate::api::ApiServer;
use crate::sight::Sight;

/// Wall clocks show this at the start, in milliseconds since 1970.
pub(crate) const START_MS: u64 = 1_900_000_000_000;

/// Requests of a class other than binds on their way at once.
const AT_ONCE: usize = 32;

/// The clocks of one machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clocks {
    /// Thousandths of true speed.
    pub(crate) rate: u64,
    pub(crate) offset_ms: u64,
    pub(crate) jumped_ms: i64,
}

impl Clocks {
    pub(crate) fn at(&self, true_ms: u64) -> Now {
        let wall_ms = (START_MS + true_ms).saturating_add_signed(self.jumped_ms);
        Now { wall_ms, own_ms: self.offset_ms + true_ms * self.rate / 1_000 }
    }

    /// For how long in truth it is until a time of its own clock.
    pub(crate) fn until(&self, own_ms: u64, now_ms: u64) -> u64 {
        let left_ms = own_ms.saturating_sub(self.at(now_ms).own_ms);
        (left_ms * 1_000).div_ceil(self.rate)
    }
}

/// One leadership.
#[derive(Debug)]
pub(crate) struct LeaderTerm {
    pub(crate) epoch: u64,
    pub(crate) sights: Vec<Sight>,
    /// Version of the first list of pods.
    pub(crate) pods_listed: Option<u64>,
    pub(crate) decides: bool,
    /// When it was told to stop.
    pub(crate) stopped_ms: Option<u64>,
}

/// One process.
pub(crate) struct Replica {
    pub(crate) identity: String,
    /// Tells messages to it from those to the one that was here before.
    pub(crate) generation: u64,
    pub(crate) candidate: Candidate,
    pub(crate) control: Control,
    pub(crate) term: Option<LeaderTerm>,
    pub(crate) inputs: Vec<Input>,
    /// Requests on their way.
    pub(crate) open: BTreeMap<u64, RequestClass>,
    /// A request about the Lease is on its way; when it was sent, by its own clock.
    pub(crate) asks_since: Option<u64>,
    /// When it is to look at itself next.
    pub(crate) wakes_ms: Option<u64>,
    is_recorded: bool,
}

impl Replica {
    pub(crate) fn new(identity: String, generation: u64, settings: Settings) -> Self {
        Self {
            candidate: Candidate::new(identity.clone(), LeaseTimes::default()),
            identity,
            generation,
            is_recorded: settings.recording.is_some(),
            control: Control::new(settings),
            term: None,
            inputs: Vec::new(),
            open: BTreeMap::new(),
            asks_since: None,
            wakes_ms: None,
        }
    }

    /// Begins to read the world.
    pub(crate) fn begin(&mut self, epoch: u64, server: &ApiServer) {
        self.open.clear();
        self.inputs = vec![Input::Won { epoch }];
        let mut sights = Vec::new();
        for kind in Kind::ALL {
            match server.state.kinds.find(kind.group(), kind.version(), kind.plural()) {
                Some(_) => sights.push(Sight::of(kind, self.is_recorded)),
                None => {
                    self.inputs.push(Input::Change(Change::Absent(kind), None));
                }
            }
        }
        let (pods_listed, decides, stopped_ms) = (None, false, None);
        self.term = Some(LeaderTerm { epoch, sights, pods_listed, decides, stopped_ms });
    }

    /// How many requests of each class it may begin now, of so many binds at once. Who stops says
    /// only what it owes.
    pub(crate) fn credits(&self, binds: usize) -> Credits {
        let Some(term) = self.term.as_ref().filter(|term| term.decides) else {
            return Credits::default();
        };
        let left = |class: RequestClass, most: usize| {
            let open = self.open.values().filter(|open| **open == class).count();
            most.saturating_sub(open)
        };
        let announcements = left(RequestClass::Announcement, AT_ONCE);
        match term.stopped_ms {
            Some(_) => Credits { announcements, ..Credits::default() },
            None => Credits {
                binds: left(RequestClass::Bind, binds),
                orders: left(RequestClass::Order, AT_ONCE),
                claims: left(RequestClass::Claim, AT_ONCE),
                announcements,
            },
        }
    }

    /// The epoch in which it leads, or is about to.
    pub(crate) fn leads_in(&self, own_ms: u64) -> Option<u64> {
        match self.candidate.phase(own_ms) {
            ElectionPhase::Relisting { epoch } | ElectionPhase::Leading { epoch } => Some(epoch),
            ElectionPhase::Following | ElectionPhase::Settling { .. } => None,
        }
    }
}
