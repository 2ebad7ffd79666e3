//! A question, as it stands in the address that is asked.

use dovetail_account::device_time::Span;
use dovetail_account::rollup::{DAY_MS, HOUR_MS};
use dovetail_store::Detail;
use percent_encoding::percent_decode_str;
use thiserror::Error;

use super::aggregate::Aggregate;
use super::window::{QueryWindow, duration, in_words, window};

/// More steps are not answered at once.
const MOST_STEPS: u64 = 400;
/// Names have no more parts.
const MOST_PARTS: usize = 8;

/// A question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The steps of the window, ascending, in whole hours.
    pub steps: Vec<Span>,
    /// What entries are told apart by.
    pub aggregate: Vec<Aggregate>,
    /// Whether what nobody had has an entry `__idle__`.
    pub has_idle: bool,
    /// The end that was asked for, where that lies in the future; the steps end with the hour that
    /// is running.
    pub asked_until_ms: Option<u64>,
}

/// A question that cannot be answered, and what to ask instead.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct AllocationRefusal(pub String);

/// Parameters as written, each once; decoded.
#[derive(Debug, Default)]
struct Parameters {
    window: Option<String>,
    aggregate: Option<String>,
    accumulate: Option<String>,
    step: Option<String>,
    has_idle: bool,
}

impl Ask {
    /// Reads the part of an address behind `?`; `now_ms` is the present.
    ///
    /// # Errors
    /// What cannot be answered, and every parameter that would change the answer and is not known.
    pub fn read(query: &str, now_ms: u64) -> Result<Self, AllocationRefusal> {
        let parameters = Parameters::read(query).map_err(AllocationRefusal)?;
        let text = parameters.window.as_deref().filter(|text| !text.is_empty());
        let text = text
            .ok_or_else(|| AllocationRefusal("window: missing; pass one, such as 7d".to_owned()))?;
        let QueryWindow { span, asked_until_ms } =
            window(text, now_ms).map_err(AllocationRefusal)?;
        let steps = steps(span, &parameters).map_err(AllocationRefusal)?;
        let names = parameters.aggregate.as_deref().filter(|text| !text.is_empty());
        let aggregate = names.unwrap_or("cluster,node,namespace,pod").split(',');
        let aggregate: Result<Vec<Aggregate>, String> =
            aggregate.map(|name| name.trim().parse()).collect();
        let aggregate = aggregate.map_err(AllocationRefusal)?;
        if aggregate.len() > MOST_PARTS {
            return Err(AllocationRefusal(format!("aggregate: pass at most {MOST_PARTS} keys")));
        }
        Ok(Self { steps, aggregate, has_idle: parameters.has_idle, asked_until_ms })
    }

    /// What is said of a window that ends in the future; nothing of any other.
    pub fn ahead_in_words(&self) -> Option<String> {
        let asked = in_words(self.asked_until_ms?);
        let until = self.steps.last().map(|step| in_words(step.to_ms))?;
        Some(format!(
            "the requested window ends at {asked}, in the future; the answer ends at {until}"
        ))
    }

    /// What a ledger must tell apart.
    pub fn detail(&self) -> Detail {
        Aggregate::detail(&self.aggregate)
    }
}

impl Parameters {
    fn read(query: &str) -> Result<Self, String> {
        let mut found = Self::default();
        let mut seen: Vec<String> = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, value) = (decoded(name)?, decoded(value)?);
            if seen.contains(&name) {
                return Err(format!("{name} is set twice; remove one"));
            }
            match name.as_str() {
                "window" => found.window = Some(value),
                "aggregate" => found.aggregate = Some(value),
                "accumulate" => found.accumulate = Some(value),
                "step" => found.step = Some(value),
                "includeIdle" | "idle" => found.has_idle = is_true(&name, &value)?,
                // How finely a Prometheus is asked: a ledger has been read already.
                "resolution" => {}
                // What is switched off changes nothing, whatever it is.
                _ if ["", "false", "0"].contains(&value.as_str()) => {}
                "shareIdle" => {
                    return Err(
                        "shareIdle: a ledger records free capacity separately; omit it, and add \
                                includeIdle=true to see it"
                            .to_owned(),
                    );
                }
                _ => return Err(format!("{name}={value}: unknown parameter; omit it")),
            }
            seen.push(name);
        }
        Ok(found)
    }
}

fn is_true(name: &str, value: &str) -> Result<bool, String> {
    match value {
        "true" | "1" => Ok(true),
        "false" | "0" | "" => Ok(false),
        _ => Err(format!("{name}={value}: write true or false")),
    }
}

/// Without `step` the window is one; `accumulate=true` makes it one, whatever the step.
fn steps(window: Span, parameters: &Parameters) -> Result<Vec<Span>, String> {
    let whole_ms = window.to_ms - window.from_ms;
    let asked = parameters.step.as_deref().filter(|text| !text.is_empty());
    let asked_ms = asked.map(|text| duration(text).map_err(|problem| format!("step: {problem}")));
    let asked_ms = asked_ms.transpose()?;
    let step_ms = match parameters.accumulate.as_deref().unwrap_or("") {
        "" | "false" => asked_ms.unwrap_or(whole_ms),
        "true" | "all" => whole_ms,
        "hour" => HOUR_MS,
        "day" => DAY_MS,
        "week" => 7 * DAY_MS,
        other => {
            return Err(format!("accumulate={other}: write true, false, hour, day or week"));
        }
    };
    if whole_ms.div_ceil(step_ms) > MOST_STEPS {
        return Err(format!(
            "more than {MOST_STEPS} steps: make the step longer, or the window shorter"
        ));
    }
    let mut steps = Vec::new();
    let mut from_ms = window.from_ms;
    while from_ms < window.to_ms {
        let to_ms = (from_ms + step_ms).min(window.to_ms);
        steps.push(Span { from_ms, to_ms });
        from_ms = to_ms;
    }
    Ok(steps)
}

/// A part of a form: `+` is a space, `%` two digits of a byte.
fn decoded(text: &str) -> Result<String, String> {
    let spaced = text.replace('+', " ");
    let found = percent_decode_str(&spaced).decode_utf8();
    let found = found.map_err(|_| format!("`{text}` is not UTF-8"))?;
    match found.chars().any(char::is_control) {
        true => Err("a parameter has control characters".to_owned()),
        false => Ok(found.trim().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-18T10:20:30Z.
    const NOW_MS: u64 = 1_794_997_230_000;

    fn hours(query: &str) -> Vec<u64> {
        let ask = Ask::read(query, NOW_MS).unwrap();
        ask.steps.iter().map(|step| (step.to_ms - step.from_ms) / HOUR_MS).collect()
    }

    #[test]
    fn a_window_is_cut_into_steps_and_accumulated_again() {
        assert_eq!(hours("window=3d"), [72]);
        assert_eq!(hours("window=3d&step=1d"), [24; 3]);
        assert_eq!(hours("window=3d&step=2d&accumulate=false"), [48, 24]);
        assert_eq!(hours("window=3d&step=1d&accumulate=true"), [72]);
        assert_eq!(hours("window=1d&accumulate=hour"), [1; 24]);
        assert_eq!(hours("window=2026-11-01T00%3A00%3A00Z%2C2026-11-02T00%3A00%3A00Z"), [24]);
    }

    #[test]
    fn what_changes_nothing_is_taken_and_what_would_is_refused() {
        let ask = Ask::read(
            "window=7d&aggregate=namespace,label:team&idle=true&resolution=10m&shareIdle=false&filter=",
            NOW_MS,
        );
        let ask = ask.unwrap();
        assert_eq!(ask.aggregate, [Aggregate::Namespace, Aggregate::Label("team".to_owned())]);
        assert!(ask.has_idle);
        for (query, told) in [
            ("", "window: missing"),
            ("window=", "window: missing"),
            ("window=7d&window=8d", "window is set twice"),
            ("window=7d&aggregate=service", "unsupported key `service`"),
            ("window=7d&aggregate=label:", "unsupported key `label:`"),
            ("window=7d&aggregate=pod,,node", "unsupported key ``"),
            ("window=7d&aggregate=pod,pod,pod,pod,pod,pod,pod,pod,pod", "at most 8 keys"),
            ("window=7d&shareIdle=true", "shareIdle"),
            ("window=7d&filter=namespace%3A%22a%22", "filter=namespace:\"a\""),
            ("window=7d&accumulate=month", "accumulate=month"),
            ("window=7d&includeIdle=maybe", "write true or false"),
            ("window=30d&step=1h", "more than 400 steps"),
            ("window=7d&step=90m", "step: `90m`"),
            ("window=7d&x=%FF", "not UTF-8"),
            ("window=7d&x=%00", "control characters"),
        ] {
            let AllocationRefusal(error) = Ask::read(query, NOW_MS).unwrap_err();
            assert!(error.contains(told), "{query}: {error}");
        }
    }
}
