//! How a node's price is split and which team pays: the flags and settings of every command that
//! does it.

use anyhow::Result;
use clap::builder::NonEmptyStringValueParser;
use clap::{ArgAction, Args};
use dovetail_account::split::{ListPrices, SplitMethod};
use dovetail_console::app::App;
use dovetail_price::parse_usd_micros;
use dovetail_settings::errors::UsageError;

use super::teams::Teams;

/// Flags as written.
#[derive(Debug, Args)]
pub struct SplitFlags {
    /// How to split a node's price among CPU, memory and GPUs: all-in (GPUs carry the whole price),
    /// residual (CPU and memory at list price, GPUs the rest), or the weights of aws-split,
    /// opencost or datadog (docs/read-the-bill.md) [default: residual if CPU and memory have list
    /// prices, else all-in]
    #[arg(long, value_name = "NAME")]
    pub method: Option<SplitMethod>,
    /// Label that names the team, on the namespace, then on the pod; repeatable [default: team,
    /// cost-center, owner, ...]
    #[arg(long, value_name = "LABEL", action = ArgAction::Append)]
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    team_label: Vec<String>,
}

/// What CPU and memory cost where they are sold alone.
#[derive(Debug, Args)]
pub struct ListPriceFlags {
    /// List price of a vCPU-hour in USD, such as 0.04
    #[arg(long, value_name = "USD", requires = "gib_price", help_heading = "Prices")]
    vcpu_price: Option<String>,
    /// List price of a GiB-hour of memory in USD, such as 0.005
    #[arg(long, value_name = "USD", requires = "vcpu_price", help_heading = "Prices")]
    gib_price: Option<String>,
}

impl SplitFlags {
    /// How teams are recognized.
    pub fn teams(&self, app: &App) -> Teams {
        Teams::new(&app.settings.cost, &self.team_label)
    }

    /// The method asked for, or that of the settings.
    pub fn method(&self, app: &App) -> Option<SplitMethod> {
        let set = || app.settings.cost.method.as_ref().and_then(|name| name.parse().ok());
        self.method.or_else(set)
    }
}

impl ListPriceFlags {
    pub(crate) fn is_given(&self) -> bool {
        self.vcpu_price.is_some()
    }

    /// Those of flags, else those of the settings.
    ///
    /// # Errors
    /// Prices that cannot be.
    pub fn prices(&self, app: &App) -> Result<Option<ListPrices>> {
        let section = &app.settings.cost;
        let pair = |vcpu: &Option<String>, gib: &Option<String>| vcpu.clone().zip(gib.clone());
        let given = pair(&self.vcpu_price, &self.gib_price);
        let set = || pair(&section.usd_per_vcpu_hour, &section.usd_per_gib_hour);
        let Some((vcpu, gib)) = given.or_else(set) else { return Ok(None) };
        let micros = |flag: &str, text: &str| {
            let micros = parse_usd_micros(text).map_err(|problem| format!("{flag}: {problem}"));
            let small = micros.and_then(|micros| {
                u32::try_from(micros)
                    .map_err(|_| format!("{flag} {text}: above 4294 USD an hour: check the unit"))
            });
            small.map_err(UsageError)
        };
        Ok(Some(ListPrices {
            usd_micros_per_vcpu_hour: micros("--vcpu-price", &vcpu)?,
            usd_micros_per_gib_hour: micros("--gib-price", &gib)?,
        }))
    }
}
