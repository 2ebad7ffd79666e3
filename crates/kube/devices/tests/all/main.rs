//! Upstream's own cases, amounts of devices that several claims share, what is kept between
//! questions, what they look at, rules that taint devices, and what is asked of nodes with many
//! devices.

mod amounts;
mod explain;
mod hard;
mod kept;
mod left;
mod taint_rules;
mod upstream;
