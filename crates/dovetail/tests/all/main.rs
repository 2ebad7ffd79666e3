//! The program as its users meet it: help, results, errors, exit codes.

mod audit;
mod behaviour;
mod duty_cycles;
mod errors;
mod help;
#[cfg(feature = "scheduler")]
mod live;
mod program;
mod real_traces;
mod recordings;
mod results;
mod usage;
