//! `dovetail sim`: replays of traces.

mod arena;
mod bounds;
mod compare;
mod grid;
mod page;
mod replay;
mod reserve_flags;
mod run;
mod run_fgd;
mod run_slices;
mod run_timed;
mod slices_flags;
mod sweep;

use anyhow::Result;
use clap::Subcommand;
use dovetail_console::app::App;

/// Commands of the simulator.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Replay one trace under one policy.
    Run(Box<run::RunFlags>),
    /// Replay a recording and compare every decision.
    Replay(replay::ReplayFlags),
    /// Replay traces under several policies, and test whether differences are significant.
    Compare(Box<compare::CompareFlags>),
    /// Replay every combination of policies, orders, traces and seeds, one row each.
    Sweep(Box<sweep::SweepFlags>),
    /// Compare each policy with the best simple policy in many kinds of clusters.
    Arena(arena::ArenaFlags),
    /// Compute bounds that no policy can beat.
    Bounds(Box<bounds::BoundsFlags>),
}

impl Command {
    pub(crate) fn run(self, app: &App) -> Result<()> {
        match self {
            Self::Run(flags) => run::run(app, &flags),
            Self::Replay(flags) => replay::run(app, &flags),
            Self::Compare(flags) => compare::run(app, &flags),
            Self::Sweep(flags) => sweep::run(app, &flags),
            Self::Arena(flags) => arena::run(app, &flags),
            Self::Bounds(flags) => bounds::run(app, &flags),
        }
    }
}
