//! All integration tests of the crate in one binary.

mod openb;
mod packing;
mod time;
