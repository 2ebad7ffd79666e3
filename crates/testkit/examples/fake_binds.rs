//! How many binds per second the fake server takes: `cargo run --release -p dovetail-testkit
//! --example fake_binds -- [pods] [in flight] [bytes of padding per pod]`.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use bytes::Bytes;
use dovetail_testkit::FakeApi;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::json;

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<usize>());
    let mut number = |default| numbers.next().unwrap_or(Ok(default));
    let (pods, in_flight, padding) = (number(50_000)?, number(64)?, number(1_000)?);
    let api = FakeApi::start()?;
    for at in 0..pods {
        let pod = json!({
            "metadata": {"name": format!("p{at}"), "annotations": {"padding": "x".repeat(padding)}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        });
        api.create("pods", "default", &pod)?;
    }
    for http2 in [false, true] {
        let client =
            Client::builder(TokioExecutor::new()).http2_only(http2).build_http::<Full<Bytes>>();
        let half = pods / 2;
        let first = if http2 { half } else { 0 };
        let next = Arc::new(AtomicUsize::new(first));
        let start = Instant::now();
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..in_flight {
            let (client, next, url) = (client.clone(), next.clone(), api.url().to_owned());
            tasks.spawn(async move {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= first + half {
                        return Ok::<(), Failure>(());
                    }
                    let body = format!(
                        r#"{{"metadata":{{"name":"p{at}"}},"target":{{"kind":"Node","name":"n{}"}}}}"#,
                        at % 1000
                    );
                    let path = format!("{url}/api/v1/namespaces/default/pods/p{at}/binding");
                    let request = hyper::Request::post(path).body(Full::new(Bytes::from(body)))?;
                    let response = client.request(request).await?;
                    assert_eq!(response.status(), 201);
                    response.into_body().collect().await?;
                }
            });
        }
        while let Some(done) = tasks.join_next().await {
            done??;
        }
        let seconds = start.elapsed().as_secs_f64();
        let version = if http2 { "HTTP/2, one connection" } else { "HTTP/1.1" };
        let rate = half as f64 / seconds;
        writeln!(
            std::io::stdout(),
            "{version}: {half} binds in {seconds:.2} s, {rate:.0} per second"
        )?;
    }
    assert_eq!(api.bound().len(), pods / 2 * 2);
    Ok(())
}
