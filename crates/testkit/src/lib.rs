//! What tests stand on, and nothing that ships: programs of Kubernetes built from pinned sources.

pub mod binaries;
