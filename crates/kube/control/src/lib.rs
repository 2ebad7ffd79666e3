//! Live decisions about one cluster, as values: no client, no runtime, no clock, no log.
//!
//! | module | what |
//! |---|---|
//! | [`control`] | the one door: what happened in, what is to be written and told out |
//! | [`schedule`] | the scheduler: changes and outcomes in; binds, orders and news out |
//! | [`status`] | what people are told about pods and groups, in words they know |
//! | [`announce`] | which conditions, events and statuses are to be written, and when |
//! | [`bind`] | binds and orders, and what an answer to each means |
//! | [`answer`] | the answer to one request |
//! | [`lead`] | who may write: the lease as a state machine |
//! | [`repeats`] | warnings that go on: told once, and again after a while |

pub mod announce;
pub mod answer;
pub mod bind;
pub mod control;
pub mod lead;
mod pause;
pub mod repeats;
pub mod schedule;
pub mod status;

pub use control::Control;
