//! Rows out.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Write;

use dovetail_model::Money;
use dovetail_model::money::split;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::json;
use thiserror::Error;

use super::FocusVersion;
use super::columns::columns;
use crate::amount::{decimal, pico};
use crate::import::Commitment;

/// A charge that is split: one node over one charge period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitCharge {
    /// Who is billed: the cluster.
    pub account: String,
    /// Code of the currency, for example `USD`.
    pub currency: String,
    /// What is billed, in words.
    pub description: String,
    /// Begin of the charge period, in ms since 1970.
    pub from_ms: u64,
    /// Its end, exclusive.
    pub to_ms: u64,
    /// What it cost, amortised: its parts together. List price × hours where there is no bill.
    pub effective: Money,
    /// What stands on the invoice: without what was paid in advance.
    pub billed: Money,
    /// At list prices.
    pub list: Money,
    /// At negotiated prices, before what commitments take off.
    pub contracted: Money,
    /// The commitment that covers it, where the bill names one.
    pub commitment: Option<Commitment>,
    /// For how long the node was billed, in ms.
    pub billed_ms: u64,
    /// How the node is bought.
    pub pricing: Pricing,
    /// Who runs the machine: the cloud, or nobody else.
    pub provider: String,
    pub region: Option<String>,
    /// The provider's identity of the node, or its name.
    pub node_id: String,
    pub node: String,
    pub gpu_model: Option<String>,
    /// Name and version of the method by which it was split, for example `residual/1`.
    pub method: String,
    pub parts: Vec<OriginShare>,
}

/// How a node is bought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pricing {
    /// By the hour, no commitment.
    #[default]
    Standard,
    /// At a price that moves: spot.
    Dynamic,
    /// At a rate agreed for a term.
    Committed,
}

/// What one payer has of an origin, for one cause.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OriginShare {
    pub cost: Money,
    /// What it is paid for, for example `idle` or `free_no_demand`.
    pub cause: String,
    pub is_waste: bool,
    /// GPU-time in milli-GPU × ms; held; computing.
    pub gpu_milli_ms: [i128; 3],
    /// Namespace and pod of who pays; `None` is nobody.
    pub pod: Option<(String, String)>,
    /// Team, top owner, model, and whatever else is known of who pays, by name.
    pub tags: BTreeMap<String, String>,
}

/// One row by column.
pub type FocusRow = BTreeMap<String, String>;

/// A dataset that cannot be written.
#[derive(Debug, Error)]
pub enum FocusError {
    /// What is written to fails.
    #[error("cannot write the rows")]
    Csv(#[from] csv::Error),
    /// Parts that are not their origin, which is a bug of whoever made them.
    #[error("the parts of {node} sum to {parts:?}, not {cost:?}")]
    Parts { node: String, parts: Money, cost: Money },
}

/// Writes origins as the rows that they are split into, with a header.
///
/// # Errors
/// See [`FocusError`].
pub fn write(
    version: FocusVersion,
    origins: &[SplitCharge],
    output: impl Write,
) -> Result<(), FocusError> {
    let columns = columns(version);
    let mut writer = csv::Writer::from_writer(output);
    writer.write_record(&columns)?;
    for origin in origins {
        for row in rows(version, origin)? {
            let cells =
                columns.iter().map(|column| cell(row.get(column).map_or("", String::as_str)));
            writer.write_record(cells.map(|cell| cell.into_owned()))?;
        }
    }
    writer.flush().map_err(csv::Error::from)?;
    Ok(())
}

/// A cell that no spreadsheet takes for a formula; numbers stay what they are.
fn cell(text: &str) -> Cow<'_, str> {
    let acts = text.starts_with(['=', '+', '-', '@']) && pico(text).is_none();
    if acts { Cow::Owned(format!("'{text}")) } else { Cow::Borrowed(text) }
}

/// Ratios have so many decimals, and sum to one in all of them.
const RATIO_DECIMALS: usize = 12;

fn rows(version: FocusVersion, origin: &SplitCharge) -> Result<Vec<FocusRow>, FocusError> {
    let parts: Money = origin.parts.iter().map(|part| part.cost).sum();
    if parts != origin.effective {
        let (node, cost) = (origin.node.clone(), origin.effective);
        return Err(FocusError::Parts { node, parts, cost });
    }
    if origin.parts.is_empty() {
        return Ok(Vec::new());
    }
    let weights: Vec<i128> =
        origin.parts.iter().map(|part| i128::from(part.cost.usd_micros.max(0))).collect();
    // Whatever is split is a number of units; money is only the name of the function's type.
    let share = |total: i64| split(Money::micros(total), &weights);
    let ratios = share(10_i64.pow(RATIO_DECIMALS as u32));
    // Millionths of an hour.
    let hours =
        share(i64::try_from(origin.billed_ms as i128 * 1_000_000 / 3_600_000).unwrap_or(i64::MAX));
    let of_origin = of_origin(origin);
    let others = [
        ("BilledCost", origin.billed),
        ("ContractedCost", origin.contracted),
        ("ListCost", origin.list),
    ];
    let others = others.map(|(column, amount)| (column, share(amount.usd_micros)));
    let rows = origin.parts.iter().enumerate().zip(ratios).zip(hours);
    Ok(rows
        .map(|(((place, part), ratio), hours)| {
            let mut row = of_origin.clone();
            let micros = |money: Money| decimal(i128::from(money.usd_micros), 6);
            row.insert("EffectiveCost".to_owned(), micros(part.cost));
            for (column, parts) in &others {
                row.insert((*column).to_owned(), micros(parts[place]));
            }
            for column in ["ConsumedQuantity", "PricingQuantity"] {
                row.insert(column.to_owned(), micros(hours));
            }
            row.extend(of_part(version, origin, part, ratio.usd_micros));
            row
        })
        .collect())
}

/// What all rows of an origin have in common.
fn of_origin(origin: &SplitCharge) -> FocusRow {
    let (month_from, month_to) = month(origin.from_ms);
    let region = origin.region.clone().unwrap_or_default();
    let pricing = match origin.pricing {
        Pricing::Standard => "Standard",
        Pricing::Dynamic => "Dynamic",
        Pricing::Committed => "Committed",
    };
    // A commitment that covers the minority of the time covers another charge.
    let commitment = origin.commitment.as_ref().filter(|_| origin.pricing == Pricing::Committed);
    let of_commitment =
        |says: fn(&Commitment) -> &str| commitment.map(says).unwrap_or_default().to_owned();
    let pairs = [
        ("CommitmentDiscountCategory", of_commitment(category)),
        ("CommitmentDiscountId", of_commitment(|commitment| &commitment.id)),
        ("CommitmentDiscountStatus", of_commitment(|_| "Used")),
        ("CommitmentDiscountType", of_commitment(|commitment| &commitment.kind)),
        ("BillingAccountId", origin.account.clone()),
        ("BillingAccountName", origin.account.clone()),
        ("BillingCurrency", origin.currency.clone()),
        ("BillingPeriodEnd", month_to),
        ("BillingPeriodStart", month_from),
        ("ChargeCategory", "Usage".to_owned()),
        ("ChargeDescription", origin.description.clone()),
        ("ChargeFrequency", "Usage-Based".to_owned()),
        ("ChargePeriodEnd", time(origin.to_ms)),
        ("ChargePeriodStart", time(origin.from_ms)),
        ("ConsumedUnit", "Hours".to_owned()),
        ("HostProviderName", origin.provider.clone()),
        // Who is paid: 1.2 has nothing billed for what another than the provider invoices.
        ("InvoiceIssuerName", origin.provider.clone()),
        ("PricingCategory", pricing.to_owned()),
        ("PricingUnit", "Hours".to_owned()),
        ("ProviderName", origin.provider.clone()),
        ("PublisherName", origin.provider.clone()),
        ("RegionId", region.clone()),
        ("RegionName", region),
        ("ResourceId", origin.node_id.clone()),
        ("ResourceName", origin.node.clone()),
        ("ResourceType", "Kubernetes Node".to_owned()),
        ("ServiceCategory", "Compute".to_owned()),
        ("ServiceName", "Kubernetes GPU nodes".to_owned()),
        ("ServiceProviderName", origin.provider.clone()),
        ("ServiceSubcategory", "Containers".to_owned()),
        ("SkuId", sku(origin)),
        ("SkuPriceId", sku(origin)),
        ("Tags", "{}".to_owned()),
        ("x_GpuModel", origin.gpu_model.clone().unwrap_or_default()),
    ];
    pairs.into_iter().map(|(column, cell)| (column.to_owned(), cell)).collect()
}

/// What was committed to, in one of the specification's words.
fn category(commitment: &Commitment) -> &str {
    let known = ["Spend", "Usage"].contains(&commitment.category.as_str());
    if known { &commitment.category } else { "" }
}

/// What is sold: a node with GPUs of a model.
fn sku(origin: &SplitCharge) -> String {
    let model = origin.gpu_model.as_deref().unwrap_or("unknown");
    format!("gpu-node/{model}/{:?}", origin.pricing).to_lowercase()
}

fn of_part(
    version: FocusVersion,
    origin: &SplitCharge,
    part: &OriginShare,
    ratio: i64,
) -> FocusRow {
    let [all, allocated, active] = part.gpu_milli_ms;
    let seconds = |time: i128| decimal(time, 6);
    let tag = |name: &str| part.tags.get(name).cloned().unwrap_or_default();
    let hours = decimal(all / 3_600, 6);
    let details = format!(
        "{{\"Elements\": [{{\"AllocatedRatio\": {}, \"UsageUnit\": \"GPU Hours\", \"UsageQuantity\": {hours}}}]}}",
        decimal(i128::from(ratio), RATIO_DECIMALS)
    );
    let (id, name, tags) = match &part.pod {
        Some((namespace, pod)) => {
            (format!("{namespace}/{pod}"), pod.clone(), json!(part.tags).to_string())
        }
        // The part that is allocated to nobody.
        None => (String::new(), String::new(), String::new()),
    };
    let split = [
        ("AllocatedMethodId", format!("dovetail/{}", origin.method)),
        ("AllocatedMethodDetails", details),
        ("AllocatedResourceId", id),
        ("AllocatedResourceName", name),
        ("AllocatedTags", tags),
    ];
    let namespace = part.pod.as_ref().map(|(namespace, _)| namespace.clone()).unwrap_or_default();
    let custom = [
        ("x_GpuSeconds", seconds(all)),
        ("x_GpuAllocatedSeconds", seconds(allocated)),
        ("x_GpuActiveSeconds", seconds(active)),
        ("x_WasteCause", part.cause.clone()),
        ("x_IsWaste", part.is_waste.to_string()),
        ("x_Namespace", namespace),
        ("x_Team", tag("team")),
        ("x_Job", tag("job")),
        ("x_Model", tag("model")),
    ];
    let split = split
        .into_iter()
        .map(|(column, cell)| (super::columns::split_column(version, column), cell));
    split.chain(custom.into_iter().map(|(column, cell)| (column.to_owned(), cell))).collect()
}

/// A moment as the specification writes it, to the second.
fn time(ms: u64) -> String {
    stamp(ms).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The first moment of the month, and of the next.
fn month(ms: u64) -> (String, String) {
    let first = stamp(ms).to_zoned(TimeZone::UTC).date().first_of_month();
    let next = first.checked_add(jiff::Span::new().months(1)).unwrap_or(first);
    let text = |date: jiff::civil::Date| format!("{date}T00:00:00Z");
    (text(first), text(next))
}

fn stamp(ms: u64) -> Timestamp {
    let ms = i64::try_from(ms).unwrap_or(i64::MAX);
    Timestamp::from_millisecond(ms).unwrap_or(Timestamp::MAX)
}
