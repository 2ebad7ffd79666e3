//! One file for each command.

pub(crate) mod config;
pub(crate) mod demo;
mod demo_traces;
pub(crate) mod markdown_help;
pub(crate) mod sim;
pub(crate) mod trace;
pub(crate) mod usage;
