//! One request and its answer, without the client's own repetitions and types.

use bytes::Bytes;
use hyper::Request;
use kube::Client;
use kube::client::Body;
use serde_json::Value;

/// Code, seconds of `Retry-After` and body of an answer; `Err` where none came.
pub(crate) type Answered = Result<(u16, Option<u64>, Bytes), NoAnswer>;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NoAnswer {
    /// The connection was never made: the request was not sent.
    pub(crate) unsent: bool,
    /// What went wrong, with its causes.
    pub(crate) error: String,
}

/// Sends a request as it is, and reads the whole answer.
pub(crate) async fn send(
    client: &Client,
    request: Result<Request<Body>, hyper::http::Error>,
) -> Answered {
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

/// An error with what caused it.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
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

/// The message of a `Status`, or the start of whatever came.
pub(crate) fn message(bytes: &[u8]) -> String {
    let status: Value = serde_json::from_slice(bytes).unwrap_or_default();
    match status["message"].as_str() {
        Some(message) => message.to_owned(),
        None => String::from_utf8_lossy(bytes).chars().take(200).collect(),
    }
}

/// Which right of which account is missing, where a refusal says so and is the same for whatever object: such are the
/// words of API servers when their authorizers say no. Those of admission are others.
pub(crate) fn lacked_right(code: u16, message: &str) -> Option<&str> {
    let (_, verdict) = message.split_once("forbidden: ").filter(|_| code == 403)?;
    let is_about_rights = verdict.starts_with("User \"") && verdict.contains("\" cannot ");
    is_about_rights.then_some(verdict)
}

/// Whether a `Status` says that the object has another UID than the one that was stated.
pub(crate) fn is_about_identity(bytes: &[u8]) -> bool {
    let status: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let causes = status["details"]["causes"].as_array();
    causes.into_iter().flatten().any(|cause| cause["field"] == "metadata.uid")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_right_is_told_from_what_admission_refuses() {
        let right = "pods \"a\" is forbidden: User \"system:serviceaccount:n:s\" cannot delete resource \"pods\" in \
                     API group \"\" in the namespace \"d\"";
        let policy = "pods \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'p' denied request: kept";
        let lacked = lacked_right(403, right).expect("a right");
        let begin = "User \"system:serviceaccount:n:s\" cannot delete resource \"pods\"";
        assert!(lacked.starts_with(begin), "{lacked}");
        let others = [(422, right), (403, policy), (403, "forbidden")];
        assert!(others.iter().all(|(code, text)| lacked_right(*code, text).is_none()));
    }
}
