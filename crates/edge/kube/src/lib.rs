//! Kubernetes objects as the engine's events.
//!
//! | module | what |
//! |---|---|
//! | [`object`] | slim types of what is watched, read leniently |
//! | [`translate`] | one object (and what it refers to) in the words of the engine |
//! | [`queues`] | queues as people write and read them |
//! | [`world`] | the index: changes of objects in, events out |
//! | [`watch`] | the changes, from a server |
//! | [`status`] | what people are told, in words they know |
//! | [`client`] | connections to the server, one kind for each purpose |
//! | [`bind`] | binds out, and what became of each |
//! | [`announce`] | conditions and events out |
//! | [`lead`] | who may write |
//! | [`schedule`] | all of it together: a scheduler |
//! | [`dump`] | objects from files |
//! | [`facts`] | objects as facts that checks can be run on |
//!
//! The first four, [`status`], [`dump`] and [`facts`] know neither server nor clock; the rest needs the feature
//! `client`.

#[cfg(feature = "client")]
pub mod announce;
#[cfg(feature = "client")]
pub mod bind;
#[cfg(feature = "client")]
pub mod client;
#[cfg(feature = "client")]
pub mod discover;
pub mod dump;
pub mod facts;
#[cfg(feature = "client")]
pub mod lead;
pub mod object;
#[cfg(feature = "client")]
mod pause;
pub mod queues;
#[cfg(feature = "client")]
mod repeats;
#[cfg(feature = "client")]
pub mod schedule;
pub mod status;
pub mod translate;
#[cfg(feature = "client")]
pub mod watch;
pub mod world;
