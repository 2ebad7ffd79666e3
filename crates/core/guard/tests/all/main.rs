//! The guard on histories by seed.

mod history;
mod rates;
