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

/// Flags as written.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Prices")]
pub(super) struct PriceFlags {
    /// CSV with your own prices: gpu_model,usd_per_gpu_hour and optionally provider, region,
    /// purchase, instance_type, source, as_of
    #[arg(long, value_name = "FILE")]
    prices: Option<PathBuf>,
    /// Assume a price for a GPU model, or * for nodes without a model; can be given several times
    #[arg(long, value_name = "MODEL=USD_PER_HOUR", action = ArgAction::Append)]
    gpu_price: Vec<String>,
}

/// Prices of nodes, and what is said about them.
#[derive(Debug)]
pub(super) struct Prices {
    /// In the order of the nodes with GPUs.
    pub(super) of_nodes: Vec<NodePrice>,
    pub(super) told: Vec<PriceLine>,
}

/// GPUs with one price.
#[derive(Clone, Debug, Serialize)]
pub(super) struct PriceLine {
    pub(super) model: Option<String>,
    pub(super) provider: Option<String>,
    pub(super) region: Option<String>,
    pub(super) purchase: &'static str,
    pub(super) gpus: i64,
    pub(super) usd_micros_per_gpu_hour: Option<i64>,
    pub(super) source: Option<String>,
    pub(super) as_of: Option<String>,
}

impl PriceFlags {
    /// Prices of all nodes with GPUs.
    pub(super) fn of(&self, gathered: &Gathered) -> Result<Prices> {
        let book = price_book(self.prices.as_deref(), &self.gpu_price)?;
        let labels = gathered.facts.nodes.iter().map(|node| (&*node.node.name, &node.node.labels));
        let labels: BTreeMap<&str, _> = labels.collect();
        let mut told: BTreeMap<(Option<String>, NodePlace), PriceLine> = BTreeMap::new();
        let mut of_nodes = Vec::with_capacity(gathered.moment.nodes.len());
        let none = BTreeMap::new();
        for node in &gathered.moment.nodes {
            let id = gathered.provider_ids.get(&node.node).map_or("", String::as_str);
            let place = node_place(labels.get(&*node.node).copied().unwrap_or(&none), id);
            let by_type = || PriceBook::model_of_instance(place.instance_type.as_deref()?);
            let model = node.model.as_deref().or_else(by_type).map(canonical_gpu_model);
            let region = place.region.as_deref();
            // A region means nothing without its provider.
            let region = region.filter(|_| place.provider.is_some());
            let price = book.lookup(model.as_deref(), place.provider, region, place.purchase);
            of_nodes.push(NodePrice { usd_micros_per_gpu_hour: price.usd_micros_per_gpu_hour() });
            let key = (model.clone(), NodePlace { instance_type: None, ..place.clone() });
            told.entry(key).or_insert_with(|| line(model, &place, &price)).gpus += node.gpus;
        }
        Ok(Prices { of_nodes, told: told.into_values().collect() })
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
