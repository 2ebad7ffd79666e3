//! Device-time: what every part of every device was at every moment of a period.
//!
//! ```text
//! installed = unavailable + free (by cause) + allocated
//! allocated = provisioning + gang-wait + active + idle + unknown
//! active    = useful + checkpointing + repeated + not separable
//! ```
//!
//! in milli-GPU × milliseconds, exactly, at every moment and over every period. A [`DeviceHistory`]
//! says what is known of one device; [`device_intervals`] cuts it into intervals of one state;
//! [`DeviceTime`] adds them up and prices them. The judge of these laws is in `dovetail-check` and
//! shares nothing with this module.
//!
//! | state | while |
//! |---|---|
//! | unavailable | the device is lost or its node is not ready; as a whole, whoever holds it |
//! | free | nobody holds the part; with the cause ([`dovetail_model::FreeCause`]), or unknown where nobody looked |
//! | provisioning | held, and its pod has not become ready for the first time |
//! | gang-wait | its pod is ready, and others of its gang are not |
//! | active, idle, unknown | as the signals say ([`crate::signal`]); unknown where none does |
//!
//! Shares of a device count by weight: MIG slices by compute slices, replicas of time-slicing and
//! MPS by their number, fractions (HAMi) by compute, DRA shares by the largest share of any
//! counter. The free part is rounded down to a milli-GPU and the held part is the rest, so both are
//! the whole device.

mod account;
mod history;
mod intervals;
mod share;
#[cfg(test)]
mod tests;

pub use account::DeviceTime;
pub use history::{
    ActiveWork, CauseSpan, DeviceHistory, HistoryError, HoldingTime, Span, WorkSpan,
};
pub(crate) use intervals::joined;
pub use intervals::{DeviceInterval, DeviceState, device_intervals};
pub use share::Share;
