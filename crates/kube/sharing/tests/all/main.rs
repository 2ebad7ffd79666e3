//! Tests of changing the layout of a node.

mod amd;
mod definition;
mod faults;
mod gpu_use;
mod latency;
mod moves;
mod workloads;
mod world;
