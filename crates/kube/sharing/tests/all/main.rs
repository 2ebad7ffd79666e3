//! Tests of changing the layout of a node.

mod faults;
mod world;
