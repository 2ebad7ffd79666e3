//! The crate's one integration test program.

mod conformance;
mod control_plane;
mod dra_driver;
mod faults;
mod kubelets;
mod script;
mod session;
mod steps;
mod worlds;
