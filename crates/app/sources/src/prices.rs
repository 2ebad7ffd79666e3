//! Prices of GPU models where no node is known: those that nodes would have at a named provider.
//! Where nodes are known, each has its own price.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use dovetail_account::Priced;
use dovetail_console::places::Named;
use dovetail_price::{Price, PriceBook, Purchase};
use dovetail_settings::Settings;
use dovetail_settings::errors::UsageError;
use dovetail_trace::TraceCluster;

use crate::node_prices::NodeToPrice;
use crate::own_prices::OwnPriceFlags;

/// Prices by GPU model; no model is that of nodes without one.
pub type Prices = BTreeMap<Option<String>, Priced>;

/// Flags as written.
#[derive(Clone, Debug, Default, Args)]
pub struct PriceFlags {
    #[command(flatten)]
    own: OwnPriceFlags,
    /// Use the prices of this provider, such as aws, gcp or azure [default: the first of these
    /// three that has a price, else the cheapest other provider]
    #[arg(long, value_name = "NAME", help_heading = "Prices")]
    provider: Option<String>,
    /// Use the prices of this region, such as us-east-1
    #[arg(long, value_name = "NAME", requires = "provider", help_heading = "Prices")]
    region: Option<String>,
    /// Purchase option of the GPUs, also of nodes whose labels state another [default: as the
    /// labels of the node state, else on_demand]
    #[arg(long, value_name = "KIND", help_heading = "Prices")]
    #[arg(value_parser = PossibleValuesParser::new(Purchase::ALL.map(purchase_value)))]
    purchase: Option<String>,
}

impl PriceFlags {
    /// The file that is read, by its flag.
    pub fn file(&self) -> Named<'_> {
        self.own.file()
    }

    /// The first flag that was given, if any.
    pub fn given(&self) -> Option<&'static str> {
        let given =
            [("--provider", self.provider.is_some()), ("--purchase", self.purchase.is_some())];
        let given = given.into_iter().find(|(_, is_given)| *is_given).map(|(flag, _)| flag);
        self.own.given().or(given)
    }

    /// The prices of all models of a cluster.
    ///
    /// # Errors
    /// A price that cannot be read, or a model of `--gpu-price` that the cluster does not have.
    pub fn of(&self, cluster: &TraceCluster, settings: &Settings) -> Result<Prices> {
        // A price that cannot be read is told before one that nothing has.
        let book = self.own.book(settings)?;
        let models = cluster.nodes.iter().filter(|node| node.gpu_count > 0);
        let models: BTreeSet<Option<String>> = models.map(|node| node.gpu_model.clone()).collect();
        self.refuse_prices_of_nothing(&models, cluster)?;
        self.looked_up(&book, models)
    }

    /// The prices of these models.
    ///
    /// # Errors
    /// A price that cannot be read.
    pub fn of_models(
        &self,
        models: BTreeSet<Option<String>>,
        settings: &Settings,
    ) -> Result<Prices> {
        self.looked_up(&self.own.book(settings)?, models)
    }

    /// The prices of nodes, in their order: of each as `dovetail cost` has it, by its provider,
    /// region, instance type and purchase option. The price is that of the model where a flag names
    /// a provider or a purchase option, and for a node of which nothing else is known.
    ///
    /// # Errors
    /// A price that cannot be read.
    pub fn of_nodes(&self, nodes: &[NodeToPrice<'_>], settings: &Settings) -> Result<Vec<Priced>> {
        let book = self.own.book(settings)?;
        let mut prices = self.own.of(nodes, settings)?.priced;
        for (node, price) in nodes.iter().zip(&mut prices) {
            let is_unknown = node.labels.is_empty() && node.provider_id.is_empty();
            if is_unknown || self.names_place() {
                *price = self.of_model(&book, node.model)?;
            }
        }
        Ok(prices)
    }

    /// Whether a flag says where GPUs are, or how they are bought.
    fn names_place(&self) -> bool {
        self.provider.is_some() || self.purchase.is_some()
    }

    fn looked_up(&self, book: &PriceBook, models: BTreeSet<Option<String>>) -> Result<Prices> {
        let priced = |model: Option<String>| {
            let price = self.of_model(book, model.as_deref())?;
            Ok((model, price))
        };
        models.into_iter().map(priced).collect()
    }

    fn of_model(&self, book: &PriceBook, model: Option<&str>) -> Result<Priced> {
        let purchase = match &self.purchase {
            Some(name) => Purchase::from_name(name).context("purchases are checked")?,
            None => Purchase::OnDemand,
        };
        let (provider, region) = (self.provider.as_deref(), self.region.as_deref());
        Ok(book.lookup(model, provider, region, purchase).into())
    }

    /// Refuses a stand-in for a model that no machine has: a slip would leave the true one without
    /// a price.
    fn refuse_prices_of_nothing(
        &self,
        models: &BTreeSet<Option<String>>,
        cluster: &TraceCluster,
    ) -> Result<()> {
        for text in &self.own.gpu_price {
            let Some((model, usd)) = text.rsplit_once('=').filter(|(model, _)| *model != "*")
            else {
                continue;
            };
            let book = PriceBook::default().with_assumed(model, usd)?;
            let counts = |node_model: &Option<String>| {
                let price = book.lookup(node_model.as_deref(), None, None, Purchase::OnDemand);
                matches!(price, Price::Known(_))
            };
            if models.iter().any(counts) {
                continue;
            }
            let there: Vec<&str> = models.iter().flatten().map(String::as_str).collect();
            let there = if there.is_empty() { "none is named".into() } else { there.join(", ") };
            let text = format!(
                "--gpu-price {text}: no node of {} has this model; models there: {there}",
                cluster.source
            );
            return Err(UsageError(text).into());
        }
        Ok(())
    }
}

/// A way of buying as the value of a flag.
fn purchase_value(purchase: Purchase) -> PossibleValue {
    let value = PossibleValue::new(purchase.name());
    // What it was called before.
    if purchase == Purchase::Committed { value.alias("reserved") } else { value }
}
