//! What is logged about the writes of orders.

use super::kinds::OrderEnd;
use super::step::OrderWrite;
use crate::answer::lacked_right;
use crate::repeats::{Repeats, without_names};

/// The same refusal is logged again after so long.
const LOGGED_AGAIN_MS: u64 = 300_000;

/// A line for the log about one write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepNews {
    /// Namespace of the pod or claim.
    pub namespace: String,
    pub name: String,
    /// What was to be done, after `cannot`.
    pub what: &'static str,
    pub went: Went,
}

/// How a write went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Went {
    /// It is done.
    Well,
    /// It failed, and is tried again.
    Again { problem: String },
    /// The scheduler's account lacks a right.
    WithoutRight {
        /// The right, as roles name it.
        right: &'static str,
        code: u16,
        /// What the server says.
        message: String,
    },
    Refused {
        code: u16,
        /// What the server says.
        message: String,
    },
    /// The server has failed to answer again and again.
    Unanswered { problem: String },
}

/// Lines that were not taken yet, and what was logged lately.
#[derive(Debug)]
pub(super) struct StepLog {
    repeats: Repeats<&'static str>,
    lines: Vec<StepNews>,
}

impl Default for StepLog {
    fn default() -> Self {
        Self { repeats: Repeats::every(LOGGED_AGAIN_MS), lines: Vec::new() }
    }
}

impl StepLog {
    pub(super) fn line(&mut self, step: &OrderWrite, went: Went) {
        let (namespace, name) = step.about();
        let (namespace, name, what) = (namespace.to_owned(), name.to_owned(), step.what());
        self.lines.push(StepNews { namespace, name, what, went });
    }

    /// Logs that a write failed, unless the same was logged a short while ago.
    pub(super) fn log_failure(&mut self, step: &OrderWrite, end: &OrderEnd, own_ms: u64) {
        let (went, key, text) = match end {
            OrderEnd::Done | OrderEnd::Gone | OrderEnd::CalledOff => return,
            OrderEnd::Refused { code, message } => {
                let (code, text) = (*code, message.clone());
                match lacked_right(code, message) {
                    Some(lacked) => {
                        let right = step.right();
                        (Went::WithoutRight { right, code, message: text }, right, lacked)
                    }
                    None => (Went::Refused { code, message: text }, step.what(), message.as_str()),
                }
            }
            OrderEnd::Unanswered { problem } => {
                (Went::Unanswered { problem: problem.clone() }, step.what(), problem.as_str())
            }
        };
        // A policy that refuses many pods is logged once, and not with the name of each.
        let (namespace, name) = step.about();
        let text = match went {
            Went::WithoutRight { .. } => text.to_owned(),
            _ => without_names(text, [namespace, name]),
        };
        if self.repeats.is_due(key, &text, own_ms) {
            self.line(step, went);
        }
    }

    /// The lines since the last call.
    pub(super) fn take(&mut self) -> Vec<StepNews> {
        std::mem::take(&mut self.lines)
    }
}
