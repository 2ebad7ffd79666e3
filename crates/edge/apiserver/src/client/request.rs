//! One request and its answer, without the client's own repetitions and types.

use hyper::Request;
use kube::Client;
use kube::client::Body;

use dovetail_control::answer::{Answered, NoAnswer};

use super::credentials::problem;

/// Sends a request as it is, and reads the whole answer.
pub async fn send(client: &Client, request: Result<Request<Body>, hyper::http::Error>) -> Answered {
    let unsent = |error: String| NoAnswer { unsent: true, error };
    let request = request.map_err(|error| unsent(error.to_string()))?;
    let response = client
        .send(request)
        .await
        .map_err(|error| NoAnswer { unsent: is_unsent(&error), error: with_causes(&error) })?;
    let code = response.status().as_u16();
    let retry_after_s = response.headers().get("Retry-After");
    let retry_after_s = retry_after_s.and_then(|value| value.to_str().ok()?.parse().ok());
    if code == 201 {
        // It is done, whatever becomes of the rest of its answer. It is read all the same, for
        // the connection to be used again.
        let bytes = response.into_body().collect_bytes().await.unwrap_or_default();
        return Ok((code, retry_after_s, bytes));
    }
    let bytes = response.into_body().collect_bytes().await;
    let bytes = bytes.map_err(|error| NoAnswer { unsent: false, error: with_causes(&error) })?;
    Ok((code, retry_after_s, bytes))
}

/// Whether the connection was never made.
fn is_unsent(error: &kube::Error) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(one) = cause {
        if let Some(client) = one.downcast_ref::<hyper_util::client::legacy::Error>() {
            return client.is_connect();
        }
        cause = one.source();
    }
    false
}

/// An error with what caused it; nothing that a command for credentials printed is in it.
pub fn with_causes(error: &(dyn std::error::Error + 'static)) -> String {
    if let Some(problem) = problem(error) {
        return problem;
    }
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(one) = cause {
        // Some say what their cause says, too.
        let one_says = one.to_string();
        if !text.ends_with(&one_says) {
            text = format!("{text}: {one_says}");
        }
        cause = one.source();
    }
    text
}
