//! What wastes GPUs in a cluster, as a document.
#![allow(
    missing_docs,
    reason = "fields that say what they are; docs/reference/json.md has the keys"
)]

pub mod baseline;
pub mod confirmed;
pub mod document;
pub mod explain;
pub mod figures;
pub mod ignore_file;
pub mod ledger;
pub mod patch;
pub mod spot;
pub mod unconfirmed;
pub mod words;
