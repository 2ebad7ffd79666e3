//! The objects of a generated cluster, as `kubectl get -o json` writes them, with what its GPUs
//! did.
//!
//! The cluster has the owners that real ones have (training jobs, servers, batch jobs, notebooks,
//! web services, agents on every node) and in each family some of the slips that real ones have:
//! [`Slip`]. Slips take turns instead of being drawn, so a small cluster has many of them. The same
//! seed and size give the same bytes.

mod config;
mod metadata;
mod node_json;
mod noise;
mod owner_json;
mod plan;
mod pod_json;
mod pools;
mod rules_json;
mod template;
mod usage;
mod work;

use std::io::{self, Write};

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::Value;
use serde_json::ser::PrettyFormatter;

use super::bad;
use crate::error::TraceError;
pub use config::{OBJECTS_AT_S, ObjectKind, ObjectsConfig, PODS_PER_NODE};
use plan::ClusterPlan;
pub use work::Slip;

/// A generated cluster. Its objects are made when they are asked for.
pub struct GeneratedObjects(ClusterPlan);

/// Plans a cluster.
///
/// # Errors
/// [`TraceError::Synth`] for a number of nodes out of its limits.
pub fn objects(config: &ObjectsConfig) -> Result<GeneratedObjects, TraceError> {
    if !(12..=20_000).contains(&config.nodes) {
        let problem = "out of range with --dump".to_owned();
        return Err(bad("nodes", config.nodes, problem, "12 to 20000".to_owned()));
    }
    Ok(GeneratedObjects(ClusterPlan::new(config)))
}

impl GeneratedObjects {
    /// The objects of a kind, one after the other.
    pub fn of_kind(&self, kind: ObjectKind) -> Box<dyn Iterator<Item = Value> + '_> {
        let plan = &self.0;
        match kind {
            ObjectKind::Node => Box::new(node_json::nodes(plan)),
            ObjectKind::Pod => Box::new(pod_json::pods(plan)),
            ObjectKind::Namespace => Box::new(rules_json::namespaces(plan)),
            ObjectKind::ResourceQuota => Box::new(rules_json::quotas(plan)),
            ObjectKind::PodDisruptionBudget => Box::new(rules_json::budgets(plan)),
            ObjectKind::HorizontalPodAutoscaler => Box::new(rules_json::autoscalers(plan)),
            kind => Box::new(owner_json::owners(plan, kind)),
        }
    }

    /// Writes all objects of a kind as one list, as `kubectl get -A -o json` does.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write_list(&self, kind: ObjectKind, out: &mut dyn Write) -> io::Result<()> {
        let form = PrettyFormatter::with_indent(b"    ");
        let mut json = serde_json::Serializer::with_formatter(&mut *out, form);
        let mut list = json.serialize_map(Some(4))?;
        list.serialize_entry("apiVersion", "v1")?;
        list.serialize_entry("items", &Items { objects: self, kind })?;
        list.serialize_entry("kind", "List")?;
        list.serialize_entry("metadata", &serde_json::json!({"resourceVersion": ""}))?;
        list.end()?;
        out.write_all(b"\n")
    }

    /// Writes what the GPUs of pods did in the day before [`OBJECTS_AT_S`], a sample each five
    /// minutes, in the form of usage files. GPUs on nodes without an exporter are not in it.
    /// Answers with the number of samples.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write_usage(&self, out: &mut dyn Write) -> io::Result<u64> {
        usage::write(&self.0, out)
    }

    /// Number of nodes.
    pub fn nodes(&self) -> usize {
        self.0.nodes.len()
    }

    /// Number of physical GPUs.
    pub fn gpus(&self) -> u64 {
        self.0.nodes.iter().map(|node| u64::from(node.pool.gpus)).sum()
    }

    /// Number of pods.
    pub fn pods(&self) -> usize {
        self.0.pods.len()
    }

    /// How many owners have each slip; owners without one are not in it.
    pub fn slips(&self) -> std::collections::BTreeMap<Slip, usize> {
        let mut count = std::collections::BTreeMap::new();
        for work in &self.0.work {
            if let Some(slip) = work.slip {
                *count.entry(slip).or_default() += 1;
            }
        }
        count
    }
}

/// All objects of a kind, made while they are written.
struct Items<'a> {
    objects: &'a GeneratedObjects,
    kind: ObjectKind,
}

impl Serialize for Items<'_> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_seq(self.objects.of_kind(self.kind))
    }
}

#[cfg(test)]
mod tests;
