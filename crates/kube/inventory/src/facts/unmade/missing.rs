//! Of an object with fewer pods than it wants: how many of them a quota keeps from being made.

use super::quota::{QuotaRoom, room};
use super::{Fate, PodSet, Says};

/// How many pods are not there for which reason. `there` is how many are there. What the quotas
/// would let in, and nobody says is refused, is about to be made, or follows when others are ready.
pub(super) fn missing(
    set: &PodSet,
    there: u64,
    says: Says,
    quotas: &[QuotaRoom],
) -> [(Fate, u64); 2] {
    let missing = set.pods().saturating_sub(there);
    let room = room(quotas, &set.pod.requests, &set.scoped);
    let by_quotas = room.map_or(0, |room| missing.saturating_sub(room));
    let (no_quota, refused) = match says {
        Says::NoQuota => (missing, 0),
        Says::Nothing => (by_quotas, 0),
        Says::Refused | Says::SomethingElse => (by_quotas, missing - by_quotas),
    };
    [(Fate::WaitsForQuota, no_quota), (Fate::Refused, refused)]
}
