//! The program as its users meet it: help, results, errors, exit codes.

mod audit;
mod behaviour;
mod collect;
mod cost;
#[cfg(feature = "scheduler")]
mod cost_period;
#[cfg(feature = "scheduler")]
mod cost_store;
mod duty_cycles;
mod errors;
mod example;
#[cfg(feature = "scheduler")]
mod fake_prometheus;
#[cfg(feature = "scheduler")]
mod found_prometheus;
mod help;
#[cfg(feature = "scheduler")]
mod live;
mod program;
mod real_traces;
mod recordings;
mod results;
mod usage;
