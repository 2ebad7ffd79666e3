//! The formats in which metrics are served. They differ in what a counter is called: OpenMetrics
//! describes `dovetail_collections` and counts `dovetail_collections_total`, the older text format
//! describes what it counts.
//!
//! Source: OpenMetrics 1.0 and the text format 0.0.4 of Prometheus.

/// A format that Prometheus reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpositionFormat {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// Prometheus' text format, version 0.0.4.
    Plain,
}

const OPEN_METRICS: &str = "application/openmetrics-text";
const COMMENT_BYTES: usize = "# HELP ".len();

impl ExpositionFormat {
    /// The one to answer with, by the header `Accept`: OpenMetrics for who names it and does not
    /// refuse it (`q=0`).
    pub fn accepted(accept: Option<&str>) -> Self {
        let mut kinds = accept.unwrap_or_default().split(',').map(|kind| {
            let mut parts = kind.split(';').map(str::trim);
            let name = parts.next().unwrap_or_default();
            let weight = parts.find_map(|part| part.strip_prefix("q="));
            (name, weight.and_then(|weight| weight.parse::<f64>().ok()).unwrap_or(1.0))
        });
        match kinds.any(|(name, weight)| name.eq_ignore_ascii_case(OPEN_METRICS) && weight > 0.0) {
            true => Self::OpenMetrics,
            false => Self::Plain,
        }
    }

    /// As the header `Content-Type` names it.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Plain => "text/plain; version=0.0.4; charset=utf-8",
        }
    }

    /// What stands in OpenMetrics' text, in this format.
    pub fn write(self, open_metrics: String) -> String {
        match self {
            Self::OpenMetrics => open_metrics,
            Self::Plain => plain(&open_metrics),
        }
    }
}

/// The older format out of the newer one. What describes a counter stands before the line with its
/// type, so whole descriptions are read before they are written.
fn plain(open_metrics: &str) -> String {
    let mut text = String::with_capacity(open_metrics.len());
    let lines: Vec<&str> = open_metrics.lines().filter(|line| *line != "# EOF").collect();
    for (place, line) in lines.iter().enumerate() {
        match described(line).filter(|name| is_counter(&lines[place..], name)) {
            Some(name) => {
                let (before, after) = line.split_at(COMMENT_BYTES + name.len());
                text.extend([before, "_total", after]);
            }
            None => text.push_str(line),
        }
        text.push('\n');
    }
    text
}

/// The metric that a comment describes.
fn described(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("# HELP ").or_else(|| line.strip_prefix("# TYPE "))?;
    rest.split(' ').next()
}

/// Whether the type of a metric, on one of the next lines, is a counter's.
fn is_counter(lines: &[&str], name: &str) -> bool {
    let mut lines = lines.iter().take_while(|line| line.starts_with('#'));
    lines.any(|line| {
        let kind = line.strip_prefix("# TYPE ").and_then(|rest| rest.strip_prefix(name));
        kind == Some(" counter")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_for_open_metrics_gets_it_and_nobody_else() {
        let prometheus =
            "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.3,*/*;q=0.1";
        for (accept, expected) in [
            (Some(prometheus), ExpositionFormat::OpenMetrics),
            (Some("Application/OpenMetrics-Text"), ExpositionFormat::OpenMetrics),
            (Some("application/openmetrics-text; q=0, text/plain"), ExpositionFormat::Plain),
            (Some("text/plain;version=0.0.4"), ExpositionFormat::Plain),
            (Some("*/*"), ExpositionFormat::Plain),
            (None, ExpositionFormat::Plain),
        ] {
            assert_eq!(ExpositionFormat::accepted(accept), expected, "{accept:?}");
        }
    }

    #[test]
    fn only_what_describes_a_counter_is_called_otherwise() {
        let open = "# HELP a_b Counts a_b.\n# TYPE a_b counter\na_b_total{x=\"1\"} 3\n\
                    # HELP a Is.\n# TYPE a gauge\na 1.0\n# EOF\n";
        let plain_text = "# HELP a_b_total Counts a_b.\n# TYPE a_b_total counter\na_b_total{x=\"1\"} 3\n\
                          # HELP a Is.\n# TYPE a gauge\na 1.0\n";
        assert_eq!(ExpositionFormat::Plain.write(open.to_owned()), plain_text);
        assert_eq!(ExpositionFormat::OpenMetrics.write(open.to_owned()), open);
    }
}
