//! Probes and metrics over HTTP.

use std::io;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;

use super::metrics::Metrics;
use super::status::Status;

/// The type of [`Metrics::open_metrics`], for who names its first part.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// The type of [`Metrics::plain`], for everybody else.
const PLAIN: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Answers `/livez`, `/healthz`, `/readyz` and `/metrics` until it is dropped.
///
/// # Errors
/// When the listener breaks.
pub async fn serve(
    listener: TcpListener,
    status: Arc<Status>,
    metrics: Arc<Metrics>,
) -> io::Result<()> {
    axum::serve(listener, routes(status, metrics)).await
}

fn routes(status: Arc<Status>, metrics: Arc<Metrics>) -> Router {
    let probes = Router::new()
        .route("/livez", get(live))
        .route("/healthz", get(live))
        .route("/readyz", get(ready))
        .with_state(status);
    Router::new().route("/metrics", get(all_metrics)).with_state(metrics).merge(probes)
}

async fn live(State(status): State<Arc<Status>>) -> impl IntoResponse {
    answer(&status, status.is_alive())
}

async fn ready(State(status): State<Arc<Status>>) -> impl IntoResponse {
    answer(&status, status.is_ready())
}

fn answer(status: &Status, good: bool) -> impl IntoResponse + use<> {
    let code = if good { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let trouble = status.trouble().map(|trouble| format!("{trouble}\n")).unwrap_or_default();
    (code, format!("{:?}\n{trouble}", status.standing()))
}

async fn all_metrics(State(metrics): State<Arc<Metrics>>, asked: HeaderMap) -> impl IntoResponse {
    let accept = asked.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    let (kind, text) = match accept.is_some_and(wants_open_metrics) {
        true => (OPEN_METRICS, metrics.open_metrics()),
        false => (PLAIN, metrics.plain()),
    };
    ([(header::CONTENT_TYPE, kind)], text)
}

/// Whether a header `Accept` names OpenMetrics and does not refuse it (`q=0`).
fn wants_open_metrics(accept: &str) -> bool {
    accept.split(',').any(|kind| {
        let mut parts = kind.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let weight = parts.find_map(|part| part.strip_prefix("q="));
        let weight = weight.and_then(|weight| weight.parse::<f64>().ok()).unwrap_or(1.0);
        name.eq_ignore_ascii_case("application/openmetrics-text") && weight > 0.0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_for_open_metrics_gets_it_and_nobody_else() {
        let prometheus =
            "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.3,*/*;q=0.1";
        for accept in [prometheus, "Application/OpenMetrics-Text"] {
            assert!(wants_open_metrics(accept), "{accept}");
        }
        for accept in ["application/openmetrics-text; q=0, text/plain", "text/plain", "*/*", ""] {
            assert!(!wants_open_metrics(accept), "{accept}");
        }
    }
}
