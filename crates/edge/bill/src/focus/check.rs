//! The rules of the specification that a dataset of split costs can break, read off its text: which
//! columns there are, what stands in them, and that rows are what they were split from.
//!
//! It reads a dataset as anybody would, from its text, and shares with the writer nothing but the
//! reader of decimal numbers. Rules about what we do not write (contracts, invoices, several
//! currencies, quantities of commitments) are not in it.

use std::collections::{BTreeMap, BTreeSet};

use csv::StringRecord;
use serde_json::Value;

use super::FocusVersion;
use super::columns::{NOT_NULL, columns, split_column};
use crate::amount::{PICO, pico};

/// A broken rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// Line of the file, from 1; the header is 1.
    pub line: u64,
    /// Column; empty for rules about several.
    pub column: String,
    pub problem: String,
}

/// Columns that every dataset has, by version, as the feature level of the specification says.
const MANDATORY: [&str; 19] = [
    "BilledCost",
    "BillingAccountId",
    "BillingAccountName",
    "BillingCurrency",
    "BillingPeriodEnd",
    "BillingPeriodStart",
    "ChargeCategory",
    "ChargeClass",
    "ChargeDescription",
    "ChargePeriodEnd",
    "ChargePeriodStart",
    "ContractedCost",
    "EffectiveCost",
    "InvoiceIssuerName",
    "ListCost",
    "PricingQuantity",
    "PricingUnit",
    "ServiceCategory",
    "ServiceName",
];

/// Values of columns that are lists.
const ALLOWED: [(&str, &[&str]); 7] = [
    ("CommitmentDiscountCategory", &["", "Spend", "Usage"]),
    ("CommitmentDiscountStatus", &["", "Used", "Unused"]),
    ("ChargeCategory", &["Usage", "Purchase", "Tax", "Credit", "Adjustment"]),
    ("ChargeClass", &["", "Correction"]),
    ("ChargeFrequency", &["One-Time", "Recurring", "Usage-Based"]),
    ("PricingCategory", &["", "Standard", "Dynamic", "Committed", "Other"]),
    (
        "ServiceCategory",
        &[
            "AI and Machine Learning",
            "Analytics",
            "Business Applications",
            "Compute",
            "Databases",
            "Developer Tools",
            "Identity",
            "Integration",
            "Internet of Things",
            "Management and Governance",
            "Media",
            "Migration",
            "Mobile",
            "Multicloud",
            "Networking",
            "Other",
            "Security",
            "Storage",
            "Web",
        ],
    ),
];

const NUMBERS: [&str; 6] = [
    "BilledCost",
    "ConsumedQuantity",
    "ContractedCost",
    "EffectiveCost",
    "ListCost",
    "PricingQuantity",
];
const TIMES: [&str; 4] =
    ["BillingPeriodEnd", "BillingPeriodStart", "ChargePeriodEnd", "ChargePeriodStart"];

/// Checks a dataset; an empty answer is a good one. `origins` are what the charges were split from,
/// by `ResourceId` and `ChargePeriodStart`, in micro-units of `BilledCost`; without it that sum is
/// not checked.
pub fn check(
    version: FocusVersion,
    dataset: &str,
    origins: Option<&BTreeMap<(String, String), i64>>,
) -> Vec<Violation> {
    let mut reader = csv::Reader::from_reader(dataset.as_bytes());
    let header = match reader.headers() {
        Ok(header) => header.clone(),
        Err(error) => return vec![violation(1, "", error)],
    };
    let mut found = check_header(version, &header);
    let mut rows = Vec::new();
    for record in reader.records() {
        match record {
            Ok(record) => rows.push(DatasetRow::of(&header, &record)),
            Err(error) => {
                found.push(violation(error.position().map_or(0, csv::Position::line), "", error));
            }
        }
    }
    for row in &rows {
        check_row(version, row, &mut found);
    }
    check_splits(version, &rows, origins, &mut found);
    found.sort();
    found
}

fn violation(line: u64, column: &str, problem: impl ToString) -> Violation {
    Violation { line, column: column.to_owned(), problem: problem.to_string() }
}

/// A row by column.
struct DatasetRow {
    line: u64,
    cells: BTreeMap<String, String>,
}

impl DatasetRow {
    fn of(header: &StringRecord, record: &StringRecord) -> Self {
        let cells =
            header.iter().zip(record).map(|(name, cell)| (name.to_owned(), cell.to_owned()));
        Self { line: record.position().map_or(0, csv::Position::line), cells: cells.collect() }
    }

    fn get(&self, column: &str) -> &str {
        self.cells.get(column).map_or("", String::as_str)
    }
}

fn check_header(version: FocusVersion, header: &StringRecord) -> Vec<Violation> {
    let mut found = Vec::new();
    let known: BTreeSet<String> = columns(version).into_iter().collect();
    let mut seen = BTreeSet::new();
    let mut custom_before = false;
    for name in header {
        let is_custom = name.starts_with("x_");
        if !seen.insert(name) {
            found.push(violation(1, name, "is duplicated"));
        }
        if !is_custom && !known.contains(name) {
            found.push(violation(
                1,
                name,
                format!("is not a column of FOCUS {version} and does not start with x_"),
            ));
        }
        if !is_custom && custom_before {
            found.push(violation(1, name, "follows custom columns"));
        }
        custom_before |= is_custom;
    }
    let by_version: &[&str] = match version {
        FocusVersion::V1_2 => &["ProviderName", "PublisherName"],
        FocusVersion::V1_3 => {
            &["ProviderName", "PublisherName", "HostProviderName", "ServiceProviderName"]
        }
        FocusVersion::V1_4 => &["HostProviderName", "ServiceProviderName", "InvoiceDetailId"],
    };
    for name in MANDATORY.iter().chain(by_version) {
        if !seen.contains(name) {
            found.push(violation(1, name, "is mandatory but missing"));
        }
    }
    found
}

fn check_row(version: FocusVersion, row: &DatasetRow, found: &mut Vec<Violation>) {
    let mut wrong =
        |column: &str, problem: String| found.push(violation(row.line, column, problem));
    for column in NOT_NULL {
        if row.get(column).is_empty() {
            wrong(column, "is empty".to_owned());
        }
    }
    for (column, allowed) in ALLOWED {
        let value = row.get(column);
        if row.cells.contains_key(column) && !allowed.contains(&value) {
            wrong(column, format!("`{value}` is not one of {}", allowed.join(", ")));
        }
    }
    for column in NUMBERS {
        let value = row.get(column);
        if pico(value).is_none() || value.starts_with('+') || value.trim() != value {
            wrong(column, format!("`{value}` is not a decimal number"));
        }
    }
    for column in TIMES {
        let value = row.get(column);
        // Digits stand where they must, and it is a day that is.
        let is_time = value.len() == 20
            && value.ends_with('Z')
            && value.as_bytes()[10] == b'T'
            && value.parse::<jiff::Timestamp>().is_ok();
        if !is_time {
            wrong(column, format!("`{value}` is not a time such as 2026-11-20T00:00:00Z"));
        }
    }
    for (from, to) in
        [("ChargePeriodStart", "ChargePeriodEnd"), ("BillingPeriodStart", "BillingPeriodEnd")]
    {
        // Times of one form are in order as text.
        if row.get(from) >= row.get(to) {
            wrong(to, format!("is not after {from}"));
        }
    }
    let currency = row.get("BillingCurrency");
    if currency.len() != 3 || !currency.bytes().all(|byte| byte.is_ascii_uppercase()) {
        wrong("BillingCurrency", format!("`{currency}` is not a three-letter code"));
    }
    for (one, other) in [("RegionId", "RegionName"), ("ConsumedQuantity", "ConsumedUnit")] {
        if row.get(one).is_empty() != row.get(other).is_empty() {
            wrong(other, format!("and {one} must both be set or both be empty"));
        }
    }
    check_commitment(row, &mut wrong);
    let provider = match version {
        FocusVersion::V1_2 | FocusVersion::V1_3 => "ProviderName",
        FocusVersion::V1_4 => "ServiceProviderName",
    };
    let is_paid_elsewhere = row.get("InvoiceIssuerName") != row.get(provider);
    if is_paid_elsewhere && pico(row.get("BilledCost")) != Some(0) {
        wrong("BilledCost", format!("must be 0 unless InvoiceIssuerName is {provider}"));
    }
    for (column, cell) in &row.cells {
        if cell.starts_with(['=', '+', '@']) || cell.starts_with('-') && pico(cell).is_none() {
            wrong(column, "starts like a formula".to_owned());
        }
    }
    check_tags(version, row, &mut wrong);
}

/// Used time of a commitment is priced by it; nothing is said of a commitment that is not named.
fn check_commitment(row: &DatasetRow, wrong: &mut dyn FnMut(&str, String)) {
    let is_named = !row.get("CommitmentDiscountId").is_empty();
    for column in ["CommitmentDiscountCategory", "CommitmentDiscountType"] {
        if !is_named && !row.get(column).is_empty() {
            wrong(column, "is set without a CommitmentDiscountId".to_owned());
        }
    }
    if is_named == row.get("CommitmentDiscountStatus").is_empty() {
        let problem = "and CommitmentDiscountId must both be set or both be empty";
        wrong("CommitmentDiscountStatus", problem.to_owned());
    }
    if is_named && row.get("PricingCategory") != "Committed" {
        wrong(
            "PricingCategory",
            "must be Committed because a commitment covers the charge".to_owned(),
        );
    }
}

/// Tags are objects of texts, and what a resource has is not told again for what it is allocated
/// to.
fn check_tags(version: FocusVersion, row: &DatasetRow, wrong: &mut dyn FnMut(&str, String)) {
    let mut keys_of = |column: &str| -> BTreeSet<String> {
        let text = row.get(column);
        if text.is_empty() {
            return BTreeSet::new();
        }
        match serde_json::from_str::<Value>(text) {
            Ok(Value::Object(tags)) => {
                if tags.values().any(|value| !value.is_string() && *value != Value::Bool(true)) {
                    wrong(column, "has values that are neither text nor true".to_owned());
                }
                tags.into_iter().map(|(key, _)| key).collect()
            }
            _ => {
                wrong(column, format!("`{text}` is not a JSON object"));
                BTreeSet::new()
            }
        }
    };
    let own = keys_of("Tags");
    let allocated = split_column(version, "AllocatedTags");
    let both: Vec<String> = keys_of(&allocated).intersection(&own).cloned().collect();
    if !both.is_empty() {
        wrong(&allocated, format!("repeats tags of the resource: {}", both.join(", ")));
    }
}

/// Rows of one origin: their ratios are one, their sums are it, and all else is alike.
fn check_splits(
    version: FocusVersion,
    rows: &[DatasetRow],
    origins: Option<&BTreeMap<(String, String), i64>>,
    found: &mut Vec<Violation>,
) {
    let split = |column: &str| split_column(version, column);
    let mut groups: BTreeMap<(String, String), Vec<&DatasetRow>> = BTreeMap::new();
    for row in rows {
        let key = (row.get("ResourceId").to_owned(), row.get("ChargePeriodStart").to_owned());
        groups.entry(key).or_default().push(row);
    }
    let differ = ["BilledCost", "ContractedCost", "EffectiveCost", "ListCost"];
    let differ = differ.into_iter().chain(["ConsumedQuantity", "PricingQuantity"]);
    let differ: BTreeSet<&str> = differ.collect();
    for (key, rows) in &groups {
        let first = rows[0];
        let (mut ratios, mut billed) = (0, 0);
        for row in rows {
            let mut wrong = |column: &str, problem: String| {
                found.push(violation(row.line, column, problem));
            };
            if row.get(&split("AllocatedMethodId")).is_empty() {
                wrong(
                    &split("AllocatedMethodId"),
                    "is empty although the charge is split".to_owned(),
                );
            }
            let has = |column: &str| !row.get(&split(column)).is_empty();
            if has("AllocatedResourceId") != has("AllocatedResourceName") {
                wrong(
                    &split("AllocatedResourceName"),
                    "must be set if and only if there is an identity".into(),
                );
            }
            match ratio(row.get(&split("AllocatedMethodDetails"))) {
                Ok(ratio) => ratios += ratio,
                Err(problem) => wrong(&split("AllocatedMethodDetails"), problem),
            }
            billed += pico(row.get("BilledCost")).unwrap_or(0);
            let custom = |column: &str| column.starts_with("x_") || column.starts_with("Allocated");
            for (column, cell) in &row.cells {
                if !custom(column) && !differ.contains(column.as_str()) && first.get(column) != cell
                {
                    wrong(column, "differs from the other rows of its origin".to_owned());
                }
            }
        }
        if ratios != PICO {
            let problem = format!("ratios of {} at {} sum to {ratios}/{PICO}", key.0, key.1);
            found.push(violation(first.line, &split("AllocatedMethodDetails"), problem));
        }
        let origin =
            origins.map(|origins| origins.get(key).map(|micros| i128::from(*micros) * 1_000_000));
        if let Some(origin) = origin
            && origin != Some(billed)
        {
            let problem =
                format!("{} at {}: rows are {billed}, their origin {origin:?}", key.0, key.1);
            found.push(violation(first.line, "BilledCost", problem));
        }
    }
    for key in origins.into_iter().flat_map(BTreeMap::keys).filter(|key| !groups.contains_key(*key))
    {
        found.push(violation(0, "", format!("{} at {} has no rows", key.0, key.1)));
    }
}

/// The sum of a row's ratios in 10⁻¹².
fn ratio(details: &str) -> Result<i128, String> {
    let value: Value =
        serde_json::from_str(details).map_err(|error| format!("is not JSON: {error}"))?;
    let elements = value["Elements"].as_array().ok_or("has no list of Elements")?;
    let mut sum = 0;
    for element in elements {
        let ratio =
            element["AllocatedRatio"].as_number().ok_or("has an element without a ratio")?;
        let ratio = pico(&ratio.to_string()).ok_or("has a ratio that is not a number")?;
        if !(0..=PICO).contains(&ratio) {
            return Err("has a ratio that is not between 0 and 1".to_owned());
        }
        if element.get("UsageQuantity").is_some() && element["UsageUnit"].as_str().is_none() {
            return Err("has a quantity without a unit".to_owned());
        }
        sum += ratio;
    }
    Ok(sum)
}
