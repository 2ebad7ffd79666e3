//! Kinds that a server gets while it is watched: somebody installs a tool with definitions of its
//! own.

use std::collections::BTreeSet;
use std::time::Duration;

use dovetail_objects::Kind;
use futures_util::stream::{self, BoxStream, StreamExt};
use kube::Client;
use tracing::{debug, info};

use super::served;

/// Each of these kinds once the server has it; ends when it has all of them.
pub(super) fn kinds(
    client: Client,
    absent: BTreeSet<Kind>,
    discovery_s: u32,
) -> BoxStream<'static, Kind> {
    let found = stream::unfold((client, absent), move |(client, mut absent)| async move {
        if absent.is_empty() {
            return None;
        }
        tokio::time::sleep(Duration::from_secs(discovery_s.into())).await;
        let served = served(&client).await.unwrap_or_else(|problem| {
            debug!(%problem, "cannot ask the server which kinds it has");
            BTreeSet::new()
        });
        let found: BTreeSet<Kind> = absent.intersection(&served).copied().collect();
        absent.retain(|kind| !found.contains(kind));
        Some((stream::iter(found), (client, absent)))
    });
    let told = |kind: &Kind| info!(kind = kind.name(), "the server has this kind by now");
    found.flatten().inspect(told).boxed()
}
