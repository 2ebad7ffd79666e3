//! What happens to a scheduler, and how much it may write now.

use dovetail_cluster::world::Change;
use serde::{Deserialize, Serialize};

use crate::request::ApiResponse;

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
    /// The objects changed, or a list of one kind begins or ends; with the JSON of what is read of
    /// the object, where that is recorded.
    Change(Change, Option<Box<str>>),
    /// What came of a request.
    Answered(ApiResponse),
    /// Nodes are chosen by the policy of this name from now on.
    ChooseBy { policy: String },
    /// Time has passed.
    Tick,
}

/// How many requests of each class may begin now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Credits {
    pub binds: usize,
    /// Orders about pods.
    pub orders: usize,
    /// Orders about claims, which may be many: others are not to wait for them.
    pub claims: usize,
    /// Conditions, events and statuses.
    pub announcements: usize,
}
