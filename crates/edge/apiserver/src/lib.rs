//! The API server: performs one request and returns its answer, watches, discovers. It decides
//! nothing.
//!
//! | module | what |
//! |---|---|
//! | [`client`] | connections to the server, one kind for each purpose; whole lists |
//! | [`watch`] | changes of every kind in one stream |
//! | [`perform`] | one request, and its answer |
//! | [`discover`] | services that answer Prometheus' query API, exporters, and the way to them |

pub mod client;
pub mod discover;
mod perform;
pub mod watch;

pub use perform::perform;
