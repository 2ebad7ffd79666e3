//! The conditions of pods: why no node takes one, in the words of kube-scheduler, and what pods
//! wait for.

mod apart;
mod away;
mod group;
mod near;
mod obstacles;
mod reason;
mod waiting;

pub(crate) use away::away_from_its_gang;
pub use group::{group_is_left_untouched, group_is_scheduled, group_patch, group_waits};
pub use obstacles::{Obstacle, obstacles};
pub use reason::{none_is_available, plugin, reason};
pub(crate) use waiting::with_sentence;
pub use waiting::{
    COULD_NOT_START, RESERVED_FOR_LOST, Reason, UNSCHEDULABLE, WAITING_FOR_DEVICES,
    WAITING_FOR_QUOTA, WAITING_FOR_RESERVATION, WAITING_FOR_VOLUMES, WaitingReason, is_own_word,
    waiting,
};
