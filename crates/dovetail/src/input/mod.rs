//! From the command line to worlds: files, cluster sizes, orders, policies.

pub(crate) mod baseline;
pub(crate) mod cluster;
pub(crate) mod doubts;
pub(crate) mod example;
pub(crate) mod exporters;
pub(crate) mod faults;
pub(crate) mod fgd_world;
mod found_prometheus;
mod hangs;
pub(crate) mod kubeconfig;
pub(crate) mod node_prices;
pub(crate) mod objects;
pub(crate) mod old_prices;
pub(crate) mod own_namespaces;
mod own_time;
pub(crate) mod period;
pub(crate) mod placement;
pub(crate) mod policy;
pub(crate) mod prices;
pub(crate) mod prometheus;
pub(crate) mod seeds;
pub(crate) mod serving;
mod through_api_server;
pub(crate) mod trace_file;
pub(crate) mod uses;
pub(crate) mod uses_of_server;
