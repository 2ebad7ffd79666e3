//! What joins traces with ledgers and clusters: jobs and machines out of a ledger, objects of a
//! generated cluster.

pub mod from_ledger;
pub mod synth_objects;

/// CPU of a machine of which nobody knows it: more than any job asks for.
pub const AMPLE_CPU_MILLI: i64 = 100_000_000;

/// Memory of a machine of which nobody knows it: more than any job asks for.
pub const AMPLE_MEMORY_BYTES: i64 = 1 << 47;
