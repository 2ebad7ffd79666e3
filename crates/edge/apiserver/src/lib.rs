//! The API server: performs one request and returns its answer, watches, discovers. It decides
//! nothing.
//!
//! | module | what |
//! |---|---|
//! | [`client`] | connections to the server, one kind for each purpose; whole lists |
//! | [`watch`] | changes of every kind in one stream |
//! | [`pods`] | requests about pods and their claims: binds, deletions, conditions |
//! | [`announcements`] | requests that announce: conditions, events, statuses |
//! | [`discover`] | services that answer Prometheus' query API, exporters, and the way to them |

pub mod announcements;
pub mod client;
pub mod discover;
pub mod pods;
pub mod watch;
