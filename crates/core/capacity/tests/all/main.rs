//! All integration tests of the crate in one binary.

mod causes;
mod oracle;
mod properties;
mod time;
mod world;
