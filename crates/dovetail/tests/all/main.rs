//! The program as its users meet it: help, results, errors, exit codes.

mod audit;
#[cfg(feature = "scheduler")]
mod audit_ledger;
#[cfg(feature = "scheduler")]
mod audit_prometheus;
mod audit_settings;
mod behaviour;
mod collect;
mod cost;
#[cfg(feature = "scheduler")]
mod cost_digest;
mod cost_doubts;
mod cost_job;
#[cfg(feature = "scheduler")]
mod cost_job_period;
#[cfg(feature = "scheduler")]
mod cost_mine;
#[cfg(feature = "scheduler")]
mod cost_nodes;
mod cost_old_bill;
#[cfg(feature = "scheduler")]
mod cost_period;
#[cfg(feature = "scheduler")]
mod cost_pods_again;
mod cost_prices;
mod cost_questions;
mod cost_range;
mod cost_runs;
mod cost_shared;
#[cfg(feature = "scheduler")]
mod cost_silence;
#[cfg(feature = "scheduler")]
mod cost_store;
#[cfg(feature = "scheduler")]
mod cost_store_anew;
mod cost_waits;
mod device_claims;
mod duty_cycles;
mod errors;
mod example;
#[cfg(feature = "scheduler")]
mod exporters;
#[cfg(feature = "scheduler")]
mod fake_prometheus;
mod focus_validator;
#[cfg(feature = "scheduler")]
mod found_prometheus;
mod garbage;
mod help;
#[cfg(feature = "scheduler")]
#[allow(dead_code, reason = "the ledger's own tests use the rest")]
#[path = "../../../edge/store/tests/all/world.rs"]
mod ledger_world;
#[cfg(feature = "scheduler")]
mod live;
#[cfg(feature = "scheduler")]
mod live_gangs;
mod patches;
mod program;
mod real_traces;
mod recordings;
mod results;
#[cfg(feature = "scheduler")]
mod serve;
#[cfg(feature = "scheduler")]
mod serve_exporters;
#[cfg(feature = "scheduler")]
mod serve_rights;
#[cfg(feature = "scheduler")]
mod trace_from_ledger;
mod usage;
#[cfg(feature = "scheduler")]
mod viewer_rights;
