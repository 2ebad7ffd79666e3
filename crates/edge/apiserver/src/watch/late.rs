//! Kinds that a server gets while it is watched: somebody installs a tool with definitions of its
//! own.

use std::collections::BTreeSet;
use std::time::Duration;

use dovetail_objects::Kind;
use futures_util::stream::{self, BoxStream, StreamExt};
use kube::Client;
use tracing::{debug, info};

use super::{Served, served};

/// Each of these kinds with its version once the server has it; ends when it has all of them.
pub(super) fn kinds(
    client: Client,
    absent: BTreeSet<Kind>,
    discovery_s: u32,
) -> BoxStream<'static, (Kind, &'static str)> {
    let found = stream::unfold((client, absent), move |(client, mut absent)| async move {
        if absent.is_empty() {
            return None;
        }
        tokio::time::sleep(Duration::from_secs(discovery_s.into())).await;
        let served = served(&client).await.unwrap_or_else(|problem| {
            debug!(%problem, "cannot list the kinds of the server");
            Served::new()
        });
        let found: Served = served.into_iter().filter(|(kind, _)| absent.remove(kind)).collect();
        Some((stream::iter(found), (client, absent)))
    });
    let told = |(kind, _): &(Kind, _)| info!(kind = kind.name(), "the server now has this kind");
    found.flatten().inspect(told).boxed()
}
