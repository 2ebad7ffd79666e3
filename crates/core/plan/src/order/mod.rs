//! Order `dovetail`: whose turn it is.
//!
//! Each job has a *standing*, a time that is fixed between events: the GPU-time that is best
//! invested in it until it ends, and its submission, which is how waiting jobs age at one common
//! rate. The smallest goes first. Where the run time is estimated, the GPU-time is what remains of
//! the estimate; where it is not, or was outlived, it is the inverse Gittins index of its cohort.
//!
//! A job that runs has a standing as well, and where the preset says so, one that waits may take
//! its place: if its own standing is that much better, and no more work is lost than this is worth.
//!
//! | file | what |
//! |---|---|
//! | `turns` | presets and weights |
//! | `book` | standings of jobs that wait and run, and when they change |
//! | `respite` | how long queues that want their quota back leave a job alone |

mod book;
mod respite;
mod turns;

pub(crate) use book::TurnBook;
pub use turns::{PRESETS, QueueTurns, Turns};
