//! The guard on histories by seed.

mod edges;
mod history;
mod rates;
