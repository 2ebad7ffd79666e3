//! What a cluster has, for the audit: objects from files, objects as facts.
//!
//! | module | what |
//! |---|---|
//! | [`dump`] | objects from files, and what a collection keeps of them |
//! | [`facts`] | objects as facts that checks can be run on |
//! | [`reach`] | what decides which nodes pods could use, for trials of patches |

pub mod dump;
pub mod facts;
pub mod reach;
