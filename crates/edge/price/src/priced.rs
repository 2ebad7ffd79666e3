//! A price of the book as accounts carry it.

use dovetail_account::{GpuPrice, Priced};

use crate::{Price, PriceOrigin};

impl From<Price> for Priced {
    fn from(price: Price) -> Self {
        let Price::Known(known) = price else { return Self::Unknown };
        let day = known.as_of.map(|day| format!(", {day}")).unwrap_or_default();
        let place = match (known.provider, known.region) {
            (Some(provider), Some(region)) => format!("{provider} {region}: "),
            (Some(provider), None) => format!("{provider}: "),
            _ => String::new(),
        };
        Self::Known(GpuPrice {
            usd_micros_per_gpu_hour: known.usd_micros_per_gpu_hour,
            source: format!("{place}{}{day}", known.source),
            assumed: known.origin == PriceOrigin::Assumed,
        })
    }
}
