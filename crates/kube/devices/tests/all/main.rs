//! Upstream's own cases, rules that taint devices, and what is asked of nodes with many devices.

mod explain;
mod hard;
mod taint_rules;
mod upstream;
