//! PromQL for the latency histogram of a workload.

macro_rules! by_pod {
    ($series:literal) => {
        concat!(
            "sum by (le) (increase(",
            $series,
            "{namespace=\"$namespace\",pod=~\"$pods\"}[$window]))"
        )
    };
}

/// Histograms that are known, in the order in which they are tried: the model server's own, then
/// those of proxies before it.
///
/// vLLM: vllm/v1/metrics/loggers.py; TGI: the page Metrics of its documentation; Knative: the
/// queue-proxy's request metrics, of OpenTelemetry and of OpenCensus before; Istio: standard
/// metrics, reported by the destination.
pub const BUILT_IN: [(&str, &str); 5] = [
    ("vLLM", by_pod!("vllm:e2e_request_latency_seconds_bucket")),
    ("TGI", by_pod!("tgi_request_duration_bucket")),
    ("Knative", by_pod!("kn_serving_invocation_duration_seconds_bucket")),
    ("Knative before 1.20", by_pod!("revision_request_latencies_bucket")),
    (
        "Istio",
        "sum by (le) (increase(istio_request_duration_milliseconds_bucket{reporter=\"destination\",\
         destination_workload_namespace=\"$namespace\",destination_workload=\"$workload\",\
         pod=~\"$pods\"}[$window]))",
    ),
];

/// The placeholder that a query must have.
const WINDOW: &str = "$window";
const PLACEHOLDERS: [&str; 4] = [WINDOW, "$namespace", "$workload", "$pods"];

/// Whose requests are asked for, and over which time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked<'a> {
    pub namespace: &'a str,
    pub workload: &'a str,
    /// Regular expression of the names of its pods.
    pub pods: &'a str,
    pub window_ms: u64,
}

/// A query with its placeholders filled in.
pub fn fill(query: &str, asked: &Asked<'_>) -> String {
    query
        .replace(WINDOW, &format!("{}ms", asked.window_ms.max(1)))
        .replace("$namespace", &harmless(asked.namespace))
        .replace("$workload", &harmless(asked.workload))
        .replace("$pods", &format!("(?:{})", asked.pods))
}

/// What is wrong with a query of a policy; `None` if nothing is that shows without a server.
pub fn problem(query: &str) -> Option<String> {
    if query.trim().is_empty() {
        return None;
    }
    if !query.contains(WINDOW) {
        return Some(format!(
            "it has no {WINDOW}: write a query such as sum by (le) (increase(NAME_bucket{{\
             namespace=\"$namespace\",pod=~\"$pods\"}}[{WINDOW}]))"
        ));
    }
    let unknown = query.match_indices('$').find_map(|(start, _)| {
        let rest = &query[start..];
        let is_known = PLACEHOLDERS.iter().any(|name| rest.starts_with(name));
        let name: String = rest
            .chars()
            .take(1)
            .chain(rest.chars().skip(1).take_while(char::is_ascii_alphanumeric))
            .collect();
        (!is_known).then_some(name)
    });
    if let Some(name) = unknown {
        return Some(format!("unknown placeholder {name}: use {}", PLACEHOLDERS.join(", ")));
    }
    balance(query)
}

/// Brackets outside of quotes that do not match.
fn balance(query: &str) -> Option<String> {
    let (mut open, mut quote, mut is_escaped) = (Vec::new(), None, false);
    for letter in query.chars() {
        match (quote, letter) {
            (Some(_), _) if is_escaped => is_escaped = false,
            (Some('"' | '\''), '\\') => is_escaped = true,
            (Some(end), _) if letter == end => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'' | '`') => quote = Some(letter),
            (None, '(' | '[' | '{') => open.push(letter),
            (None, ')' | ']' | '}') => {
                let opened = open.pop();
                if !matches!(
                    (opened, letter),
                    (Some('('), ')') | (Some('['), ']') | (Some('{'), '}')
                ) {
                    return Some(format!("its `{letter}` has no opening bracket"));
                }
            }
            _ => {}
        }
    }
    if quote.is_some() {
        return Some("a quote is not closed".to_owned());
    }
    open.pop().map(|letter| format!("its `{letter}` is not closed"))
}

/// A name of an object: without letters that could leave its quotes.
fn harmless(name: &str) -> String {
    let is_plain = |letter: &char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '.');
    name.chars().filter(is_plain).collect()
}

/// The regular expression of one name.
pub fn exactly(name: &str) -> String {
    harmless(name).replace('.', "[.]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_filled_in_and_a_typo_is_named() {
        let asked =
            Asked { namespace: "prod", workload: "chat", pods: "chat-.+", window_ms: 900_000 };
        let (_, vllm) = BUILT_IN[0];
        assert_eq!(
            fill(vllm, &asked),
            "sum by (le) (increase(vllm:e2e_request_latency_seconds_bucket{namespace=\"prod\",\
             pod=~\"(?:chat-.+)\"}[900000ms]))"
        );
        for (name, query) in BUILT_IN {
            assert_eq!(problem(query), None, "{name}");
        }
        let says = |query: &str, words: &str| {
            let problem = problem(query).unwrap_or_default();
            assert!(problem.contains(words), "{query}: {problem}");
        };
        says("rate(a_bucket[5m])", "it has no $window");
        says("increase(a_bucket{job=\"$job\"}[$window])", "unknown placeholder $job: use $window");
        says("sum(increase(a_bucket[$window])", "its `(` is not closed");
        says("increase(a_bucket{job=\"x}[$window])", "a quote is not closed");
        says("increase(a_bucket[$window)]", "its `)` has no opening bracket");
        assert_eq!(problem("increase(a_bucket{path=\"/(\\\"\"}[$window])"), None);
        assert_eq!(exactly("chat-1.2\"}"), "chat-1[.]2");
    }
}
