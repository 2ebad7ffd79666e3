//! Independent judges of the engine's invariants.
