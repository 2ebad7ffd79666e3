//! The whole scheduler in simulation, on one thread, by seed.
//!
//! | module | what |
//! |---|---|
//! | [`api`] | an API server as a state machine; `dovetail-testkit` serves it over HTTP |
//! | [`kubelets`] | the kubelets of all nodes as a state machine |
//! | [`Recipe`] | which history is played: a seed, and what of it is left out |
//! | [`play`] | plays a history: two candidates, controllers, everything that goes wrong |
//! | [`shrink`] | the shortest history that it finds in which the same goes wrong |
//!
//! Nothing here reads a clock: time is a number that jumps from one event to the next. Every delay
//! and every fault is drawn from the seed and from what it strikes, never from the order of other
//! draws, so what is left out of a history changes nothing else.

pub mod api;
mod books;
mod cluster;
mod course;
mod dice;
mod event;
mod evictions;
mod ground;
pub mod kubelets;
mod lease;
mod network;
mod objects;
mod play;
mod processes;
mod quotas;
mod recipe;
mod replica;
mod rest;
mod run;
mod scene;
mod shrink;
mod sight;

pub use play::{HistoryFailure, Played, play, play_recorded};
pub use recipe::{Extras, Recipe, RecipeError};
pub use shrink::shrink;
