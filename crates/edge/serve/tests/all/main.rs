//! Answers over real connections, out of a real ledger.

mod allocation;
mod http;
mod promtool;
mod webhook;
mod world;
