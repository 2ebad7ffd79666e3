//! Tests of what a replay reads, and of its figures.

mod cluster;
mod extremes;
mod policy;
mod queues_file;
mod reservations_file;
mod seeds;
mod statistics;
