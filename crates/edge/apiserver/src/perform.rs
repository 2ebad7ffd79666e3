//! Performs one request, and returns its answer.

use dovetail_control::answer::Answered;
use dovetail_control::request::{ApiRequest, Method};
use kube::Client;
use kube::client::Body;

use crate::client::send;

/// Sends a request as it is. `timeout_ms`: the server drops it after so long.
pub async fn perform(client: &Client, request: ApiRequest, timeout_ms: Option<u128>) -> Answered {
    let ApiRequest { method, mut path, media_type, body, .. } = request;
    if let Some(timeout_ms) = timeout_ms {
        let joint = if path.contains('?') { '&' } else { '?' };
        path = format!("{path}{joint}timeout={timeout_ms}ms");
    }
    let method = match method {
        Method::Get => hyper::Method::GET,
        Method::Post => hyper::Method::POST,
        Method::Put => hyper::Method::PUT,
        Method::Patch => hyper::Method::PATCH,
        Method::Delete => hyper::Method::DELETE,
    };
    let mut sent = hyper::Request::builder().method(method).uri(path);
    if !media_type.is_empty() {
        sent = sent.header("Content-Type", media_type);
    }
    let body = if body.is_empty() { Body::empty() } else { Body::from(body) };
    send(client, sent.body(body)).await
}
