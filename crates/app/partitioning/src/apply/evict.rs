//! Pods evicted one after the other, so that the layout of their node can change.

use anyhow::Result;
use dovetail_console::clock::now_ms;
use dovetail_sharing::{MoveFacts, PodMove, Record, Seen, evicting, held_up};
use serde_json::Value;

use super::replace::{First, first};
use super::sender::Sender;
use crate::server::{Eviction, Server};

/// Evicts a pod if its owner and the server let it go now; otherwise says why not.
pub(super) async fn evict(to: &Sender<'_>, seen: &Seen, one: &PodMove) -> Result<Option<String>> {
    let Some(record) = &seen.record else { return Ok(None) };
    let ready = match one.is_replica {
        true => ready_others(to.server, one).await?,
        false => 0,
    };
    let why = match first(to, seen, (record, one), ready).await? {
        First::Added => return Ok(None),
        First::Wait(why) => why,
        First::Nothing if one.is_replica && ready == 0 => {
            format!("no other replica of {} {} is ready", one.owner.kind, one.owner.name)
        }
        First::Nothing => match to.server.evict(&one.pod, &one.uid, true).await? {
            Eviction::Refused(why) => why,
            Eviction::Accepted => return evict_now(to, seen, record, one).await,
        },
    };
    if let Some(write) = held_up(seen, record, one, &why, now_ms()) {
        to.write(&seen.node, &write).await?;
    }
    Ok(Some(format!("{}: {why}", one.pod)))
}

/// Records that a pod is evicted, and asks for it.
async fn evict_now(
    to: &Sender<'_>,
    seen: &Seen,
    record: &Record,
    one: &PodMove,
) -> Result<Option<String>> {
    if one.evicted_ms.is_none() {
        let (write, of_owner) = evicting(seen, record, one, now_ms());
        if !to.write(&seen.node, &write).await? {
            return Ok(None);
        }
        to.app.note(&format!("node {}: evicting {}", seen.node, one.words()));
        to.tell(&of_owner).await;
    }
    // What is refused now, after all, is asked again with the next look at the node.
    match to.server.evict(&one.pod, &one.uid, false).await? {
        Eviction::Accepted => Ok(None),
        Eviction::Refused(why) => Ok(Some(format!("{}: {why}", one.pod))),
    }
}

/// The other pods of a pod's owner that are ready.
async fn ready_others(server: &Server, one: &PodMove) -> Result<u64> {
    let pods = server.pods_in(&one.owner.namespace).await?;
    let is_other = |pod: &&Value| {
        let facts: MoveFacts = serde_json::from_value((*pod).clone()).unwrap_or_default();
        pod["metadata"]["uid"] != *one.uid
            && facts.is_ready
            && facts.owner.is_some_and(|owner| owner.uid == one.owner.uid)
    };
    Ok(pods.iter().filter(is_other).count() as u64)
}
