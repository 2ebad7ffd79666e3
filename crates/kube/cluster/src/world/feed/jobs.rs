//! Identities of jobs, which give their position in the order.

use dovetail_model::JobId;

/// Jobs with identities up to this one go ahead of the others of their priority: what completes a
/// gang.
pub(crate) const LAST_AHEAD: u64 = 1 << 40;

/// The position of a new job among the others of its priority and queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueuePosition {
    /// Before the others: it completes a gang.
    Ahead,
    Behind,
}

impl QueuePosition {
    /// That of what completes a gang, or does not.
    pub(crate) fn ahead(is_ahead: bool) -> Self {
        if is_ahead { Self::Ahead } else { Self::Behind }
    }
}

/// How many jobs were named, by position.
#[derive(Debug, Default)]
pub(crate) struct JobsNamed {
    ahead: u64,
    behind: u64,
}

impl JobsNamed {
    /// An identity for a new job.
    pub(crate) fn next(&mut self, place: QueuePosition) -> JobId {
        let (named, before) = match place {
            QueuePosition::Ahead => (&mut self.ahead, 0),
            QueuePosition::Behind => (&mut self.behind, LAST_AHEAD),
        };
        *named += 1;
        JobId(before + *named)
    }
}
