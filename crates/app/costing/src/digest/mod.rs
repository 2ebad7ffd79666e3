//! A team's week out of a ledger.

pub mod week;
