//! Answers of the query API: series with their samples.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, SeqAccess, Visitor};
use thiserror::Error;

/// Labels of a series by name; `__name__` is the metric's.
pub type Labels = BTreeMap<String, String>;

/// A label of a series, the exporter's own before what Prometheus put over it.
pub(crate) fn own_label(labels: &Labels, name: &str) -> Option<String> {
    let found = labels.get(&format!("exported_{name}")).or_else(|| labels.get(name));
    found.filter(|value| !value.is_empty()).cloned()
}

/// One value of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeriesSample {
    /// When, in ms since 1970.
    pub at_ms: i64,
    /// The value; it may be NaN or infinite.
    pub value: f64,
}

/// A series with its samples, ascending in time.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    pub labels: Labels,
    pub samples: Vec<SeriesSample>,
}

/// A body that is no answer of this API, or one that says what is wrong with the query.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AnswerError {
    /// Not what the API answers.
    #[error("this is not a response of a Prometheus query API: {0}")]
    Form(String),
    /// The server refuses the query.
    #[error("the server rejected the query ({kind}): {message}")]
    Refused {
        /// Prometheus' `errorType`.
        kind: String,
        /// Its words.
        message: String,
    },
    /// Samples of one series that do not ascend in time.
    #[error("series {labels:?} has samples that do not ascend in time, near {at_ms} ms")]
    Order {
        labels: Labels,
        /// The sample that comes too late.
        at_ms: i64,
    },
}

/// What a good answer holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueryResult {
    /// Series, in the server's order.
    pub series: Vec<Series>,
    /// What the server says beside the data, such as that a part of the store did not answer.
    pub warnings: Vec<String>,
}

/// Reads the body of an answer to an instant or a range query.
///
/// # Errors
/// See [`AnswerError`].
pub fn read(body: &[u8]) -> Result<QueryResult, AnswerError> {
    let form = |error: serde_json::Error| AnswerError::Form(error.to_string());
    let envelope: Envelope<'_> = serde_json::from_slice(body).map_err(form)?;
    let data = match (envelope.status.as_ref(), envelope.data) {
        ("success", Some(data)) => data,
        ("error", _) => {
            let kind = envelope.error_type.unwrap_or_default().into_owned();
            let message = envelope.error.unwrap_or_default().into_owned();
            return Err(AnswerError::Refused { kind, message });
        }
        (status, _) => return Err(AnswerError::Form(format!("status `{status}` without data"))),
    };
    let mut series = Vec::with_capacity(data.result.len());
    for raw in data.result {
        let samples = match (raw.values, raw.value) {
            (Some(values), None) => values,
            (None, Some(value)) => vec![value],
            _ => return Err(AnswerError::Form("a series without samples".to_owned())),
        };
        let samples: Vec<SeriesSample> = samples.into_iter().map(|point| point.0).collect();
        if let Some(pair) = samples.windows(2).find(|pair| pair[1].at_ms <= pair[0].at_ms) {
            return Err(AnswerError::Order { labels: raw.metric, at_ms: pair[1].at_ms });
        }
        series.push(Series { labels: raw.metric, samples });
    }
    Ok(QueryResult { series, warnings: envelope.warnings })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<'a> {
    #[serde(borrow)]
    status: Cow<'a, str>,
    data: Option<Data>,
    #[serde(borrow)]
    error_type: Option<Cow<'a, str>>,
    #[serde(borrow)]
    error: Option<Cow<'a, str>>,
    #[serde(default)]
    warnings: Vec<String>,
}

#[derive(Deserialize)]
struct Data {
    result: Vec<RawSeries>,
}

#[derive(Deserialize)]
struct RawSeries {
    metric: Labels,
    values: Option<Vec<Point>>,
    value: Option<Point>,
}

/// `[seconds, "value"]`.
struct Point(SeriesSample);

impl<'de> Deserialize<'de> for Point {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pair;
        impl<'de> Visitor<'de> for Pair {
            type Value = Point;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a time in seconds and a value in quotes")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut pair: A) -> Result<Point, A::Error> {
                let short = || A::Error::custom("a sample of fewer than two parts");
                let seconds: f64 = pair.next_element()?.ok_or_else(short)?;
                let text: Text<'_> = pair.next_element()?.ok_or_else(short)?;
                let at_ms = (seconds * 1000.0).round();
                // Years 1970 to 10000: everything else is no time of a sample.
                if !(0.0..=253_402_300_800_000.0).contains(&at_ms) {
                    return Err(A::Error::custom(format!("{seconds} is not a sample time")));
                }
                let value = parse_value(&text.0)
                    .ok_or_else(|| A::Error::custom(format!("`{}` is not a value", text.0)))?;
                Ok(Point(SeriesSample { at_ms: at_ms as i64, value }))
            }
        }
        deserializer.deserialize_tuple(2, Pair)
    }
}

/// A string without a copy where it stands as it is.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// Prometheus writes `NaN`, `+Inf` and `-Inf` beside decimal numbers.
fn parse_value(text: &str) -> Option<f64> {
    match text {
        "NaN" => Some(f64::NAN),
        "+Inf" | "Inf" => Some(f64::INFINITY),
        "-Inf" => Some(f64::NEG_INFINITY),
        // Rust also reads words that Prometheus never writes.
        text if text.bytes().any(|byte| byte.is_ascii_digit()) => text.parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(values: &str) -> String {
        format!(
            r#"{{"status":"success","data":{{"resultType":"matrix","result":[
                {{"metric":{{"__name__":"m","gpu":"0"}},"values":{values}}}]}}}}"#
        )
    }

    #[test]
    fn ranges_and_instants_are_read() {
        let answer = read(matrix(r#"[[1.5,"0.25"],[2,"NaN"],[3,"+Inf"]]"#).as_bytes()).unwrap();
        let [series] = &answer.series[..] else { panic!("{answer:?}") };
        let found: Vec<(i64, String)> =
            series.samples.iter().map(|s| (s.at_ms, s.value.to_string())).collect();
        assert_eq!(found, [(1500, "0.25".into()), (2000, "NaN".into()), (3000, "inf".into())]);
        assert_eq!(series.labels["gpu"], "0");
        let instant = r#"{"status":"success","data":{"resultType":"vector","result":[
            {"metric":{},"value":[7,"1"]}]},"warnings":["a store did not answer"]}"#;
        let answer = read(instant.as_bytes()).unwrap();
        assert_eq!(answer.series[0].samples, [SeriesSample { at_ms: 7000, value: 1.0 }]);
        assert_eq!(answer.warnings, ["a store did not answer"]);
    }

    #[test]
    fn a_refusal_keeps_the_words_of_the_server() {
        let body = r#"{"status":"error","errorType":"bad_data","error":"parse error"}"#;
        let refused =
            AnswerError::Refused { kind: "bad_data".into(), message: "parse error".into() };
        assert_eq!(read(body.as_bytes()), Err(refused));
    }

    #[test]
    fn garbage_is_named_and_never_a_panic() {
        let whole = matrix(r#"[[1,"1"],[2,"2"]]"#);
        // Cut off anywhere.
        for end in 0..whole.len() {
            let problem = read(&whole.as_bytes()[..end]).unwrap_err();
            assert!(matches!(problem, AnswerError::Form(_)), "{end}: {problem}");
        }
        for values in [
            r#"[[1]]"#,
            r#"[[]]"#,
            r#"[[1,"1",2]]"#,
            r#"[["1","1"]]"#,
            r#"[[1,1]]"#,
            r#"[[1,null]]"#,
            r#"[[-1,"1"]]"#,
            r#"[[1e300,"1"]]"#,
            r#"[[1,""]]"#,
            r#"[[1,"nan"]]"#,
            r#"[[1,"infinity"]]"#,
            r#"[[1,"1,5"]]"#,
            r#"[[1,"0x1"]]"#,
            r#"[1,"1"]"#,
            r#"{}"#,
            r#"null"#,
            r#""1""#,
            r#"[[NaN,"1"]]"#,
        ] {
            let problem = read(matrix(values).as_bytes()).unwrap_err();
            assert!(matches!(problem, AnswerError::Form(_)), "{values}: {problem}");
        }
        for body in [
            "",
            "<html>502</html>",
            "null",
            "[]",
            "{}",
            r#"{"status":"success"}"#,
            r#"{"status":1}"#,
            r#"{"status":"success","data":{"result":7}}"#,
            r#"{"status":"success","data":{"result":[{}]}}"#,
            r#"{"status":"success","data":{"result":[{"metric":{"a":1},"value":[1,"1"]}]}}"#,
        ] {
            assert!(matches!(read(body.as_bytes()), Err(AnswerError::Form(_))), "{body}");
        }
        for twice in [r#"[[2,"1"],[2,"1"]]"#, r#"[[2,"1"],[1,"1"]]"#] {
            let problem = read(matrix(twice).as_bytes()).unwrap_err();
            assert!(matches!(problem, AnswerError::Order { .. }), "{problem}");
        }
        // A value that JSON would nest without end is refused by depth, not by the stack.
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(matches!(read(deep.as_bytes()), Err(AnswerError::Form(_))));
    }
}
