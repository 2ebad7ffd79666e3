//! Whose turn it is: among jobs, and among queues. Pure, as the engine is that asks.
//!
//! Priority comes first in every order. Order `dovetail` gives each job a *standing*, a time that
//! is fixed between events: the GPU-time that is best invested in it until it ends, and its
//! submission, which is how pending jobs age at one common rate. The smallest goes first. Where the
//! run time is estimated, the GPU-time is what remains of the estimate; where it is not, or was
//! outlived, it is the inverse Gittins index of its cohort.
//!
//! A job that runs has a standing as well, and where the preset says so, a pending one may take its
//! place: if more jobs are expected to end per time then, and no more work is lost than this is
//! worth.
//!
//! | module | what |
//! |---|---|
//! | [`turns`] | presets and weights |
//! | [`turn_terms`] | what a turn is made of, for whoever asks |
//! | [`book`] | standings of jobs that are pending and run, and when they change |
//! | [`line`] | who waits behind whom, by GPUs |
//! | [`rates`] | whether GPUs are of more use to jobs that wait than to those that hold them |
//! | `requeue` | how long preempted jobs wait until they start again |
//! | `respite` | how long queues that want their quota back leave a job alone |
//! | [`queues`] | what queues are given, hold and have used; whose turn it is among them |
//! | [`estimate`] | how long jobs run, learned from those that ended |

pub mod book;
pub mod estimate;
pub mod line;
mod order;
pub mod queues;
pub mod rates;
mod requeue;
mod respite;
pub mod turn_terms;
pub mod turns;

pub use order::Order;
pub use queues::model_weights::ModelWeights;
pub use turns::{PRESETS, QueueTurns, Turns};
