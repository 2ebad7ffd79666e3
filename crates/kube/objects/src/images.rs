//! Names and sizes of container images: what a node has, what a pod names.

use dovetail_model::Images;
use serde::Deserialize;

use super::json::nullable;

/// Images of a node that are kept, the largest first. A kubelet reports as many
/// (`nodeStatusMaxImages`), if it is not told otherwise.
const MOST_IMAGES: usize = 50;
/// Names of one image that are kept, in the node's order. A kubelet reports as many.
const MOST_NAMES: usize = 5;

/// One of a node's `status.images`.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ImageJson {
    #[serde(deserialize_with = "nullable")]
    names: Vec<Box<str>>,
    #[serde(deserialize_with = "nullable")]
    size_bytes: i64,
}

/// What is kept of a node's images.
pub(super) fn on_node(mut images: Vec<ImageJson>) -> Images {
    images.sort_by(|a, b| b.size_bytes.cmp(&a.size_bytes).then_with(|| a.names.cmp(&b.names)));
    let kept = images.into_iter().take(MOST_IMAGES);
    Images::new(kept.flat_map(|ImageJson { names, size_bytes }| {
        names.into_iter().take(MOST_NAMES).map(move |name| (name.into(), size_bytes))
    }))
}

/// The name by which a node has the image that a pod names so: with `:latest` if it has neither tag
/// nor digest, as kube-scheduler's `ImageLocality` does it.
pub(super) fn full_name(image: &str) -> Box<str> {
    let last = |mark: char| image.rfind(mark);
    match last(':') <= last('/') {
        true => format!("{image}:latest").into(),
        false => image.into(),
    }
}
