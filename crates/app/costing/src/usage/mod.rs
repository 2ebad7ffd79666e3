//! What every device did over a period.

pub mod device_prices;
pub mod grouping;
pub mod report;
