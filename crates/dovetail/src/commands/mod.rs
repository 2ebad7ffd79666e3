//! One file for each command.

pub(crate) mod audit;
pub(crate) mod collect;
pub(crate) mod completion;
pub(crate) mod config;
pub(crate) mod cost;
pub(crate) mod demo;
pub(crate) mod live;
pub(crate) mod markdown_help;
pub(crate) mod partition;
pub(crate) mod scheduler;
pub(crate) mod serve;
pub(crate) mod sim;
pub(crate) mod trace;
pub(crate) mod usage;
pub(crate) mod version;
