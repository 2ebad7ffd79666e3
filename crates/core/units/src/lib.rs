//! Quantities as people write and read them.
//!
//! One format for each, wherever it is shown: at most three digits that matter and a unit. Programs
//! read JSON, which has every digit; what is paid is exact to the cent.
//!
//! | module | what |
//! |---|---|
//! | [`duration`] | `90 s`, `1.5 h`; read from `1h30m` |
//! | [`time`] | `2026-10-14T08:00:00Z`, in UTC |
//! | [`amount`] | dollars, percentages, bytes, GPUs and GPU-hours |
//! | [`number`] | what every reader takes for a number, such as `1.5e3` |
//! | [`place`] | `FILE:LINE: column`, in every message |

pub mod amount;
pub mod duration;
pub mod number;
pub mod place;
pub mod time;
