//! The page of an exporter: Prometheus' text format and its successor OpenMetrics, as far as gauges
//! need it.
//!
//! Source: the exposition formats of Prometheus (text format 0.0.4) and OpenMetrics 1.0.

use std::str::Chars;

use thiserror::Error;

use crate::prometheus::Labels;

/// A longer line is no line of an exporter.
const LINE_BYTES: usize = 64 << 10;
/// More labels has no series.
const MOST_LABELS: usize = 64;

/// A line with a number.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SampleLine {
    pub(super) name: String,
    pub(super) labels: Labels,
    /// The number; it may be NaN or infinite.
    pub(super) value: f64,
}

/// Why a line says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum LineProblem {
    /// Far too long.
    #[error("is longer than 64 KiB")]
    TooLong,
    /// Does not begin with the name of a series.
    #[error("does not start with a series name")]
    Name,
    /// Between the braces stands something else.
    #[error("has labels that are not written NAME=\"VALUE\"")]
    Labels,
    /// One name twice: nobody knows which one holds.
    #[error("has a duplicate label, or more than 64 labels")]
    TooManyLabels,
    /// No number where one should be.
    #[error("has no number after its labels")]
    Value,
}

/// The name a line begins with; none of a comment, an empty line or anything else.
pub(super) fn name_of(line: &str) -> Option<&str> {
    let end = line.find(|letter: char| !is_of_name(letter)).unwrap_or(line.len());
    let name = &line[..end];
    (!name.is_empty() && !name.starts_with(|letter: char| letter.is_ascii_digit())).then_some(name)
}

/// Reads a line. What stands behind the number (a time, an exemplar) is left: a page says what is
/// now.
pub(super) fn read_line(line: &str) -> Result<SampleLine, LineProblem> {
    if line.len() > LINE_BYTES {
        return Err(LineProblem::TooLong);
    }
    let name = name_of(line).ok_or(LineProblem::Name)?;
    let rest = &line[name.len()..];
    let (labels, rest) = match rest.trim_start().strip_prefix('{') {
        Some(inside) => read_labels(inside)?,
        None => (Labels::new(), rest),
    };
    // A number is apart from what stands before it.
    let is_apart = rest.starts_with([' ', '\t']) || !labels.is_empty() || line.contains('}');
    let number = rest.split_ascii_whitespace().next().filter(|_| is_apart);
    let value = number.and_then(read_number).ok_or(LineProblem::Value)?;
    Ok(SampleLine { name: name.to_owned(), labels, value })
}

/// Labels up to the closing brace, and what follows it.
fn read_labels(inside: &str) -> Result<(Labels, &str), LineProblem> {
    let mut labels = Labels::new();
    let mut rest = inside.trim_start();
    loop {
        if let Some(behind) = rest.strip_prefix('}') {
            return Ok((labels, behind));
        }
        let name = name_of(rest).ok_or(LineProblem::Labels)?;
        let after = rest[name.len()..].trim_start().strip_prefix('=').ok_or(LineProblem::Labels)?;
        let quoted = after.trim_start().strip_prefix('"').ok_or(LineProblem::Labels)?;
        let (value, behind) = read_quoted(quoted).ok_or(LineProblem::Labels)?;
        if labels.len() == MOST_LABELS || labels.insert(name.to_owned(), value).is_some() {
            return Err(LineProblem::TooManyLabels);
        }
        rest = behind.trim_start();
        // A comma may also stand behind the last one.
        rest = match rest.strip_prefix(',') {
            Some(next) => next.trim_start(),
            None if rest.starts_with('}') => rest,
            None => return Err(LineProblem::Labels),
        };
    }
}

/// A value up to its closing quote, and what follows.
fn read_quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut letters: Chars<'_> = text.chars();
    loop {
        match letters.next()? {
            '"' => return Some((value, letters.as_str())),
            '\\' => match letters.next()? {
                'n' => value.push('\n'),
                letter @ ('\\' | '"') => value.push(letter),
                // Not an escape: both letters stand for themselves.
                letter => value.extend(['\\', letter]),
            },
            letter => value.push(letter),
        }
    }
}

fn read_number(text: &str) -> Option<f64> {
    match text {
        "NaN" => Some(f64::NAN),
        "+Inf" | "Inf" => Some(f64::INFINITY),
        "-Inf" => Some(f64::NEG_INFINITY),
        // Rust also takes words such as `infinity`, which no exporter writes.
        _ if text.contains(|letter: char| {
            letter.is_ascii_alphabetic() && !matches!(letter, 'e' | 'E')
        }) =>
        {
            None
        }
        _ => text.parse().ok(),
    }
}

fn is_of_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_' || letter == ':'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn read(line: &str) -> Result<(String, Labels, f64), LineProblem> {
        read_line(line).map(|line| (line.name, line.labels, line.value))
    }

    #[test]
    fn lines_are_read_as_exporters_write_them() {
        let dcgm =
            "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-a\",DCGM_FI_DRIVER_VERSION=\"550\"} 93";
        let of = [("gpu", "0"), ("UUID", "GPU-a"), ("DCGM_FI_DRIVER_VERSION", "550")];
        assert_eq!(read(dcgm), Ok(("DCGM_FI_DEV_GPU_UTIL".into(), labels(&of), 93.0)));
        for (line, pairs, value) in [
            ("up 1", &[][..], 1.0),
            ("up\t1.5e-3 1700000000000", &[], 1.5e-3),
            ("up{} 2", &[], 2.0),
            ("up{a=\"1\",} 2", &[("a", "1")], 2.0),
            ("up { a = \"x\" , b=\"\" } -3", &[("a", "x"), ("b", "")], -3.0),
            ("up{a=\"}\"}4 # {trace=\"t\"} 1", &[("a", "}")], 4.0),
            ("up{a=\"q\\\"\\\\\\n\\d\"} +Inf", &[("a", "q\"\\\n\\d")], f64::INFINITY),
            ("up{a=\"µ\"} -Inf", &[("a", "µ")], f64::NEG_INFINITY),
        ] {
            assert_eq!(read(line), Ok(("up".into(), labels(pairs), value)), "{line}");
        }
        assert!(read("up NaN").is_ok_and(|(.., value)| value.is_nan()));
    }

    #[test]
    fn what_is_no_line_has_its_reason() {
        let long = format!("up{{a=\"{}\"}} 1", "x".repeat(LINE_BYTES));
        let many: String = (0..65).map(|n| format!("l{n}=\"\",")).collect();
        let many = format!("up{{{many}}} 1");
        for (line, problem) in [
            (long.as_str(), LineProblem::TooLong),
            ("<html>", LineProblem::Name),
            ("1up 1", LineProblem::Name),
            ("up{a=1} 1", LineProblem::Labels),
            ("up{a=\"1\" b=\"2\"} 1", LineProblem::Labels),
            ("up{a=\"1", LineProblem::Labels),
            ("up{a=\"1\"", LineProblem::Labels),
            ("up{a=\"1\\", LineProblem::Labels),
            ("up{a=\"1\",a=\"2\"} 1", LineProblem::TooManyLabels),
            (&many, LineProblem::TooManyLabels),
            ("up", LineProblem::Value),
            ("up{}", LineProblem::Value),
            ("up one", LineProblem::Value),
            ("up infinity", LineProblem::Value),
            ("up 1,5", LineProblem::Value),
        ] {
            assert_eq!(read(line).map(|_| ()), Err(problem), "{:.60}", line);
        }
    }
}
