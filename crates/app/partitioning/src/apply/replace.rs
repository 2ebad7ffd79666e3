//! A replica that is added before a pod is evicted, and taken back afterwards.

use anyhow::Result;
use dovetail_console::clock::now_ms;
use dovetail_sharing::{
    Next, Owner, PodMove, Record, Replacement, Seen, adding_replica, replacement, without_added,
};
use serde_json::Value;

use super::sender::Sender;
use crate::server::Server;
use crate::workload_room::{MOST_READS, tool};

/// What comes before the eviction of a pod.
pub(super) enum First {
    /// Nothing: it can be evicted.
    Nothing,
    /// A replica was added.
    Added,
    /// Its replacement is not ready yet.
    Wait(String),
}

/// Adds a replica to the Deployment of a pod, or waits until an added one is ready, where that is
/// possible; `ready`: the other pods of its owner that are.
pub(super) async fn first(
    to: &Sender<'_>,
    seen: &Seen,
    (record, one): (&Record, &PodMove),
    ready: u64,
) -> Result<First> {
    // Without room elsewhere, or once it is evicted, there is nothing to add.
    if !one.is_replica || one.to.is_empty() || one.evicted_ms.is_some() {
        return Ok(First::Nothing);
    }
    for _ in 0..MOST_READS {
        let Some(deployment) = to.server.deployment_of(one).await? else {
            return Ok(First::Nothing);
        };
        let is_added = without_added(&deployment, &one.uid).is_some();
        if one.adds_replica && !is_added {
            // It was taken back, and is not tried again.
            return Ok(First::Nothing);
        }
        let others = match is_added {
            true => None,
            false => scaled_by(to.server, one, &deployment).await,
        };
        match replacement(&deployment, one, ready, others.as_deref(), now_ms()) {
            Replacement::Ready => return Ok(First::Nothing),
            Replacement::Wait(why) => return Ok(First::Wait(why)),
            Replacement::Impossible(why) => {
                to.app.note(&format!(
                    "node {}: evicting {} without a replacement: {why}",
                    seen.node, one.pod
                ));
                take_back(to.server, one).await?;
                return Ok(First::Nothing);
            }
            Replacement::Add(patch) => {
                if !one.adds_replica
                    && !to.write(&seen.node, &adding_replica(seen, record, one, now_ms())).await?
                {
                    return Ok(First::Added);
                }
                if to.server.patch_deployment(&deployment, &patch).await? {
                    let name = deployment["metadata"]["name"].as_str().unwrap_or_default();
                    to.app.note(&format!(
                        "node {}: adding a replica to Deployment {name} before {} is evicted",
                        seen.node, one.pod
                    ));
                    return Ok(First::Added);
                }
            }
        }
    }
    Ok(First::Nothing)
}

/// Takes back the replicas that were added for the pods of a record that are evicted, or are not to
/// be any more.
pub(super) async fn settle(server: &Server, record: &Record, next: &Next) -> Result<()> {
    let ends = matches!(next, Next::Over | Next::Write(_));
    let is_next = |one: &PodMove| matches!(next, Next::Evict(other) if other.uid == one.uid);
    for one in record.own_moves().filter(|one| one.adds_replica && !is_next(one)) {
        if ends || one.evicted_ms.is_some() {
            take_back(server, one).await?;
        }
    }
    Ok(())
}

/// Takes back the replica that was added for a pod, if one was.
pub(super) async fn take_back(server: &Server, one: &PodMove) -> Result<()> {
    for _ in 0..MOST_READS {
        let Some(deployment) = server.deployment_of(one).await? else { return Ok(()) };
        let Some(patch) = without_added(&deployment, &one.uid) else { return Ok(()) };
        if server.patch_deployment(&deployment, &patch).await? {
            return Ok(());
        }
    }
    anyhow::bail!(
        "the replica that was added for {} could not be removed, because its Deployment \
         kept changing: run the command again",
        one.pod
    )
}

/// What besides people decides the number of replicas of a Deployment, if anything does.
async fn scaled_by(server: &Server, one: &PodMove, deployment: &Value) -> Option<String> {
    let owner = Owner::read(deployment).ok();
    if owner.as_ref().and_then(tool).is_some() {
        return Some("a deployment tool manages its Deployment".to_owned());
    }
    match server.autoscalers(&one.owner.namespace).await {
        Err(error) => Some(format!("cannot read HorizontalPodAutoscalers: {error:#}")),
        Ok(autoscalers) => {
            let scales = |autoscaler: &&Value| {
                let target = &autoscaler["spec"]["scaleTargetRef"];
                target["kind"] == "Deployment" && target["name"] == deployment["metadata"]["name"]
            };
            let name = &autoscalers.iter().find(scales)?["metadata"]["name"];
            let name = name.as_str().unwrap_or_default();
            Some(format!("HorizontalPodAutoscaler {name} scales its Deployment"))
        }
    }
}
