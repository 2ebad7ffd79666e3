//! What every device did over a period.

pub mod grouping;
pub mod report;
