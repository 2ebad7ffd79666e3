//! Probes and metrics over HTTP.

use std::io;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use dovetail_exposition::ExpositionFormat;
use tokio::net::TcpListener;

use super::metrics::Metrics;
use super::status::Status;

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
    let format = ExpositionFormat::accepted(accept);
    ([(header::CONTENT_TYPE, format.content_type())], format.write(metrics.open_metrics()))
}
