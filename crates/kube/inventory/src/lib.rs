//! What a cluster has, for the audit: objects from files, objects as facts.
//!
//! | module | what |
//! |---|---|
//! | [`dump`] | objects from files, and what a collection keeps of them |
//! | [`facts`] | objects as facts that checks can be run on |
//! | [`patches`] | patches that take from no pod the last node that it could use |

pub mod dump;
pub mod facts;
pub mod patches;
