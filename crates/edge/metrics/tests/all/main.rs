//! Readers against the real thing.
#![allow(missing_docs)]

mod real_job;
mod real_prometheus;
