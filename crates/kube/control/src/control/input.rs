//! What happens to a scheduler, and how much it may write now.

use dovetail_cluster::world::Change;

use crate::announce;
use crate::bind::{OrderReport, Report};

/// Something that happened.
#[derive(Debug)]
pub enum Input {
    /// This process leads from now on, in this epoch, and must read everything anew.
    Won {
        /// Counts leaderships; it goes into every bind.
        epoch: u64,
    },
    /// It is to stop, or leads no more: nothing is begun but what is owed to people.
    Stop,
    /// Nothing is on its way any more, and nothing will be: what is known is forgotten.
    End,
    /// The objects changed, or a list of one kind begins or ends.
    Change(Change),
    /// What became of a bind.
    Bound(Report),
    /// What became of an order.
    Ordered(OrderReport),
    /// What became of an announcement.
    Announced(announce::Report),
    /// Time has passed.
    Tick,
}

/// How many writes of each class may be begun now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Credits {
    /// Binds.
    pub binds: usize,
    /// Orders about pods.
    pub orders: usize,
    /// Orders about claims, which may be many: others are not to wait for them.
    pub claims: usize,
    /// Conditions, events and statuses on their way at once, those that are included.
    pub announcements: usize,
    /// Binds on their way: what is announced waits for these.
    pub binds_on_their_way: usize,
}
