//! What the demonstration needs of the program that runs it.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use dovetail_account::Priced;
use dovetail_price::{PriceBook, Purchase};
use dovetail_trace::TraceCluster;

/// Prices by GPU model; no model is that of nodes without one.
pub type Prices = BTreeMap<Option<String>, Priced>;

/// The program around the demonstration.
pub trait Host: Sync {
    /// Prices of the models of a cluster.
    ///
    /// # Errors
    /// A price that cannot be read.
    fn prices(&self, cluster: &TraceCluster) -> Result<Prices>;

    /// Whether the user said anything about prices.
    fn assumes_prices(&self) -> bool;

    /// A line beside the result.
    fn say(&self, line: &str);

    /// A comparison with so many jobs begins.
    fn started(&self, jobs: u64);

    /// So many of them ended.
    fn advanced(&self, jobs: u64);
}

/// On-demand prices of the built-in book.
pub fn built_in_prices(cluster: &TraceCluster) -> Prices {
    let book = PriceBook::built_in();
    let models = cluster.nodes.iter().filter(|node| node.gpu_count > 0);
    let models: BTreeSet<Option<String>> = models.map(|node| node.gpu_model.clone()).collect();
    let priced = |model: Option<String>| {
        let price = book.lookup(model.as_deref(), None, None, Purchase::OnDemand);
        (model, price.into())
    };
    models.into_iter().map(priced).collect()
}
