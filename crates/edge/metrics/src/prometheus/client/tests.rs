//! A server that answers as told: the client must ask for every point once, and give up in time.

use std::collections::VecDeque;
use std::sync::Mutex;

use bytes::Bytes;
use dovetail_cases::cases;
use futures_util::future::BoxFuture;
use proptest::prelude::*;

use super::*;

/// Answers ranges with one point per step, and refuses what is more than it takes.
struct Scripted {
    most_points: i64,
    first: Mutex<VecDeque<HttpReply>>,
    asked: Mutex<Vec<String>>,
}

impl Scripted {
    fn new(most_points: i64, first: impl IntoIterator<Item = HttpReply>) -> Self {
        let first = Mutex::new(first.into_iter().collect());
        Self { most_points, first, asked: Mutex::default() }
    }
}

fn reply(status: u16, body: &str) -> HttpReply {
    HttpReply { status, retry_after: None, body: Bytes::from(body.to_owned()) }
}

impl Transport for Scripted {
    fn name(&self) -> &str {
        "http://scripted"
    }

    fn get<'a>(
        &'a self,
        path: &'a str,
        _most_bytes: usize,
    ) -> BoxFuture<'a, Result<HttpReply, TransportError>> {
        self.asked.lock().unwrap().push(path.to_owned());
        let first = self.first.lock().unwrap().pop_front();
        let answer = first.unwrap_or_else(|| self.points(path));
        Box::pin(async { Ok(answer) })
    }
}

impl Scripted {
    fn points(&self, path: &str) -> HttpReply {
        let number = |name: &str| -> i64 {
            let (_, rest) = path.split_once(&format!("&{name}=")).unwrap();
            let text = rest.split('&').next().unwrap().replace('.', "");
            text.parse().unwrap()
        };
        let (from, to, step) = (number("start"), number("end"), number("step"));
        if (to - from) / step + 1 > self.most_points {
            let refusal = r#"{"status":"error","errorType":"bad_data",
                "error":"exceeded maximum resolution of 11,000 points per timeseries"}"#;
            return reply(400, refusal);
        }
        let values: Vec<String> = (from..=to)
            .step_by(step as usize)
            .map(|at| format!(r#"[{}.{:03},"{at}"]"#, at / 1000, at % 1000))
            .collect();
        let values = values.join(",");
        reply(
            200,
            &format!(
                r#"{{"status":"success","data":{{"resultType":"matrix","result":[{{"metric":{{}},"values":[{values}]}}]}}}}"#
            ),
        )
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn every_point_is_asked_for_once(
        from_ms in 0_i64..10_000_000, points in 0_i64..400, step_ms in 1_i64..90_000, rest in 0_i64..1_000,
        chunk in 1_u32..200, most_points in 1_i64..200,
    ) {
        let to_ms = from_ms + (points - 1) * step_ms + rest.min(step_ms - 1);
        let range = RangeQuery { query: "up".into(), from_ms, to_ms, step_ms };
        let limits = Limits { points: chunk, ..Limits::default() };
        let mut client = PrometheusClient::new(Scripted::new(most_points, []), limits);
        let mut found = Vec::new();
        runtime().block_on(client.range(&range, |series| {
            found.extend(series.into_iter().flat_map(|series| series.samples));
        })).unwrap();
        let expected: Vec<i64> = (0..points).map(|at| from_ms + at * step_ms).collect();
        prop_assert_eq!(found.iter().map(|sample| sample.at_ms).collect::<Vec<_>>(), expected);
    }
}

#[test]
fn what_passes_is_tried_again_and_what_does_not_is_told() {
    let good = r#"{"status":"success","data":{"resultType":"vector","result":[]}}"#;
    let busy = HttpReply { retry_after: Some(Duration::from_secs(7)), ..reply(429, "slow down") };
    let script = Scripted::new(1, [busy, reply(503, "<html>no server</html>"), reply(200, good)]);
    let mut client = PrometheusClient::new(script, Limits::default());
    runtime().block_on(async {
        let begun = tokio::time::Instant::now();
        assert_eq!(client.instant("up", 5).await, Ok(Vec::new()));
        // What the server asks for, then twice the first pause.
        assert_eq!(begun.elapsed(), Duration::from_millis(7_500));
    });
    assert_eq!(client.notes().retries, 2);
    let asked = client.transport.asked.lock().unwrap().clone();
    assert_eq!(asked[0], "/api/v1/query?query=up&time=0.005");

    let down = std::iter::repeat_with(|| reply(502, "bad\ngateway")).take(9);
    let mut client = PrometheusClient::new(Scripted::new(1, down), Limits::default());
    let problem = runtime().block_on(client.instant("up", 5)).unwrap_err().to_string();
    assert_eq!(problem, "http://scripted returned status 502 (attempts: 5): bad gateway");
    for (status, body, words) in [
        (401, "no", "pass a token"),
        (404, "page not found", "/api/v1/query is served"),
        (400, r#"{"status":"error","errorType":"bad_data","error":"parse error"}"#, "parse error"),
        (200, "<html>sign in</html>", "not a response of a Prometheus"),
    ] {
        let script = Scripted::new(1, [reply(status, body)]);
        let mut client = PrometheusClient::new(script, Limits::default());
        let problem = runtime().block_on(client.instant("up{", 5)).unwrap_err().to_string();
        assert!(problem.contains(words), "{problem}");
        assert_eq!(client.notes().retries, 0);
    }
}
