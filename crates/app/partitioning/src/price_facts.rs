//! What decides the prices of the nodes of a plan.

use std::collections::BTreeMap;

use dovetail_gpus::{KnownLayouts, node_gpus_like};
use dovetail_sources::node_prices::NodeToPrice;

use crate::fleet::Fleet;
use crate::objects::Objects;

/// What decides the price of the GPUs of a node.
#[derive(Debug)]
pub(crate) struct PriceFacts {
    node: String,
    gpus: i64,
    /// GPUs of its instance type, where another number counts.
    of_machine: Option<i64>,
    model: String,
    labels: BTreeMap<String, String>,
    provider_id: String,
    /// Resources by which pods ask for its GPUs, or for instances of them.
    resources: Vec<String>,
}

impl PriceFacts {
    /// Those of all nodes with GPUs in a fleet, by name.
    pub(crate) fn all_of(objects: &Objects, fleet: &Fleet) -> Vec<Self> {
        let models = fleet.names.iter().zip(&fleet.models);
        let models: BTreeMap<&str, &str> =
            models.map(|((node, _), model)| (node.as_str(), model.as_str())).collect();
        let layouts = KnownLayouts::default();
        let facts = models.into_iter().filter_map(|(name, model)| {
            let seen = objects.nodes.get(name)?;
            let gpus = node_gpus_like(&seen.node, seen.hami(), &layouts)?;
            let labels = seen.node.meta.labels.iter();
            Some(Self {
                node: name.to_owned(),
                gpus: gpus.count.gpus,
                of_machine: gpus.count.of_machine(),
                model: model.to_owned(),
                labels: labels.map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
                provider_id: seen.node.provider_id.to_string(),
                resources: gpus.units.into_iter().map(|units| units.resource).collect(),
            })
        });
        facts.collect()
    }

    /// The name of the node, and the same as prices ask for it.
    pub(crate) fn to_price(&self) -> (&str, NodeToPrice<'_>) {
        let of_node = NodeToPrice {
            gpus: self.gpus,
            of_machine: self.of_machine,
            model: Some(self.model.as_str()),
            labels: &self.labels,
            provider_id: &self.provider_id,
            resources: &self.resources,
        };
        (self.node.as_str(), of_node)
    }
}
