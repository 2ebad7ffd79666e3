//! The ledger on SQLite and on a real PostgreSQL server.

mod databases;
mod faults;
mod killed;
mod once;
mod resolution;
mod versions;
mod world;
