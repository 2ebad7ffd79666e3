//! Who pays what for GPUs, and for what.
#![allow(
    missing_docs,
    reason = "fields that say what they are; docs/reference/json.md has the keys"
)]

pub mod account;
pub mod bill_flags;
pub mod billed;
pub mod digest;
pub mod dimension;
pub mod document;
pub mod flags;
pub mod focus;
pub mod free_moments;
pub mod from_ledger;
pub mod from_objects;
pub mod from_prometheus;
pub mod from_store;
pub mod job;
mod levels;
pub mod names;
pub mod parts_told;
pub mod questions;
pub mod reading;
pub mod resolution;
pub mod same_names;
pub mod silence;
pub mod split_flags;
pub mod statement;
pub mod teams;
pub mod top;
pub mod turns;
pub mod usage;
pub mod without_price;
