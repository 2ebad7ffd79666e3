//! Discrete-event simulator that drives the decision engine.
//!
//! | module | what |
//! |---|---|
//! | [`world`] | machines and jobs of a trace as the engine's nodes and jobs |
//! | [`fgd`] | the `fgd` protocol: pods arrive, none leaves, rejected ones are dropped |
//! | [`timed`] | the `timed` protocol: submit, queue, run, end; failures, cordons, nodes coming and going |
//! | [`slices`] | the `slices` protocol: pods come for MIG slices, run and end; those that fit nowhere are rejected |
//! | [`arena`] | policies compared in many kinds of worlds |
//! | [`baseline`] | published preemptive orders, apart from the engine |
//! | [`record`] | recordings, replays, paused simulations |
//! | [`timeline`] | where the GPU-time of a run went, what it costs, and the series for plots |
//! | [`report`] | comparisons as one HTML file, and as a table for the terminal |
//! | [`event_log`] | what happened and what was decided, as a hash |
//!
//! Time is virtual; nothing here reads a clock. Where speed is measured, the caller brings the
//! clock.

pub mod arena;
pub mod baseline;
pub mod comparison;
pub mod event_log;
pub mod fgd;
pub mod record;
pub mod slices;
pub mod timed;
pub mod timeline;
pub mod world;
