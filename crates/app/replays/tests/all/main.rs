//! Tests of what a replay reads, and of its figures.

mod cluster;
mod policy;
mod queues_file;
mod reservations_file;
mod seeds;
mod statistics;
