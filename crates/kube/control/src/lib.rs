//! Live decisions about one cluster, as values: no client, no runtime, no clock, no log.
//!
//! | module | what |
//! |---|---|
//! | [`control`] | the one door: what happened in, what is to be written and told out |
//! | [`schedule`] | the scheduler: changes and outcomes in; binds, orders and news out |
//! | [`ask`] | questions about pods, queues and nodes, and their answers |
//! | [`status`] | what people are told about pods and groups, in words they know |
//! | [`announce`] | which conditions, events and statuses are to be written, and when |
//! | [`bind`] | binds: what an answer to one means, and what follows |
//! | [`order`] | other writes about pods and claims: evictions, nominations, chosen nodes |
//! | [`writes`] | the life of every write: requests out, answers in |
//! | [`request`], [`answer`] | one request to the API server, and its answer |
//! | [`learned`] | what engines learn, kept in a ConfigMap |
//! | [`lead`] | who may write: the lease as a state machine |
//! | [`record`] | everything that happens and is asked for, to be written down |
//! | [`repeats`] | warnings that go on: told once, and again after a while |

pub mod announce;
pub mod answer;
pub mod ask;
mod backoffs;
pub mod bind;
pub mod control;
pub mod lead;
pub mod learned;
pub mod order;
mod pause;
pub mod record;
pub mod repeats;
pub mod request;
pub mod schedule;
pub mod status;
pub mod writes;

pub use control::Control;
