//! Tests of reading, translating and indexing objects, of binding, leading and scheduling.

mod announce;
mod bind;
mod differential;
mod dump;
mod facts;
mod freeze;
mod gang_definitions;
mod gang_faults;
mod gang_kinds;
mod gang_run;
mod gangs;
mod held;
mod history;
mod lead;
mod levels;
mod lists;
mod memory;
mod objects;
mod rights;
mod schedule;
mod server;
mod translate;
mod waiting;
mod watch;
mod world;
