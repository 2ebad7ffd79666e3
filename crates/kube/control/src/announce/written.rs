//! What became of what was announced, by the answer of the server.

use super::AnnouncedWrite;
use crate::answer::{Answered, message};

/// What became of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteOutcome {
    /// It is there, or was before.
    Done,
    /// The pod is not what it was: gone, another one, or changed.
    Changed,
    /// The server will refuse it again, such as for missing rights.
    Refused {
        code: u16,
        /// What the server says.
        message: String,
    },
    /// The server asks for a pause, failed, or did not answer.
    Troubled { retry_after_ms: Option<u64> },
    /// This process does not lead any more. Nothing was sent.
    NotLeading,
}

/// A write and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteResult {
    pub write: AnnouncedWrite,
    pub written: WriteOutcome,
}

/// What an answer to a write means; without one, it was not sent.
pub(crate) fn judge(write: &AnnouncedWrite, answered: Option<&Answered>) -> WriteOutcome {
    let Some(answered) = answered else { return WriteOutcome::NotLeading };
    let Ok((code, retry_after_s, body)) = answered else {
        return WriteOutcome::Troubled { retry_after_ms: None };
    };
    let is_event = matches!(write, AnnouncedWrite::Event(..));
    match code {
        200..=299 => WriteOutcome::Done,
        // An event of this name says the same.
        409 if is_event => WriteOutcome::Done,
        // 422 is a pod of the same name with another UID.
        404 | 409 => WriteOutcome::Changed,
        // So is the test of an identity that fails, and an object whose version was not the one
        // expected.
        422 if !is_event => WriteOutcome::Changed,
        400..=499 if *code != 429 => WriteOutcome::Refused { code: *code, message: message(body) },
        _ => {
            let retry_after_ms = retry_after_s.map(|seconds| seconds.saturating_mul(1_000));
            WriteOutcome::Troubled { retry_after_ms }
        }
    }
}
