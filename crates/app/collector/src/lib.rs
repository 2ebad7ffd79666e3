//! Fills a ledger again and again, and tells owners and teams what it says.

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
