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

impl State {
    /// Opens a transaction that shows the view; roll it back to return, or commit to make it true.
    pub fn open_view(&mut self, view: &View, now_ms: u64) -> Mark {
        let gone: Vec<HoldingId> = match view {
            View::Now => Vec::new(),
            View::AfterReleasing => self.holdings.leaving(now_ms).collect(),
            // What is late with its end may stay for as long as it likes.
            View::At { time_ms } => self
                .holdings
                .ending_by(*time_ms)
                .filter(|id| {
                    let end_ms = self.holdings.get(*id).phase.expected_end_ms();
                    end_ms.is_some_and(|end_ms| end_ms > now_ms)
                })
                .collect(),
            View::Without(victims) => {
                let known: BTreeSet<HoldingId> = victims.iter().copied().collect();
                known.into_iter().filter(|id| self.holdings.contains(*id)).collect()
            }
            View::Holding(reservation) => self.holdings.kept_by(*reservation),
        };
        let mark = self.begin();
        for id in gone {
            self.release(id);
        }
        mark
    }
}
