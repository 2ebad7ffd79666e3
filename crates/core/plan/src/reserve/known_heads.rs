//! Which jobs are known to be those that may have a reservation, while nothing changes that this
//! depends on.

use std::sync::Arc;

use dovetail_model::JobId;

use crate::engine::Books;
use dovetail_order::queues::usage::Usage;

/// Of what the first jobs of queues that may have a reservation depend on outside of what is
/// reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Versions {
    jobs: u64,
    claims: u64,
    queues: u64,
    ranks: u64,
}

impl Versions {
    /// As they are now.
    pub(super) fn of(books: &Books) -> Self {
        let Books { jobs, kept, quota, usage, .. } = books;
        Self {
            jobs: jobs.pending.heads.version(),
            claims: kept.claims.version(),
            queues: quota.version(),
            ranks: usage.as_ref().map_or(0, Usage::ranks_version),
        }
    }
}

/// The first jobs of queues that may have a reservation. All that is tried in vain asks for them.
#[derive(Debug, Default)]
pub(super) struct KnownHeads(Option<(Versions, Arc<[JobId]>)>);

impl KnownHeads {
    /// They, if they are known of these versions.
    pub(super) fn of(&self, versions: Versions) -> Option<Arc<[JobId]>> {
        let (known_of, heads) = self.0.as_ref()?;
        (*known_of == versions).then(|| Arc::clone(heads))
    }

    /// They are known of these versions.
    pub(super) fn keep(&mut self, versions: Versions, heads: &Arc<[JobId]>) {
        self.0 = Some((versions, Arc::clone(heads)));
    }

    /// What else they depend on may have changed.
    pub(super) fn forget(&mut self) {
        self.0 = None;
    }
}
