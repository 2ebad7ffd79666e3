//! Figures as people read them.

/// What stands where nothing is known or nothing happened.
pub(crate) const UNKNOWN: &str = "–";

/// `1234567` as `1,234,567`.
pub(crate) fn grouped(number: f64) -> String {
    let digits = format!("{:.0}", number.abs());
    let mut text = String::new();
    if number < 0.0 && digits != "0" {
        text.push('-');
    }
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Whole from a hundred on, else one decimal.
pub(crate) fn amount(number: f64) -> String {
    if number.abs() >= 99.95 { grouped(number) } else { format!("{number:.1}") }
}

/// Two decimals and the sign of percent.
pub(crate) fn percent(percent: f64) -> String {
    format!("{percent:.2} %")
}

/// Dollars; with cents below a hundred.
pub(crate) fn usd(usd: f64) -> String {
    let sign = if usd < 0.0 { "-" } else { "" };
    match usd.abs() {
        small if small < 99.995 => format!("{sign}${small:.2}"),
        large => format!("{sign}${}", grouped(large)),
    }
}

/// Seconds in the unit in which a person would say them.
pub(crate) fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 0.05 => "0 s".to_owned(),
        s if s < 119.95 => format!("{s:.1} s"),
        s if s < 7_197.0 => format!("{:.1} min", s / 60.0),
        s if s < 172_620.0 => format!("{:.1} h", s / 3_600.0),
        s => format!("{} d", amount(s / 86_400.0)),
    }
}

/// Change of a percentage in points, with its sign; empty where nothing differs or is known.
pub(crate) fn points(figure: Option<f64>, reference: Option<f64>) -> String {
    match (figure, reference) {
        (Some(figure), Some(reference)) if figure != reference => {
            format!("{:+.2} points", figure - reference)
        }
        _ => String::new(),
    }
}

/// Change against a reference in percent, with its sign; empty where nothing differs or is known.
pub(crate) fn change(figure: Option<f64>, reference: Option<f64>) -> String {
    match (figure, reference) {
        (figure, reference) if figure == reference => String::new(),
        (Some(figure), Some(reference)) if reference.abs() > 1e-12 => {
            let change = (figure / reference - 1.0) * 100.0;
            if change.abs() < 0.05 { "±0.0 %".to_owned() } else { format!("{change:+.1} %") }
        }
        _ => String::new(),
    }
}

/// A name for people: control characters are shown, not obeyed.
pub(crate) fn printable(name: &str) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_read_as_people_write_them() {
        assert_eq!(grouped(1_234_567.4), "1,234,567");
        assert_eq!(grouped(-0.2), "0");
        assert_eq!(grouped(-1_000.0), "-1,000");
        assert_eq!(
            (usd(12.345), usd(-0.5), usd(123_456.7)),
            ("$12.35".into(), "-$0.50".into(), "$123,457".into())
        );
        assert_eq!(duration(7_200.0), "2.0 h");
        assert_eq!(change(Some(90.0), Some(120.0)), "-25.0 %");
        assert_eq!(change(Some(90.0), Some(0.0)), "");
        assert_eq!(change(Some(90.0), Some(90.0)), "");
        assert_eq!(points(Some(70.7), Some(65.5)), "+5.20 points");
        assert_eq!(printable("a\u{1b}[2J\u{202e}b"), "a\\u{1b}[2J\\u{202e}b");
    }
}
