//! A cluster as the engine sees it: pure functions and an index, without server or clock.
//!
//! | module | what |
//! |---|---|
//! | [`queues`] | queues as people write and read them |
//! | [`reservations`] | reservations as people write and read them |
//! | [`world`] | the index: changes of objects in, events out |

pub mod queues;
pub mod reservations;
pub mod world;
