//! Prices of GPUs, from the built-in book, a file and flags.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{ArgAction, Args};
use dovetail_account::{GpuPrice, Priced};
use dovetail_console::open::open;
use dovetail_console::places::Named;
use dovetail_price::{Exchange, Origin, Price, PriceBook, Purchase};
use dovetail_settings::errors::{UsageError, refuse_twice};
use dovetail_trace::Cluster;

/// Prices by GPU model; no model is that of nodes without one.
pub type Prices = BTreeMap<Option<String>, Priced>;

/// Flags as written.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Prices")]
pub struct PriceFlags {
    /// Price of a GPU-hour in USD of a GPU model, such as H100=2.50, or * for nodes of unknown model; can be given
    /// several times
    #[arg(long, value_name = "MODEL=USD_PER_HOUR", action = ArgAction::Append)]
    gpu_price: Vec<String>,
    /// CSV with your own prices: gpu_model,usd_per_gpu_hour (or price_per_gpu_hour,currency) and
    /// optionally provider, region, purchase, instance_type, source, as_of
    #[arg(long, value_name = "FILE")]
    price_file: Option<PathBuf>,
    /// What one unit of another currency of the price file is worth in USD, such as EUR=1.08 or
    /// EUR=1.08@2026-11-20
    #[arg(long, value_name = "EUR=USD[@DAY]", action = ArgAction::Append)]
    exchange: Vec<String>,
    /// Whose prices count, such as aws, gcp, azure [default: aws, gcp, azure, else the cheapest]
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,
    /// Where prices count, such as us-east-1
    #[arg(long, value_name = "NAME", requires = "provider")]
    region: Option<String>,
    /// How the GPUs are bought
    #[arg(long, value_name = "KIND", default_value = Purchase::OnDemand.name())]
    #[arg(value_parser = PossibleValuesParser::new(Purchase::ALL.map(purchase_value)))]
    purchase: String,
}

impl PriceFlags {
    /// The file that is read, by its flag.
    pub fn file(&self) -> Named<'_> {
        ("--price-file", self.price_file.as_deref())
    }

    /// The first flag that was given, if any.
    pub fn given(&self) -> Option<&'static str> {
        let given = [
            ("--gpu-price", !self.gpu_price.is_empty()),
            ("--price-file", self.price_file.is_some()),
            ("--exchange", !self.exchange.is_empty()),
            ("--provider", self.provider.is_some()),
            ("--purchase", self.purchase != Purchase::OnDemand.name()),
        ];
        given.into_iter().find(|(_, is_given)| *is_given).map(|(flag, _)| flag)
    }

    /// The prices of all models of a cluster.
    ///
    /// # Errors
    /// A price that cannot be read, or a model of `--gpu-price` that the cluster does not have.
    pub fn of(&self, cluster: &Cluster) -> Result<Prices> {
        // A price that cannot be read is told before one that nothing has.
        let book = self.book()?;
        let models = cluster.nodes.iter().filter(|node| node.gpu_count > 0);
        let models: BTreeSet<Option<String>> = models.map(|node| node.gpu_model.clone()).collect();
        self.refuse_prices_of_nothing(&models, cluster)?;
        self.looked_up(&book, models)
    }

    /// The prices of these models.
    ///
    /// # Errors
    /// A price that cannot be read.
    pub fn of_models(&self, models: BTreeSet<Option<String>>) -> Result<Prices> {
        self.looked_up(&self.book()?, models)
    }

    fn book(&self) -> Result<PriceBook> {
        let exchange = exchange_of(Exchange::default(), &self.exchange)?;
        let book = PriceBook::built_in().with_exchange(exchange);
        price_book(book, self.price_file.as_deref(), &self.gpu_price)
    }

    fn looked_up(&self, book: &PriceBook, models: BTreeSet<Option<String>>) -> Result<Prices> {
        let purchase = Purchase::from_name(&self.purchase).context("purchases are checked")?;
        let (provider, region) = (self.provider.as_deref(), self.region.as_deref());
        let priced = |model: Option<String>| {
            let price = priced(book.lookup(model.as_deref(), provider, region, purchase));
            (model, price)
        };
        Ok(models.into_iter().map(priced).collect())
    }

    /// Refuses a stand-in for a model that no machine has: a slip would leave the true one without a price.
    fn refuse_prices_of_nothing(
        &self,
        models: &BTreeSet<Option<String>>,
        cluster: &Cluster,
    ) -> Result<()> {
        for text in &self.gpu_price {
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
                "--gpu-price {text}: no machine of {} has this model; models there: {there}",
                cluster.source
            );
            return Err(UsageError(text).into());
        }
        Ok(())
    }
}

/// A book with a file of the user's own prices and stand-ins in front of it.
///
/// # Errors
/// A price that cannot be read, or two for one model.
pub(crate) fn price_book(
    mut book: PriceBook,
    file: Option<&Path>,
    gpu_prices: &[String],
) -> Result<PriceBook> {
    if let Some(path) = file {
        let name = path.display().to_string();
        book = book.with_overrides_csv(open(path)?, &name)?;
    }
    let models = gpu_prices.iter().map(|text| text.rsplit_once('=').map_or("", |pair| pair.0));
    refuse_twice("--gpu-price", models.filter(|model| !model.is_empty()))?;
    for text in gpu_prices {
        let wrong = |problem: String| UsageError(format!("--gpu-price {text}: {problem}"));
        let pair = text.rsplit_once('=');
        let (model, usd) = pair.ok_or_else(|| wrong("expected MODEL=USD_PER_HOUR".to_owned()))?;
        if model.contains('=') {
            return Err(wrong("two times `=`: expected MODEL=USD_PER_HOUR".to_owned()).into());
        }
        book = book.with_assumed(model, usd).map_err(|error| wrong(error.to_string()))?;
    }
    Ok(book)
}

/// Rates of flags beside others.
///
/// # Errors
/// A text that is no rate, or two for one currency.
pub(crate) fn exchange_of(mut exchange: Exchange, texts: &[String]) -> Result<Exchange> {
    refuse_twice("--exchange", texts.iter().filter_map(|text| Some(text.split_once('=')?.0)))?;
    for text in texts {
        let added = exchange.with_text(text, "--exchange");
        exchange = added.map_err(|problem| UsageError(format!("--exchange {text}: {problem}")))?;
    }
    Ok(exchange)
}

/// A way of buying as the value of a flag.
fn purchase_value(purchase: Purchase) -> PossibleValue {
    let value = PossibleValue::new(purchase.name());
    // What it was called before.
    if purchase == Purchase::Committed { value.alias("reserved") } else { value }
}

fn priced(price: Price) -> Priced {
    let Price::Known(known) = price else { return Priced::Unknown };
    let day = known.as_of.map(|day| format!(", {day}")).unwrap_or_default();
    let place = match (known.provider, known.region) {
        (Some(provider), Some(region)) => format!("{provider} {region}: "),
        (Some(provider), None) => format!("{provider}: "),
        _ => String::new(),
    };
    Priced::Known(GpuPrice {
        usd_micros_per_gpu_hour: known.usd_micros_per_gpu_hour,
        source: format!("{place}{}{day}", known.source),
        assumed: known.origin == Origin::Assumed,
    })
}
