//! A replay of a trace: what it runs on, from the command line and files; the run; its figures.

pub mod check;
pub mod fgd_replay;
pub mod figures;
pub mod impossible;
pub mod input;
pub mod limits;
pub mod money;
pub mod pause;
pub mod recording;
pub mod reservations;
pub mod statistics;
pub mod timed_replay;
