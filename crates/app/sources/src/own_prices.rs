//! One's own prices before those of the built-in book: the flags and settings that every command
//! has.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{ArgAction, Args};
use dovetail_console::open::open;
use dovetail_console::places::Named;
use dovetail_price::{Exchange, PriceBook};
use dovetail_settings::Settings;
use dovetail_settings::errors::{UsageError, refuse_twice};

/// Flags as written.
#[derive(Clone, Debug, Default, Args)]
pub struct OwnPriceFlags {
    /// CSV with your own prices: gpu_model,usd_per_gpu_hour (or price_per_gpu_hour,currency) and
    /// optionally provider, region, purchase, instance_type, source, as_of
    #[arg(long, value_name = "FILE", alias = "price-file", help_heading = "Prices")]
    pub(crate) prices: Option<PathBuf>,
    /// Price in USD per GPU-hour of a GPU model or resource, such as H100=2.50 or amd.com/gpu=2.10;
    /// * stands for GPUs on nodes that report no GPU model; repeatable
    #[arg(long, value_name = "MODEL=USD_PER_HOUR", action = ArgAction::Append, help_heading = "Prices")]
    pub(crate) gpu_price: Vec<String>,
    /// Exchange rate from another currency to USD, for prices and bills, such as EUR=1.08 or
    /// EUR=1.08@2026-11-20
    #[arg(long, value_name = "CURRENCY=RATE[@DAY]", action = ArgAction::Append, help_heading = "Prices")]
    exchange: Vec<String>,
}

impl OwnPriceFlags {
    /// The file that is read, by its flag.
    pub fn file(&self) -> Named<'_> {
        ("--prices", self.prices.as_deref())
    }

    /// Whether any price is named.
    pub fn is_given(&self) -> bool {
        self.prices.is_some() || !self.gpu_price.is_empty()
    }

    /// The first flag that was given, if any.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let given = [
            ("--gpu-price", !self.gpu_price.is_empty()),
            ("--prices", self.prices.is_some()),
            ("--exchange", !self.exchange.is_empty()),
        ];
        given.into_iter().find(|(_, is_given)| *is_given).map(|(flag, _)| flag)
    }

    /// What other currencies are worth.
    ///
    /// # Errors
    /// A rate that is none.
    pub fn exchange(&self, settings: &Settings) -> Result<Exchange> {
        exchange_of(settings.prices.exchange().map_err(UsageError)?, &self.exchange)
    }

    /// All prices: flags before the file, the file before settings, those before the built-in book.
    ///
    /// # Errors
    /// A price that cannot be read.
    pub fn book(&self, settings: &Settings) -> Result<PriceBook> {
        let book = PriceBook::built_in().with_exchange(self.exchange(settings)?);
        let book = settings.prices.rates(book)?;
        let book = price_book(book, self.prices.as_deref(), &self.gpu_price)?;
        Ok(settings.cost.machines(book)?)
    }
}

/// What a value of `--gpu-price` looks like.
const GPU_PRICE_FORM: &str = "expected MODEL=USD_PER_HOUR, such as H100=2.50";

/// A book with a file of the user's own prices and stand-ins in front of it.
///
/// # Errors
/// A price that cannot be read, or two for one model.
fn price_book(
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
        let (model, usd) = pair.ok_or_else(|| wrong(GPU_PRICE_FORM.to_owned()))?;
        if model.contains('=') {
            return Err(wrong(format!("more than one `=`: {GPU_PRICE_FORM}")).into());
        }
        book = book.with_assumed(model, usd).map_err(|error| wrong(error.to_string()))?;
    }
    Ok(book)
}

/// Rates of flags beside others.
///
/// # Errors
/// A text that is not an exchange rate, or two for one currency.
fn exchange_of(mut exchange: Exchange, texts: &[String]) -> Result<Exchange> {
    refuse_twice("--exchange", texts.iter().filter_map(|text| Some(text.split_once('=')?.0)))?;
    for text in texts {
        let added = exchange.with_text(text, "--exchange");
        exchange = added.map_err(|problem| UsageError(format!("--exchange {text}: {problem}")))?;
    }
    Ok(exchange)
}
