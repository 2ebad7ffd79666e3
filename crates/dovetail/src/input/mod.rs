//! From the command line to worlds: files, cluster sizes, orders, policies.

pub(crate) mod baseline;
pub(crate) mod cluster;
#[cfg(feature = "scheduler")]
pub(crate) mod connection;
pub(crate) mod doubts;
pub(crate) mod duration;
pub(crate) mod example;
#[cfg(feature = "scheduler")]
pub(crate) mod exporters;
pub(crate) mod faults;
pub(crate) mod fgd_world;
pub(crate) mod file;
#[cfg(feature = "scheduler")]
mod found_prometheus;
#[cfg(feature = "scheduler")]
mod hangs;
#[cfg(feature = "scheduler")]
pub(crate) mod kubeconfig;
pub(crate) mod node_prices;
pub(crate) mod objects;
pub(crate) mod old_prices;
#[cfg(feature = "scheduler")]
pub(crate) mod own_namespaces;
mod own_time;
#[cfg(feature = "scheduler")]
pub(crate) mod period;
#[cfg(feature = "scheduler")]
pub(crate) mod placement;
pub(crate) mod policy;
pub(crate) mod prices;
#[cfg(feature = "scheduler")]
pub(crate) mod prometheus;
pub(crate) mod seeds;
#[cfg(feature = "scheduler")]
pub(crate) mod serving;
#[cfg(feature = "scheduler")]
mod through_api_server;
pub(crate) mod trace_file;
pub(crate) mod uses;
#[cfg(feature = "scheduler")]
pub(crate) mod uses_of_server;
