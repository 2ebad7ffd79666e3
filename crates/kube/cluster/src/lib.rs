//! A cluster as the engine sees it: pure functions and an index, without server or clock.
//!
//! | module | what |
//! |---|---|
//! | [`translate`] | one object (and what it refers to) in the words of the engine |
//! | [`queues`] | queues as people write and read them |
//! | [`reservations`] | reservations as people write and read them |
//! | [`world`] | the index: changes of objects in, events out |

pub mod queues;
pub mod reservations;
pub mod translate;
pub mod world;
