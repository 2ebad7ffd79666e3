//! Upstream's own cases, and what is asked of nodes with many devices.

mod hard;
mod upstream;
