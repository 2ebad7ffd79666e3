//! The edge to Kubernetes: the objects that are watched, the decisions that are written.
//!
//! | module | what |
//! |---|---|
//! | [`watch`] | the changes, from a server |
//! | [`status`] | what people are told, in words they know |
//! | [`client`] | connections to the server, one kind for each purpose |
//! | [`bind`] | binds out, and what became of each |
//! | [`announce`] | conditions and events out |
//! | [`lead`] | who may write |
//! | [`schedule`] | all of it together: a scheduler |
//!
//! [`status`] knows neither server nor clock; the rest needs the feature `client`.

#[cfg(feature = "client")]
pub mod announce;
#[cfg(feature = "client")]
pub mod bind;
#[cfg(feature = "client")]
pub mod client;
#[cfg(feature = "client")]
pub mod discover;
#[cfg(feature = "client")]
pub mod lead;
#[cfg(feature = "client")]
mod pause;
#[cfg(feature = "client")]
mod repeats;
#[cfg(feature = "client")]
pub mod schedule;
pub mod status;
#[cfg(feature = "client")]
pub mod watch;
