//! Kills for memory, as far as objects prove them. Of a container the API server keeps how often it
//! was started again and the last end alone, and its own where it is over: what was before that is
//! told by nobody.

use dovetail_facts::MemoryKills;

use super::detail::{ContainerStatusDetail, PodStatusDetail, TerminatedDetail};

/// They are counted so far back.
const WINDOW_MS: u64 = 7 * 24 * 3_600_000;

/// Those of the containers of a pod.
pub(super) fn of_pod(status: &PodStatusDetail<'_>, now_ms: u64) -> MemoryKills {
    let statuses = status.container_statuses.iter().chain(&status.init_container_statuses);
    statuses.fold(MemoryKills::default(), |sum, of| sum.and(of_container(of, now_ms)))
}

fn of_container(status: &ContainerStatusDetail<'_>, now_ms: u64) -> MemoryKills {
    let last = status.last_state.terminated.as_ref();
    let ends = [last, status.state.terminated.as_ref()];
    let mut kills = MemoryKills::default();
    for ended in ends.into_iter().flatten().filter(|ended| ended.reason == "OOMKilled") {
        match is_recent(ended, now_ms) {
            Some(true) => kills.proven += 1,
            Some(false) => {}
            None => kills.may_be_more = true,
        }
    }
    // Who ended before the last end did so even longer ago.
    let is_told = status.restart_count <= u32::from(last.is_some());
    let is_old = last.is_some_and(|ended| is_recent(ended, now_ms) == Some(false));
    kills.may_be_more |= !is_told && !is_old;
    kills
}

/// Whether a container ended in the last seven days; `None` if it does not say when.
fn is_recent(ended: &TerminatedDetail<'_>, now_ms: u64) -> Option<bool> {
    Some(now_ms.saturating_sub(ended.finished_at.0?) <= WINDOW_MS)
}
