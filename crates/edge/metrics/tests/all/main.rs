//! Readers against the real thing.
#![allow(missing_docs)]

mod prometheus_server;
mod real_job;
mod real_prometheus;
