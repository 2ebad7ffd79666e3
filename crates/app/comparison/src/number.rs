//! Figures as people read them, where `dovetail_units` has no form for them.

use dovetail_model::Money;
use dovetail_units::amount::{about_usd, change_percent};

/// What stands where nothing is known or nothing happened.
pub(crate) const UNKNOWN: &str = "–";

/// Dollars, rounded as a person would.
pub fn usd(usd: f64) -> String {
    about_usd(Money::micros((usd * 1e6).round() as i64))
}

/// All digits that a price has, at least cents.
pub fn exact_usd(usd_micros: i64) -> String {
    let text = format!("{}.{:06}", usd_micros / 1_000_000, usd_micros % 1_000_000);
    let whole = text.len() - 4;
    let zeros = text[whole..].len() - text[whole..].trim_end_matches('0').len();
    format!("${}", &text[..text.len() - zeros])
}

/// Change of a percentage in points, with its sign; empty where nothing differs or is known.
pub fn points(figure: Option<f64>, reference: Option<f64>) -> String {
    match (figure, reference) {
        (Some(figure), Some(reference)) if figure != reference => {
            format!("{:+.2} points", figure - reference)
        }
        _ => String::new(),
    }
}

/// Change against a reference in percent, with its sign; empty where nothing differs or is known.
pub fn change(figure: Option<f64>, reference: Option<f64>) -> String {
    match (figure, reference) {
        (figure, reference) if figure == reference => String::new(),
        (Some(figure), Some(reference)) if reference.abs() > 1e-12 => {
            change_percent((figure / reference - 1.0) * 100.0)
        }
        _ => String::new(),
    }
}

/// The note on a policy that learns, and what it knew when it started.
pub(crate) fn learning(policy: &str, started_from: &str) -> String {
    let (policy, from) = (printable(policy), printable(started_from));
    format!("{policy} learns from what arrives; it started from {from}.")
}

/// A name for people: control characters are shown, not obeyed.
pub fn printable(name: &str) -> String {
    name.chars().fold(String::with_capacity(name.len()), |mut text, letter| {
        // Also what turns the direction of a line around or hides in it.
        let hidden = matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}');
        match letter.is_control() || hidden {
            true => text.extend(letter.escape_unicode()),
            false => text.push(letter),
        }
        text
    })
}
