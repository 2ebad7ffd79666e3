//! The crate's one integration test program.

mod control_plane;
mod kubelets;
mod worlds;
