//! Prices whose day is long ago, wherever they are told: they change.

use std::collections::BTreeMap;

use dovetail_console::plain::plain_sentence;

use crate::node_prices::PriceLine;

/// Older ones are told.
const OLD_PRICE_DAYS: i64 = 90;
/// Stands for GPUs whose model nobody knows.
const ANY_MODEL: &str = "(unknown)";

/// Prices of a day too long ago.
pub fn old_prices(prices: &[PriceLine], now_ms: u64) -> Vec<String> {
    let today = jiff::Timestamp::from_millisecond(i64::try_from(now_ms).unwrap_or(0));
    let Ok(today) = today.map(|now| now.to_zoned(jiff::tz::TimeZone::UTC).date()) else {
        return Vec::new();
    };
    let mut ages: BTreeMap<(&str, i64), Vec<&str>> = BTreeMap::new();
    for line in prices {
        let Some(day) = line.as_of.as_deref() else { continue };
        let Ok(date) = day.parse::<jiff::civil::Date>() else { continue };
        let age_days = i64::from(date.until(today).map_or(0, |span| span.get_days()));
        if age_days > OLD_PRICE_DAYS {
            ages.entry((day, age_days))
                .or_default()
                .push(line.model.as_deref().unwrap_or(ANY_MODEL));
        }
    }
    let told = ages.into_iter().map(|((day, age_days), mut models)| {
        models.sort_unstable();
        models.dedup();
        plain_sentence(&format!(
            "prices of {} date from {day}, {age_days} days ago: check them, or pass your own with --prices",
            models.join(", ")
        ))
    });
    told.collect()
}
