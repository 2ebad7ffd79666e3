//! The answer to one request, and what it says of missing rights and other objects of the same
//! name.

use bytes::Bytes;
use serde_json::Value;

/// Code, seconds of `Retry-After` and body of an answer; `Err` where none came.
pub type Answered = Result<(u16, Option<u64>, Bytes), NoAnswer>;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoAnswer {
    /// The connection was never made: the request was not sent.
    pub unsent: bool,
    /// What went wrong, with its causes.
    pub error: String,
}

/// The message of a `Status`, or the start of whatever came.
pub fn message(bytes: &[u8]) -> String {
    let status: Value = serde_json::from_slice(bytes).unwrap_or_default();
    match status["message"].as_str() {
        Some(message) => message.to_owned(),
        None => String::from_utf8_lossy(bytes).chars().take(200).collect(),
    }
}

/// Which right of which account is missing, where a refusal says so and is the same for whatever
/// object: such are the words of API servers when their authorizers say no. Those of admission are
/// others.
pub fn lacked_right(code: u16, message: &str) -> Option<&str> {
    let (_, verdict) = message.split_once("forbidden: ").filter(|_| code == 403)?;
    let is_about_rights = verdict.starts_with("User \"") && verdict.contains("\" cannot ");
    is_about_rights.then_some(verdict)
}

/// Whether a `Status` says that the object has another UID than the one that was stated.
pub fn is_about_identity(bytes: &[u8]) -> bool {
    let status: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let causes = status["details"]["causes"].as_array();
    causes.into_iter().flatten().any(|cause| cause["field"] == "metadata.uid")
}

/// Whether 409 says that the object has another UID or version than was stated.
pub fn is_about_precondition(bytes: &[u8]) -> bool {
    message(bytes).contains("recondition")
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
