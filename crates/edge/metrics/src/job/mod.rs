//! One job as [`dovetail_phases::job_phases`] wants it: what its devices and hosts did, and when
//! its containers ran.
//!
//! A bill needs to know whether a device worked; where the time of a job went needs tensor cores,
//! memory traffic, power, the host and events too, of the job's pods alone.
//!
//! | module | what |
//! |---|---|
//! | `query` | what is asked, pod by pod |
//! | `readings` | the answers: samples of devices and hosts |
//! | `events` | the answers: runs of containers, and checkpoints that they tell |
//! | `nodes` | disk, network and CPUs of nodes that the job has for itself |
//! | `record` | all together, as records |
//!
//! A sample is the mean over the step before its moment, and a bill counts a holder from its first
//! sample on. So on the clock of the bill everything is one step late, and events are moved to it.

mod events;
mod nodes;
mod query;
mod readings;
mod record;

pub use events::PodEvents;
pub use nodes::{NODE_NAMES, NodeNames, node_queries};
pub use query::{JobQuery, JobSeries, job_queries, tensor_queries};
pub use readings::{Grid, JobReadings};
pub use record::{DeviceHolding, JobGroup, records};
