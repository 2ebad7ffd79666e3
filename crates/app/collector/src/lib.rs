//! Fills a ledger again and again, and tells owners and teams what it says.
#![allow(
    missing_docs,
    reason = "fields that say what they are; docs/reference/json.md has the keys"
)]

pub mod collecting;
pub mod doubts_told;
pub mod from_exporters;
mod from_objects_alone;
pub mod noticing;
pub mod owner_events;
pub mod receipt_lives;
pub mod receipts;
pub mod reviews;
pub mod weekly;
