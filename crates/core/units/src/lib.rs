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
//! | [`exponent`] | `1.5e3` in plain digits |

pub mod amount;
pub mod duration;
pub mod exponent;
pub mod time;
