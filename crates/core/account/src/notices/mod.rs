//! What owners of GPUs are told, and when: decided here, delivered elsewhere. A notice informs; it
//! blames nobody, and changes nothing.
//!
//! | module | what |
//! |---|---|
//! | `idle` | since when all GPUs of an owner are idle |
//! | `rate` | who is told now, so that nobody is told too often |
//! | `receipt` | what a job came to when it ended, and the one setting that would have saved most |
//! | `weekly` | when a team's weekly digest is due |

mod idle;
mod rate;
mod receipt;
mod weekly;

pub use idle::{IdlePod, IdleSearch, IdleSpell, SeenDevice, idle_text};
pub use rate::{Rate, due};
pub use receipt::{Attempts, JobTotals, ReceiptSetting, ReceiptTally, receipt_text, setting};
pub use weekly::week_due;
