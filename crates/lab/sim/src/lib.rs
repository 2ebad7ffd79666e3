//! Discrete-event simulator that drives the decision engine.
