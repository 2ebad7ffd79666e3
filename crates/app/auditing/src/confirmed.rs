//! What a ledger says of findings that are fixed, in the words of the JSON.

use dovetail_units::amount::{tenths, usd};
use serde::Serialize;

/// Waste as it would be in a month.
#[derive(Clone, Debug, Serialize)]
pub struct RateOut {
    pub gpu_hours_per_month: f64,
    /// Null where some of it has no price.
    pub usd_micros_per_month: Option<i64>,
    /// Of what has a price; null where nothing has.
    pub(crate) priced_usd_micros_per_month: Option<i64>,
    pub(crate) unpriced_gpu_hours_per_month: f64,
}

impl RateOut {
    /// In dollars, and in time as far as it has no price.
    fn words(&self) -> String {
        let unpriced =
            format!("{} GPU-hours of unknown price", tenths(self.unpriced_gpu_hours_per_month));
        match (self.usd_micros_per_month, self.priced_usd_micros_per_month) {
            (Some(micros), _) => usd(Some(micros)),
            (None, Some(micros)) => format!("{} and {unpriced}", usd(Some(micros))),
            (None, None) => unpriced,
        }
    }
}

/// What a ledger says of one finding.
#[derive(Clone, Debug, Serialize)]
pub struct ConfirmedOut {
    pub status: &'static str,
    pub why: String,
    pub before: Option<RateOut>,
    pub after: Option<RateOut>,
    pub confirmed: Option<RateOut>,
}

impl ConfirmedOut {
    /// Without figures.
    pub fn unknown(why: &str) -> Self {
        let why = why.to_owned();
        Self { status: "unknown", why, before: None, after: None, confirmed: None }
    }

    /// In a sentence, as what the ledger does.
    pub fn words(&self) -> String {
        let status = self.status.replace('_', " ");
        let rates = match (&self.before, &self.after) {
            (Some(before), Some(after)) => {
                format!(" ({} a month before, {} since)", before.words(), after.words())
            }
            _ => String::new(),
        };
        match &self.confirmed {
            Some(confirmed) => {
                let hours = confirmed.gpu_hours_per_month;
                let of_time = match confirmed.priced_usd_micros_per_month {
                    Some(_) => format!(" of {} GPU-hours", tenths(hours)),
                    None => String::new(),
                };
                format!("{status}: {} a month{of_time}{rates}", confirmed.words())
            }
            None => format!("{status}: {}{rates}", self.why),
        }
    }
}

/// One of two equal periods.
#[derive(Clone, Debug, Serialize)]
pub struct PeriodOut {
    pub from: String,
    pub to: String,
    pub hours: f64,
    pub hours_read: f64,
    /// All waste of the cluster; null where too little was read.
    pub waste: Option<RateOut>,
}

/// What a ledger says of all of them together.
#[derive(Clone, Debug, Serialize)]
pub struct LedgerOut {
    pub source: String,
    pub cluster: Option<String>,
    /// How nodes' prices are split; null where nothing was added up.
    pub method: Option<String>,
    pub before: Option<PeriodOut>,
    pub after: Option<PeriodOut>,
    pub confirmed: Option<RateOut>,
    pub(crate) free_of_unknown_cause_rose_gpu_hours_per_month: Option<f64>,
    /// Why nothing can be said, if so.
    pub why_unknown: Option<String>,
}

impl LedgerOut {
    /// All of it in words.
    pub fn sentence(&self) -> String {
        let cluster = self.cluster.as_ref().map(|name| format!(", cluster {name}"));
        let source = format!("{}{}", self.source, cluster.unwrap_or_default());
        let waste = |period: &Option<PeriodOut>| {
            let PeriodOut { from, to, waste, .. } = period.as_ref()?;
            let waste = waste.clone()?;
            Some((waste.words(), format!("from {from} to {to}"), waste.gpu_hours_per_month))
        };
        let (Some(before), Some(after), Some(confirmed)) =
            (waste(&self.before), waste(&self.after), &self.confirmed)
        else {
            let why = self.why_unknown.as_deref().unwrap_or("it has no data for that time");
            return format!("The ledger ({source}) cannot confirm any fix: {why}.");
        };
        let method = self.method.as_deref().unwrap_or("unknown");
        let free = match self.free_of_unknown_cause_rose_gpu_hours_per_month {
            Some(hours) if hours > 0.0 => format!(
                " GPU time that is free for an unrecorded cause rose by {} GPU-hours a month; it \
                 is not counted as waste.",
                tenths(hours)
            ),
            _ => String::new(),
        };
        let account = match confirmed.gpu_hours_per_month > 0.0 {
            true => format!("Fixed findings account for {} of the decrease.", confirmed.words()),
            false if after.2 < before.2 => {
                "Fixed findings account for none of the decrease.".to_owned()
            }
            false => "It did not decrease.".to_owned(),
        };
        format!(
            "According to the ledger ({source}, method {method}), total waste was {} a month {}, and {} {}. {account}{free}",
            before.0, before.1, after.0, after.1,
        )
    }
}
