//! What a watch shows, and when.

use std::time::{Duration, Instant};

use futures_util::stream::{BoxStream, StreamExt, unfold};
use kube::Api;
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::core::PartialObjectMeta;
use serde::de::DeserializeOwned;

/// Nothing that is measured takes this long.
const PATIENCE: Duration = Duration::from_secs(280);
/// Who is silent for so long has said all.
const SILENCE: Duration = Duration::from_secs(15);

/// Objects that come to match a selector, or that are gone: the names, and the moments at which the
/// watch shows them.
pub(crate) struct Seen(BoxStream<'static, (String, Instant)>);

impl Seen {
    /// Sees what matches a field selector from now on.
    pub(crate) async fn begin<K>(api: Api<K>, fields: &str) -> Self
    where
        K: Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
    {
        Self::begin_with(api, fields, new_object).await
    }

    /// Sees what has matched a field selector and is gone, from now on.
    pub(crate) async fn begin_gone<K>(api: Api<K>, fields: &str) -> Self
    where
        K: Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
    {
        Self::begin_with(api, fields, gone_object).await
    }

    async fn begin_with<K>(api: Api<K>, fields: &str, named: Named<K>) -> Self
    where
        K: Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
    {
        let now = api.list_metadata(&ListParams::default().fields(fields).limit(1)).await;
        let version = now.expect("a list").metadata.resource_version.unwrap_or_default();
        let parameters = WatchParams::default().fields(fields).timeout(290);
        let watch = move |version: String| {
            let (api, parameters) = (api.clone(), parameters.clone());
            async move { api.watch_metadata(&parameters, &version).await.expect("a watch").boxed() }
        };
        let first = (watch(version.clone()).await, version);
        // A server that is busy cuts off watches: each goes on where the one before has ended.
        let events = unfold(first, move |(mut events, version)| {
            let watch = watch.clone();
            async move {
                loop {
                    if let Some(Ok(event)) = events.next().await {
                        let version = version_of(&event).unwrap_or(version);
                        return Some((event, (events, version)));
                    }
                    events = watch(version.clone()).await;
                }
            }
        });
        let seen = events.filter_map(move |event| {
            std::future::ready(named(event).map(|name| (name, Instant::now())))
        });
        Self(seen.boxed())
    }

    /// The names alone.
    pub(crate) fn names(self) -> BoxStream<'static, String> {
        self.0.map(|(name, _)| name).boxed()
    }

    /// Waits for the next.
    pub(crate) async fn next(&mut self) -> (String, Instant) {
        let next = tokio::time::timeout(PATIENCE, self.0.next()).await;
        next.expect("something seen in time").expect("a watch that lasts")
    }

    /// Waits for so many.
    pub(crate) async fn take(&mut self, count: usize) -> Vec<(String, Instant)> {
        let mut taken = Vec::with_capacity(count);
        while taken.len() < count {
            taken.push(self.next().await);
        }
        taken
    }

    /// Waits for so many, or until a moment: how many there were, and the moment of the last.
    pub(crate) async fn until(&mut self, end: Instant, count: usize) -> (usize, Option<Instant>) {
        let (mut seen, mut last) = (0, None);
        while seen < count {
            match tokio::time::timeout_at(end.into(), self.0.next()).await {
                Ok(Some((_, at))) => (seen, last) = (seen + 1, Some(at)),
                Ok(None) | Err(_) => break,
            }
        }
        (seen, last)
    }

    /// Waits for so many, or until nothing more comes: how many there were, and the moment of the
    /// last.
    pub(crate) async fn until_silence(&mut self, count: usize) -> (usize, Option<Instant>) {
        let (mut seen, mut last) = (0, None);
        while seen < count {
            match tokio::time::timeout(SILENCE, self.0.next()).await {
                Ok(Some((_, at))) => (seen, last) = (seen + 1, Some(at)),
                Ok(None) | Err(_) => break,
            }
        }
        (seen, last)
    }
}

fn version_of<K>(event: &WatchEvent<PartialObjectMeta<K>>) -> Option<String> {
    match event {
        WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object) => {
            object.metadata.resource_version.clone()
        }
        WatchEvent::Bookmark(bookmark) => Some(bookmark.metadata.resource_version.clone()),
        WatchEvent::Error(_) => None,
    }
}

/// The name of the object that is looked for.
type Named<K> = fn(WatchEvent<PartialObjectMeta<K>>) -> Option<String>;

fn new_object<K>(event: WatchEvent<PartialObjectMeta<K>>) -> Option<String> {
    match event {
        WatchEvent::Added(object) => object.metadata.name,
        WatchEvent::Error(problem) => panic!("the watch ends: {problem}"),
        _ => None,
    }
}

fn gone_object<K>(event: WatchEvent<PartialObjectMeta<K>>) -> Option<String> {
    match event {
        WatchEvent::Deleted(object) => object.metadata.name,
        WatchEvent::Error(problem) => panic!("the watch ends: {problem}"),
        _ => None,
    }
}
