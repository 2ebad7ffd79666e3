//! Nodes, pods and what decides where pods can go, out of any source of objects.

use std::collections::BTreeMap;

use dovetail_cluster::translate::Facts;
use dovetail_inventory::dump::{RawObject, Sink, Skipped};
use dovetail_objects::{
    CsiNode, Node, PersistentVolume, Pod, StorageClass, VolumeClaim, labels, read,
};
use serde::Deserialize;

/// Annotations of other systems that part GPUs themselves.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Annotated {
    metadata: Annotations,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Annotations {
    annotations: BTreeMap<String, String>,
}

/// A node, and HAMi's annotation of it.
pub(crate) struct SeenNode {
    pub(crate) node: Node,
    pub(crate) hami: Option<String>,
}

/// What is read of a cluster.
#[derive(Default)]
pub(crate) struct Objects {
    pub(crate) nodes: BTreeMap<String, SeenNode>,
    pub(crate) pods: BTreeMap<(String, String), Pod>,
    pub(crate) facts: Facts,
    pub(crate) csi: BTreeMap<String, CsiNode>,
    pub(crate) skipped: Vec<Skipped>,
}

impl Objects {
    fn take(&mut self, raw: &RawObject<'_>) -> Result<(), Skipped> {
        let json = raw.json.as_bytes();
        let told =
            |strange: &dovetail_objects::Strange| raw.skipped(&strange.field, &strange.problem);
        match raw.kind {
            "Node" => {
                let node: Node = read("Node", json).map_err(|strange| told(&strange))?;
                let annotated: Annotated = serde_json::from_str(raw.json).unwrap_or_default();
                let mut annotations = annotated.metadata.annotations;
                let hami = annotations.remove(labels::HAMI_REGISTER);
                self.nodes.insert(raw.name.to_owned(), SeenNode { node, hami });
            }
            "Pod" => {
                let pod: Pod = read("Pod", json).map_err(|strange| told(&strange))?;
                self.pods.insert((raw.namespace.to_owned(), raw.name.to_owned()), pod);
            }
            "PersistentVolumeClaim" => {
                let claim: VolumeClaim =
                    read("PersistentVolumeClaim", json).map_err(|strange| told(&strange))?;
                self.facts.set_claim(claim);
            }
            "PersistentVolume" => {
                let volume: PersistentVolume =
                    read("PersistentVolume", json).map_err(|strange| told(&strange))?;
                self.facts.set_volume(volume);
            }
            "StorageClass" => {
                let class: StorageClass =
                    read("StorageClass", json).map_err(|strange| told(&strange))?;
                self.facts.set_class(class);
            }
            "CSINode" => {
                let csi: CsiNode = read("CSINode", json).map_err(|strange| told(&strange))?;
                self.csi.insert(raw.name.to_owned(), csi);
            }
            _ => {}
        }
        Ok(())
    }
}

impl Sink for Objects {
    fn object(&mut self, object: &RawObject<'_>) {
        if let Err(skipped) = self.take(object) {
            self.skipped.push(skipped);
        }
    }

    fn skipped(&mut self, skipped: Skipped) {
        self.skipped.push(skipped);
    }
}
