//! Where the hours of one job went, in money.

pub mod document;
pub mod held;
pub mod name;
pub mod of_example;
pub mod of_moment;
pub mod of_series;
pub mod of_several;
