//! Reservations as people write and read them.
//!
//! | module | what |
//! |---|---|
//! | `definition` | the CustomResourceDefinition |
//! | `reading` | a reservation in the words of the engine, or why it cannot be one |
//! | `status` | what a reservation says of itself |

mod definition;
mod reading;
mod status;

pub use definition::definition;
pub use reading::{Unusable, booking, is_settled};
pub use status::{patch, phase, status};
