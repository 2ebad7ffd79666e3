//! From the command line to worlds: files, cluster sizes, orders, policies.

pub mod baseline;
pub mod cluster;
pub mod faults;
pub mod fgd_world;
pub mod policy;
pub mod queues_file;
pub mod reservations_file;
pub mod scenario;
pub mod seeds;
pub mod stop_costs;
pub mod trace_file;
pub mod weights_file;
