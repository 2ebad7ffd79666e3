//! Flags of reservations: for the jobs that are next, and from one time to another.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use dovetail_model::Booking;
use dovetail_plan::ReserveConfig;
use dovetail_replays::input::reservations_file::read_reservations;

#[derive(Clone, Debug, Args)]
pub(crate) struct ReserveFlags {
    /// timed: maximum number of reservations for pending jobs, one per queue at most [default: 0]
    #[arg(long, value_name = "JOBS")]
    pub(crate) reserve_heads: Option<u32>,
    /// timed: maximum share of a reservation that other jobs may use at a time, as a percentage of
    /// the reserving job's GPUs [default: 100]
    #[arg(long, value_name = "PERCENT", requires = "reserve_heads")]
    pub(crate) lend: Option<u32>,
    /// timed: TOML file with reservations of capacity, each with a start and an end
    #[arg(long, value_name = "FILE")]
    pub(crate) reservations: Option<PathBuf>,
}

impl ReserveFlags {
    /// The first of these flags that was given.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let reservations = self.reservations.as_ref().map(|_| "--reservations");
        self.reserve_heads.map(|_| "--reserve-heads").or(reservations)
    }

    /// What is reserved from one time to another.
    pub(crate) fn bookings(&self) -> Result<Vec<(u64, Booking)>> {
        self.reservations.as_deref().map_or(Ok(Vec::new()), read_reservations)
    }

    /// What is read, with its flag.
    pub(crate) fn file(&self) -> (&'static str, Option<&Path>) {
        ("--reservations", self.reservations.as_deref())
    }

    /// What they say.
    pub(crate) fn config(&self) -> ReserveConfig {
        let default = ReserveConfig::default();
        ReserveConfig {
            heads: self.reserve_heads.unwrap_or(default.heads),
            lent_percent: self.lend.unwrap_or(default.lent_percent),
            ..default
        }
    }
}
