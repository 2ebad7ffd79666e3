//! What wastes GPUs in a cluster, as a document.

pub mod baseline;
pub mod check_words;
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
