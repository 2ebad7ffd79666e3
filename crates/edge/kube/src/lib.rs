//! Kubernetes objects as the engine's events.
//!
//! | module | what |
//! |---|---|
//! | [`object`] | slim types of what is watched, read leniently |
//! | [`translate`] | one object (and what it refers to) in the words of the engine |
//! | [`world`] | the index: changes of objects in, events out |
//! | [`watch`] | the changes, from a server |
//! | [`status`] | what people are told, in words they know |
//!
//! Only [`watch`] talks to a server; none of them reads a clock.

pub mod object;
pub mod status;
pub mod translate;
pub mod watch;
pub mod world;
