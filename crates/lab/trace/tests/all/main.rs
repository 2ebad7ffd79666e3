//! All integration tests of the crate, in one binary.

mod corrupt;
mod fgd;
mod read;
mod real;
mod round_trip;
mod shared;
mod stats;
mod synth;
