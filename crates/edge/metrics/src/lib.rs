//! What GPUs did, read from outside: activity and memory of each pod and GPU over time.
//!
//! | module | what |
//! |---|---|
//! | [`file`] | usage files (CSV) |
//! | [`exporter`] | what GPU exporters say: device, holder, activity |
//! | [`job`] | what the devices, hosts and containers of one job did |
//! | [`kube_state`] | what kube-state-metrics keeps of objects |
//! | [`serving`] | requests and tokens that inference servers count |
//! | [`latency`] | histograms of how long requests take, block of time by block of time |
//! | [`prometheus`] | whatever answers Prometheus' query API |
//! | [`scrape`] | exporters asked directly |
//! | `selector` | names of objects in a question |
//!
//! Everything that is read is hostile: sizes are bounded, a bad cell is named with file, line and
//! column, and nothing is repaired in silence.

pub mod exporter;
pub mod file;
pub mod job;
pub mod kube_state;
pub mod latency;
pub mod prometheus;
pub mod scrape;
mod selector;
pub mod serving;
