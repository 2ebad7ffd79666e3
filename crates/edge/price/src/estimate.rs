//! Estimates where the built-in book has no price: on demand from the nearest region of the
//! provider that it knows, spot from how much less spot costs where both are known.

use std::cmp::Reverse;

use crate::asked::PriceQuery;
use crate::price::{KnownPrice, PriceOrigin, Purchase};
use crate::rank::is_of_type;
use crate::table::{PriceRow, Rows};

/// How regions are called that lie on one continent: first by what their name begins with, then by
/// what stands in it (Azure writes the place without a separator).
const CONTINENTS: [(Continent, &[&str], &[&str]); 7] = [
    (
        Continent::NorthAmerica,
        &["us-", "ca-", "mx-", "northamerica-"],
        &["eastus", "westus", "centralus", "canada", "mexico"],
    ),
    (Continent::SouthAmerica, &["sa-", "southamerica-"], &["brazil", "chile"]),
    (
        Continent::Europe,
        &["eu-", "europe-", "uk"],
        &[
            "europe",
            "france",
            "germany",
            "sweden",
            "norway",
            "switzerland",
            "poland",
            "italy",
            "spain",
        ],
    ),
    (Continent::MiddleEast, &["me-", "il-"], &["uae", "qatar", "israel"]),
    (Continent::Africa, &["af-", "africa-"], &["southafrica"]),
    (Continent::Oceania, &["australia-"], &["australia", "newzealand"]),
    (
        Continent::Asia,
        &["ap-", "asia-", "cn-"],
        &["asia", "japan", "korea", "india", "malaysia", "indonesia", "taiwan"],
    ),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Continent {
    NorthAmerica,
    SouthAmerica,
    Europe,
    MiddleEast,
    Africa,
    Oceania,
    Asia,
}

fn continent(region: &str) -> Option<Continent> {
    let region = region.to_ascii_lowercase();
    let begins = CONTINENTS
        .iter()
        .find(|(_, begins, _)| begins.iter().any(|begin| region.starts_with(begin)));
    let contains =
        || CONTINENTS.iter().find(|(_, _, parts)| parts.iter().any(|p| region.contains(p)));
    begins.or_else(contains).map(|(continent, ..)| *continent)
}

/// What a GPU of a known provider costs as far as other rows tell. `name` is its canonical model.
pub(crate) fn estimate(rows: &Rows, name: &str, asked: &PriceQuery<'_>) -> Option<KnownPrice> {
    let of_model = rows.get(name)?;
    match asked.purchase {
        Purchase::OnDemand | Purchase::Committed => {
            let row = nearest(of_model, asked, Purchase::OnDemand)?;
            let source = format!("estimate: the price in {}: {}", place(row), row.source);
            Some(estimated(row, row.usd_micros_per_gpu_hour, Purchase::OnDemand, source))
        }
        Purchase::Spot => {
            if let Some(row) = nearest(of_model, asked, Purchase::Spot) {
                let source = format!("estimate: the spot price in {}: {}", place(row), row.source);
                return Some(estimated(row, row.usd_micros_per_gpu_hour, Purchase::Spot, source));
            }
            let row = nearest(of_model, asked, Purchase::OnDemand)?;
            let (whose, ppm) = spot_ppm(of_model)
                .map(|ppm| (name, ppm))
                .or_else(|| Some(("all models", spot_ppm(rows.values().flatten())?)))?;
            let micros = i128::from(row.usd_micros_per_gpu_hour) * i128::from(ppm) / 1_000_000;
            let source = format!(
                "estimate: {}% of the on-demand price in {}, the spot ratio of {whose} where both are known: {}",
                (ppm + 5_000) / 10_000,
                place(row),
                row.source
            );
            Some(estimated(row, micros as i64, Purchase::Spot, source))
        }
    }
}

fn place(row: &PriceRow) -> &str {
    row.region.as_deref().unwrap_or("every region")
}

fn estimated(row: &PriceRow, micros: i64, purchase: Purchase, source: String) -> KnownPrice {
    KnownPrice {
        usd_micros_per_gpu_hour: micros,
        origin: PriceOrigin::Estimated,
        source,
        as_of: row.as_of.clone(),
        provider: row.provider.clone(),
        region: row.region.clone(),
        instance_type: row.instance_type.clone(),
        purchase,
    }
}

/// The row of the same provider, of the same instance type where it has one, in the same region,
/// else on the same continent, else wherever it is cheapest.
fn nearest<'r>(
    rows: &'r [PriceRow],
    asked: &PriceQuery<'_>,
    bought: Purchase,
) -> Option<&'r PriceRow> {
    let (provider, region) = (asked.provider?, asked.region.unwrap_or_default());
    let here = continent(region);
    let known = rows
        .iter()
        .filter(|row| row.provider.as_deref() == Some(provider) && row.purchase == Some(bought));
    known.min_by_key(|row| {
        let there = row.region.as_deref().unwrap_or_default();
        let is_near = here.is_some() && continent(there) == here;
        let is_same_type = is_of_type(row, asked.instance_type);
        let fit = Reverse((is_same_type, there.eq_ignore_ascii_case(region), is_near));
        (fit, row.usd_micros_per_gpu_hour, there)
    })
}

/// What spot costs of the price on demand, in millionths: the median over machines and regions
/// where both are known.
fn spot_ppm<'r>(rows: impl IntoIterator<Item = &'r PriceRow>) -> Option<i64> {
    let rows: Vec<&PriceRow> = rows.into_iter().collect();
    let of = |purchase| rows.iter().filter(move |row| row.purchase == Some(purchase));
    let key =
        |row: &PriceRow| (row.provider.clone(), row.region.clone(), row.instance_type.clone());
    let on_demand: std::collections::BTreeMap<_, i64> =
        of(Purchase::OnDemand).map(|row| (key(row), row.usd_micros_per_gpu_hour)).collect();
    let mut ratios: Vec<i64> = of(Purchase::Spot)
        .filter_map(|row| {
            let whole = on_demand.get(&key(row)).filter(|whole| **whole > 0)?;
            Some(row.usd_micros_per_gpu_hour.saturating_mul(1_000_000) / whole)
        })
        .collect();
    ratios.sort_unstable();
    ratios.get(ratios.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_of_three_clouds_lie_on_their_continents() {
        let cases = [
            ("us-east-1", Continent::NorthAmerica),
            ("southcentralus", Continent::NorthAmerica),
            ("northamerica-northeast1", Continent::NorthAmerica),
            ("brazilsouth", Continent::SouthAmerica),
            ("eu-west-1", Continent::Europe),
            ("uksouth", Continent::Europe),
            ("swedencentral", Continent::Europe),
            ("europe-west4", Continent::Europe),
            ("me-central1", Continent::MiddleEast),
            ("southafricanorth", Continent::Africa),
            ("australiaeast", Continent::Oceania),
            ("southeastasia", Continent::Asia),
            ("ap-southeast-2", Continent::Asia),
            ("centralindia", Continent::Asia),
        ];
        for (region, expected) in cases {
            assert_eq!(continent(region), Some(expected), "{region}");
        }
        assert_eq!(continent("moon-1"), None);
    }
}
