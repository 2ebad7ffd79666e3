//! Readers against the real thing.

mod real_job;
mod real_prometheus;
