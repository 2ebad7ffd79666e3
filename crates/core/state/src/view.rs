//! Views: the cluster as it would be. Each is a set of holdings taken away inside a transaction.

use std::collections::BTreeSet;

use dovetail_model::{HoldingId, ReservationId};

use crate::{Mark, State};

/// The moment or the condition under which a placement is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum View {
    Now,
    /// As it will be when everything that is releasing and not late with it is gone.
    AfterReleasing,
    /// As it is expected to be at a time: every holding expected to end from now until then is
    /// gone.
    At {
        time_ms: u64,
    },
    /// As if these holdings were gone; identities that nothing has are passed over.
    Without(Vec<HoldingId>),
    /// As the holder of a reservation sees it: what is kept for it is free.
    Holding(ReservationId),
}

impl View {
    /// Opens a transaction that shows the view; roll it back to return, or commit to make it true.
    pub fn open(&self, state: &mut State, now_ms: u64) -> Mark {
        let holdings = &state.holdings;
        let gone: Vec<HoldingId> = match self {
            Self::Now => Vec::new(),
            Self::AfterReleasing => holdings.leaving(now_ms).collect(),
            // What is late with its end may stay for as long as it likes.
            Self::At { time_ms } => {
                holdings.ending_between(now_ms, *time_ms).map(|(_, id)| id).collect()
            }
            Self::Without(victims) => {
                let known: BTreeSet<HoldingId> = victims.iter().copied().collect();
                known.into_iter().filter(|id| holdings.contains(*id)).collect()
            }
            Self::Holding(reservation) => holdings.kept_by(*reservation),
        };
        let mark = state.begin();
        for id in gone {
            state.release(id);
        }
        mark
    }
}
