//! Objects, measurements and prices, from wherever the command line says: files, clusters, servers,
//! exporters.

pub mod doubts;
pub mod example;
pub mod exporters;
pub mod found_prometheus;
pub mod hangs;
pub mod kubeconfig;
pub mod namespace;
pub mod node_prices;
pub mod objects;
pub mod old_prices;
pub mod own_namespaces;
pub mod own_prices;
pub mod own_time;
pub mod period;
pub mod placement;
pub mod prices;
pub mod prometheus;
pub mod serving;
pub mod through_api_server;
pub mod uses;
pub mod uses_of_server;
