//! From the command line to worlds: files, cluster sizes, orders, policies.

pub(crate) mod baseline;
pub(crate) mod cluster;
pub(crate) mod faults;
pub(crate) mod fgd_world;
pub(crate) mod policy;
pub(crate) mod queues_file;
pub(crate) mod scenario;
pub(crate) mod seeds;
pub(crate) mod stop_costs;
pub(crate) mod toml_file;
pub(crate) mod trace_file;
pub(crate) mod weights_file;
