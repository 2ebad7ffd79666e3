//! The crate's one integration test program.

mod worlds;
