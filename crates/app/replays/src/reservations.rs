//! What became of reservations from one time to another.

use dovetail_console::table::wrapped;
use dovetail_model::{Booked, BookingVerdict, TooLarge};
use serde::Serialize;

/// What became of a reservation.
#[derive(Clone, Debug, Serialize)]
pub struct ReservationFigures {
    pub name: String,
    /// At the end of the run: `admitted`, `refused`, `active` or `ended`.
    pub phase: &'static str,
    /// The earliest time at which there would have been room, if it was refused and any is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub earliest_s: Option<f64>,
    /// Why it was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl ReservationFigures {
    pub(crate) fn of(booked: &Booked) -> Self {
        let phase = match booked.verdict {
            BookingVerdict::Requested => "requested",
            BookingVerdict::Admitted => "admitted",
            BookingVerdict::Refused { .. } => "refused",
            BookingVerdict::Active => "active",
            BookingVerdict::Ended => "ended",
        };
        let (earliest_s, reason) = match booked.verdict {
            BookingVerdict::Refused { earliest_ms, too_large } => {
                let earliest_s = earliest_ms.map(|earliest_ms| earliest_ms as f64 / 1e3);
                (earliest_s, Some(no_capacity(earliest_s, too_large)))
            }
            _ => (None, None),
        };
        Self { name: booked.booking.name.clone(), phase, earliest_s, reason }
    }
}

/// Why a reservation was refused.
fn no_capacity(earliest_s: Option<f64>, too_large: Option<TooLarge>) -> String {
    match (earliest_s, too_large) {
        (Some(earliest_s), _) => format!(
            "no capacity at the reserved time; earliest start with capacity: {earliest_s} s"
        ),
        (None, Some(too_large)) => too_large.to_string(),
        (None, None) => {
            "no capacity at the reserved time or at any later time that can be forecast".to_owned()
        }
    }
}

/// Those that were refused, a line each with the reason.
pub fn refused(all: &[ReservationFigures]) -> String {
    let line = |of: &ReservationFigures| {
        let reason = of.reason.as_ref()?;
        Some(wrapped(&format!("{}: {reason}", of.name), 2))
    };
    let lines: String = all.iter().filter_map(line).collect();
    if lines.is_empty() { lines } else { format!("\nrefused reservations\n{lines}") }
}
