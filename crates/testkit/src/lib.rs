//! What tests stand on, and nothing that ships: programs of Kubernetes built from pinned sources, and
//! worlds that its scheduler judges.

pub mod binaries;
#[cfg(feature = "full")]
pub mod world;
