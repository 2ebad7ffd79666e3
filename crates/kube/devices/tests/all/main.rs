//! Upstream's own cases, amounts of devices that several claims share, devices of a class that are
//! counted, what is kept between questions, what they look at, rules that taint devices, and what
//! is asked of nodes with many devices.

mod amounts;
mod counted;
mod explain;
mod hard;
mod kept;
mod left;
mod taint_rules;
mod upstream;
