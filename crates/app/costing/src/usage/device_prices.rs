//! What a GPU-hour of each observed device costs: by its node, as `dovetail cost` has it.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use dovetail_account::Priced;
use dovetail_metrics::exporter::{ObservedDevice, ObservedTime};
use dovetail_metrics::kube_state::{KubeState, KubeTable, last_seen};
use dovetail_objects::labels;
use dovetail_settings::Settings;
use dovetail_sources::node_prices::NodeToPrice;
use dovetail_sources::prices::PriceFlags;
use dovetail_sources::prometheus::Asker;

use crate::from_prometheus::machine::known_labels;

/// Node and model of devices, as exporters name them.
type DeviceKind = (String, Option<String>);

/// What a GPU-hour costs, by node and model.
#[derive(Debug, Default)]
pub struct DevicePrices(pub(super) BTreeMap<DeviceKind, Priced>);

impl DevicePrices {
    /// The prices of devices by what kube-state-metrics says of their nodes. On a node of which it
    /// says nothing, a GPU has the price of its model.
    ///
    /// # Errors
    /// A server that does not answer, or a price that cannot be read.
    pub fn of(
        asker: &mut Asker,
        time: &ObservedTime,
        flags: &PriceFlags,
        settings: &Settings,
    ) -> Result<Self> {
        let nodes = nodes(asker)?;
        let kinds: BTreeSet<DeviceKind> = time.devices.iter().map(kind_of).collect();
        let known = kinds.iter().map(|(name, model)| {
            let node = nodes.node(name);
            let of_node = node.map(|node| known_labels(node, settings)).unwrap_or_default();
            let provider_id = node.map_or("", |node| node.provider_id.as_str());
            let product = || of_node.get(labels::NVIDIA_PRODUCT).cloned();
            (model.clone().or_else(product), of_node, provider_id)
        });
        let known: Vec<_> = known.collect();
        let to_price = known.iter().map(|(model, of_node, provider_id)| NodeToPrice {
            // It is the GPU-time that counts.
            gpus: 0,
            of_machine: None,
            model: model.as_deref(),
            labels: of_node,
            provider_id,
            // Series name models, not what pods ask for.
            resources: &[],
        });
        let to_price: Vec<NodeToPrice<'_>> = to_price.collect();
        let prices = flags.of_nodes(&to_price, settings)?;
        Ok(Self(kinds.into_iter().zip(prices).collect()))
    }

    pub(super) fn of_device(&self, device: &ObservedDevice) -> &Priced {
        self.0.get(&kind_of(device)).unwrap_or(&Priced::Unknown)
    }

    /// The prices by model, ascending; a model has several where those of its nodes differ.
    pub(super) fn by_model(&self) -> Vec<(&Option<String>, &Priced)> {
        let all = self.0.iter().map(|((_, model), price)| (model, price));
        let mut all: Vec<(&Option<String>, &Priced)> = all.collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

fn kind_of(device: &ObservedDevice) -> DeviceKind {
    (device.node.clone(), device.model.clone())
}

/// What kube-state-metrics says of nodes that decides their prices.
fn nodes(asker: &mut Asker) -> Result<KubeState> {
    let mut state = KubeState::default();
    let window_ms = asker.period.to_ms - asker.period.from_ms;
    let at_ms = asker.period.to_ms.saturating_sub(1);
    for table in [KubeTable::NodeInfo, KubeTable::NodeLabels] {
        let series = asker.instant(&last_seen(table, window_ms), at_ms)?;
        state.take(table, series);
    }
    Ok(state)
}
