//! Tests of reading, translating and indexing objects.

mod differential;
mod history;
mod memory;
mod objects;
mod server;
mod translate;
mod watch;
mod world;
