//! The ledger on SQLite and on a real PostgreSQL server.

mod databases;
mod faults;
mod free_looks;
mod killed;
mod last_seen;
mod once;
mod resolution;
mod top_jobs;
mod used;
mod versions;
mod world;
