//! Which of several agreeing rows answers.

use std::cmp::Reverse;

use crate::price::Purchase;
use crate::table::PriceRow;

/// Provider and region taken, in this order, where the caller names none. Reports print the place
/// that was taken.
pub const DEFAULT_PLACES: [(&str, &str); 3] =
    [("aws", "us-east-1"), ("gcp", "us-central1"), ("azure", "eastus")];

/// What the caller asked for; an open field asks for the default.
#[derive(Clone, Copy)]
pub(crate) struct RankQuery<'a> {
    pub(crate) provider: Option<&'a str>,
    pub(crate) region: Option<&'a str>,
    pub(crate) instance_type: Option<&'a str>,
    pub(crate) purchase: Purchase,
}

/// The row that answers the question, if any agrees with it.
pub(crate) fn best<'a>(rows: &'a [PriceRow], question: RankQuery<'_>) -> Option<&'a PriceRow> {
    rows.iter().filter(|row| agrees(row, question)).min_by_key(|row| {
        // A row for the very thing asked beats a row for everything; where nothing was asked, a row
        // for everything beats one that happens to be about some place. A provider or a region that
        // nobody knows agrees with none by itself, so this goes before all else.
        let is_provider_guessed = question.provider.is_none() && row.provider.is_some();
        let is_region_guessed = question.region.is_none() && row.region.is_some();
        let fit = (
            is_provider_guessed,
            is_region_guessed,
            question.instance_type.is_some() != row.instance_type.is_some(),
            question.provider.is_some() != row.provider.is_some(),
            question.region.is_some() != row.region.is_some(),
            Reverse(row.purchase.is_some()),
        );
        (fit, default_rank(row), row.usd_micros_per_gpu_hour, &row.provider, &row.region)
    })
}

fn agrees(row: &PriceRow, question: RankQuery<'_>) -> bool {
    let same = |row: &Option<String>, asked: Option<&str>| match (row, asked) {
        (Some(row), Some(asked)) => row.eq_ignore_ascii_case(asked),
        _ => true,
    };
    same(&row.provider, question.provider)
        && same(&row.region, question.region)
        && is_of_type(row, question.instance_type)
        && row.purchase.is_none_or(|purchase| purchase == question.purchase)
}

/// Whether a row is of an instance type, or either of them leaves it open. Clouds do not tell types
/// apart by case.
pub(crate) fn is_of_type(row: &PriceRow, instance_type: Option<&str>) -> bool {
    match (&row.instance_type, instance_type) {
        (Some(row), Some(asked)) => row.eq_ignore_ascii_case(asked),
        _ => true,
    }
}

fn default_rank(row: &PriceRow) -> usize {
    let is_place = |(provider, region): &(&str, &str)| {
        row.provider.as_deref() == Some(*provider) && row.region.as_deref() == Some(*region)
    };
    DEFAULT_PLACES.iter().position(is_place).unwrap_or(DEFAULT_PLACES.len())
}
