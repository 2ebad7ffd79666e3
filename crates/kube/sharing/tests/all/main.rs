//! Tests of changing the layout of a node.

mod amd;
mod change_time;
mod definition;
mod faults;
mod gpu_use;
mod latency;
mod moves;
mod relabelled;
mod workloads;
mod world;
