//! Flags of reservations for the jobs that are next.

use clap::Args;
use dovetail_plan::ReserveConfig;

#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct ReserveFlags {
    /// timed: jobs that have a reservation at a time, at most one of each queue [default: 0]
    #[arg(long, value_name = "JOBS")]
    pub(crate) reserve_heads: Option<u32>,
    /// timed: GPUs that a job may lend of its reservation, in percent of its own [default: 100]
    #[arg(long, value_name = "PERCENT", requires = "reserve_heads")]
    pub(crate) lend: Option<u32>,
}

impl ReserveFlags {
    /// The first of these flags that was given.
    pub(crate) fn given(self) -> Option<&'static str> {
        self.reserve_heads.map(|_| "--reserve-heads")
    }

    /// What they say.
    pub(crate) fn config(self) -> ReserveConfig {
        let default = ReserveConfig::default();
        ReserveConfig {
            heads: self.reserve_heads.unwrap_or(default.heads),
            lent_percent: self.lend.unwrap_or(default.lent_percent),
            ..default
        }
    }
}
