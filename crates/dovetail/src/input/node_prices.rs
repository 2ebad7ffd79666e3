//! What the GPUs of each node cost: by model, provider, region and purchase, as the node's labels name them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Result;
use clap::{ArgAction, Args};
use dovetail_audit::NodePrice;
use dovetail_kube::facts::Gathered;
use dovetail_price::{NodePlace, Price, PriceBook, canonical_gpu_model, node_place};
use serde::Serialize;

use crate::input::prices::price_book;
use crate::output::plain::plain;
use crate::settings::cost::CostSection;

/// Flags as written.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Prices")]
pub(crate) struct NodePriceFlags {
    /// CSV with your own prices: gpu_model,usd_per_gpu_hour and optionally provider, region,
    /// purchase, instance_type, source, as_of
    #[arg(long, value_name = "FILE")]
    prices: Option<PathBuf>,
    /// Assume a price for a GPU model, or * for nodes without a model; can be given several times
    #[arg(long, value_name = "MODEL=USD_PER_HOUR", action = ArgAction::Append)]
    gpu_price: Vec<String>,
}

/// A node whose GPUs want a price.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeToPrice<'a> {
    pub(crate) gpus: i64,
    pub(crate) model: Option<&'a str>,
    pub(crate) labels: &'a BTreeMap<String, String>,
    pub(crate) provider_id: &'a str,
}

impl<'a> NodeToPrice<'a> {
    /// The nodes with GPUs, in their order.
    pub(crate) fn all_of(gathered: &'a Gathered) -> Vec<Self> {
        static NONE: BTreeMap<String, String> = BTreeMap::new();
        let labels = gathered.facts.nodes.iter().map(|node| (&*node.node.name, &node.node.labels));
        let labels: BTreeMap<&str, _> = labels.collect();
        let nodes = gathered.moment.nodes.iter().map(|node| NodeToPrice {
            gpus: node.gpus,
            model: node.model.as_deref(),
            labels: labels.get(&*node.node).copied().unwrap_or(&NONE),
            provider_id: gathered.provider_ids.get(&node.node).map_or("", String::as_str),
        });
        nodes.collect()
    }
}

/// Prices of nodes, and what is said about them.
#[derive(Debug)]
pub(crate) struct Prices {
    /// In the order of the nodes.
    pub(crate) of_nodes: Vec<NodePrice>,
    /// What their labels say of them, in the same order.
    pub(crate) places: Vec<NodePlace>,
    pub(crate) told: Vec<PriceLine>,
}

/// GPUs with one price.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct PriceLine {
    pub(crate) model: Option<String>,
    pub(crate) provider: Option<String>,
    pub(crate) region: Option<String>,
    pub(crate) purchase: &'static str,
    pub(crate) gpus: i64,
    pub(crate) usd_micros_per_gpu_hour: Option<i64>,
    pub(crate) source: Option<String>,
    pub(crate) as_of: Option<String>,
}

impl NodePriceFlags {
    /// Whether any price is named.
    #[cfg(feature = "scheduler")]
    pub(crate) fn is_given(&self) -> bool {
        self.prices.is_some() || !self.gpu_price.is_empty()
    }

    /// All prices; `own` has the machines that were bought.
    ///
    /// # Errors
    /// A price that cannot be read.
    pub(crate) fn book(&self, own: &CostSection) -> Result<PriceBook> {
        Ok(own.machines(price_book(self.prices.as_deref(), &self.gpu_price)?)?)
    }

    /// Prices of nodes; `own` has the machines that were bought.
    ///
    /// # Errors
    /// A price that cannot be read.
    pub(crate) fn of(&self, nodes: &[NodeToPrice<'_>], own: &CostSection) -> Result<Prices> {
        let book = self.book(own)?;
        let mut told: BTreeMap<(Option<String>, NodePlace), PriceLine> = BTreeMap::new();
        let (mut of_nodes, mut places) = (Vec::new(), Vec::new());
        for node in nodes {
            let place = node_place(node.labels, node.provider_id);
            let by_type = || PriceBook::model_of_instance(place.instance_type.as_deref()?);
            let model = node.model.or_else(by_type).map(canonical_gpu_model);
            let region = place.region.as_deref();
            // A region means nothing without its provider.
            let region = region.filter(|_| place.provider.is_some());
            let price = book.lookup(model.as_deref(), place.provider, region, place.purchase);
            of_nodes.push(NodePrice { usd_micros_per_gpu_hour: price.usd_micros_per_gpu_hour() });
            let key = (model.clone(), NodePlace { instance_type: None, ..place.clone() });
            told.entry(key).or_insert_with(|| line(model, &place, &price)).gpus += node.gpus;
            places.push(place);
        }
        Ok(Prices { of_nodes, places, told: told.into_values().collect() })
    }
}

fn line(model: Option<String>, place: &NodePlace, price: &Price) -> PriceLine {
    let known = match price {
        Price::Known(known) => Some(known),
        Price::Unknown => None,
    };
    let provider = place.provider.map(str::to_owned);
    PriceLine {
        model: model.map(|model| plain(&model)),
        provider: provider.or_else(|| known.and_then(|known| known.provider.clone())),
        region: place
            .region
            .as_deref()
            .map(plain)
            .or_else(|| known.and_then(|known| known.region.clone())),
        purchase: place.purchase.name(),
        gpus: 0,
        usd_micros_per_gpu_hour: price.usd_micros_per_gpu_hour(),
        source: known.map(|known| plain(&known.source)),
        as_of: known.and_then(|known| known.as_of.clone()),
    }
}
