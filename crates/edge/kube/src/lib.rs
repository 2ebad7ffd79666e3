//! Kubernetes objects as the engine's events.
//!
//! | module | what |
//! |---|---|
//! | [`object`] | slim types of what is watched, read leniently |
//! | [`translate`] | one object (and what it refers to) in the words of the engine |
//! | [`world`] | the index: changes of objects in, events out |
//! | [`watch`] | the changes, from a server |
//! | [`status`] | what people are told, in words they know |
//! | [`client`] | connections to the server, one kind for each purpose |
//! | [`bind`] | binds out, and what became of each |
//! | [`announce`] | conditions and events out |
//! | [`lead`] | who may write |
//! | [`schedule`] | all of it together: a scheduler |
//!
//! The first three and [`status`] know neither server nor clock.

pub mod announce;
pub mod bind;
pub mod client;
pub mod lead;
pub mod object;
pub mod schedule;
pub mod status;
pub mod translate;
pub mod watch;
pub mod world;
