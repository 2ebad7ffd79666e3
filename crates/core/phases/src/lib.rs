//! What became of jobs: how long they waited, where their time went, which attempts are one run.
//!
//! | module | what |
//! |---|---|
//! | [`queue_wait`] | how long work waits for its first and for its last member |
//! | [`job_phases`] | where the allocated time of one job went |
//! | [`runs`] | attempts of one run, and what failed ones cost |

pub mod job_phases;
pub mod queue_wait;
pub mod runs;
