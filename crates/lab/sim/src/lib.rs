//! Discrete-event simulator that drives the decision engine.

pub mod baseline;
