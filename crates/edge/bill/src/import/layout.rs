//! Which columns of a file hold what.

use std::cell::RefCell;

/// Places of columns.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) resource: usize,
    pub(super) from: usize,
    pub(super) to: usize,
    /// The first of these that says something is the cost of a line; by kind of line where that
    /// matters.
    pub(super) costs: Vec<CostColumn>,
    /// Column with the cost on the invoice.
    pub(super) billed: Option<usize>,
    /// Column with the cost at list prices.
    pub(super) list: Option<usize>,
    /// Column with the cost at negotiated prices.
    pub(super) contracted: Option<usize>,
    /// Column with the kind of line.
    pub(super) kind: Option<usize>,
    /// Kinds that are machine time.
    pub(super) usage: &'static [&'static str],
    /// Kinds that take something off machine time.
    pub(super) discounts: &'static [(&'static str, Discount)],
    /// Costs after discounts, in columns of their own, by kind of line as in `costs`; empty where
    /// the file has none.
    pub(super) nets: Vec<CostColumn>,
    /// Kinds that a commitment covers: what they cost is in a column of their own or not in the
    /// file.
    pub(super) covered: &'static [&'static str],
    /// Column that says how the machine is bought.
    pub(super) bought: Option<usize>,
    /// Column with the provider's code of what was used, which tells spot where no other column
    /// does.
    pub(super) usage_type: Option<usize>,
    /// Column with the provider's kind of product, which tells machines from what is used beside
    /// them.
    pub(super) product_family: Option<usize>,
    /// Columns that name the commitment that covers a line.
    pub(super) commitments: Vec<CommitmentColumns>,
    /// Whether costs are those of the invoice, in which commitments are paid elsewhere.
    pub(super) is_invoiced: bool,
    /// Column that says, where it is not empty, that the line splits another one that is in the
    /// file, too. Rows that FOCUS allocates to resources stand instead of what they were split
    /// from, to which they sum.
    pub(super) parent: Option<usize>,
    pub(super) currency: Option<usize>,
}

/// From which costs of a machine a line takes its amount, beside the invoice and the amortised one.
/// The contracted price has negotiated discounts in it, and neither those of commitments nor any
/// other (FOCUS, `ContractedUnitPrice`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Discount {
    /// A part of the negotiated price.
    Negotiated,
    /// Any other discount: for the use of another service, for many reservations, or of a kind that
    /// is not said.
    Other,
    /// Money given back: no price is another for it.
    Credit,
    /// What the line says in each column.
    AsWritten,
}

#[derive(Clone, Debug)]
pub(super) struct CostColumn {
    pub(super) column: usize,
    /// Only for lines of this kind.
    pub(super) kind: Option<&'static str>,
}

/// Columns about the commitment that covers a line.
#[derive(Clone, Debug)]
pub(super) struct CommitmentColumns {
    pub(super) id: usize,
    /// Only for lines of this kind.
    pub(super) of_kind: Option<&'static str>,
    /// What was committed to, and the provider's word for it.
    pub(super) category: Option<usize>,
    pub(super) kind: Option<usize>,
    /// The same where no column says it.
    pub(super) category_of_kind: &'static str,
    pub(super) name_of_kind: &'static str,
}

/// What AWS calls the use of a machine, between the region and the type of machine
/// (`USE1-BoxUsage:p5.48xlarge`): on demand or reserved, spot, on hardware of its own, on a host of
/// its own, and in scheduled reservations (user guide of AWS Data Exports, "Line item details",
/// `lineItem/UsageType`; usage types of EC2).
pub(super) const MACHINE_USAGE: [&str; 6] =
    ["BoxUsage", "SpotUsage", "DedicatedUsage", "HostBoxUsage", "HostUsage", "SchedUsage"];

/// Kinds of AWS lines that are machine time.
const AWS_USAGE: [&str; 3] = ["Usage", "DiscountedUsage", "SavingsPlanCoveredUsage"];

/// Kinds of AWS lines that take something off it, in the machine's own name.
///
/// Their amounts stand in the unblended cost, as less than nothing. The user guide of AWS Data
/// Exports ("Line item details", `lineItem/LineItemType`) has `BundledDiscount`, `Credit`,
/// `Discount` and `Refund`, and says that discounts can have names of their own; these are the
/// Enterprise Discount Program's (`EdpDiscount`), private pricing's (`PrivateRateDiscount`) and the
/// Solution Provider Program's (`SppDiscount`), which are agreed on with a customer or its
/// reseller, and `RiVolumeDiscount`, which is on the price of many reservations. A bundled discount
/// is for the use of another service (the same guide, "Discount columns").
const AWS_DISCOUNTS: [(&str, Discount); 8] = [
    ("EdpDiscount", Discount::Negotiated),
    ("PrivateRateDiscount", Discount::Negotiated),
    ("SppDiscount", Discount::Negotiated),
    ("RiVolumeDiscount", Discount::Other),
    ("BundledDiscount", Discount::Other),
    ("Discount", Discount::Other),
    ("Credit", Discount::Credit),
    ("Refund", Discount::Credit),
];

/// Costs of AWS after discounts. A report has discounts as lines, in these columns, or in both (the
/// same guide, "Discount columns": as lines with "manual discount compatibility"); credits and
/// refunds are lines in each.
const AWS_NETS: [(&str, Option<&str>); 3] = [
    ("reservation/NetEffectiveCost", Some("DiscountedUsage")),
    ("savingsPlan/NetSavingsPlanEffectiveCost", Some("SavingsPlanCoveredUsage")),
    ("lineItem/NetUnblendedCost", None),
];

/// Kinds of machine time that a commitment covers.
const AWS_COVERED: [&str; 2] = ["DiscountedUsage", "SavingsPlanCoveredUsage"];

/// Commitments of AWS: the column, the kind of line, and category and type as AWS writes them in
/// FOCUS.
const AWS_COMMITMENTS: [(&str, &str, &str, &str); 2] = [
    ("reservation/ReservationARN", "DiscountedUsage", "Usage", "Reserved"),
    ("savingsPlan/SavingsPlanARN", "SavingsPlanCoveredUsage", "Spend", "SavingsPlan"),
];

/// Amortised costs of AWS by kind of line.
const AWS_COSTS: [(&str, Option<&str>); 3] = [
    ("reservation/EffectiveCost", Some("DiscountedUsage")),
    ("savingsPlan/SavingsPlanEffectiveCost", Some("SavingsPlanCoveredUsage")),
    ("lineItem/UnblendedCost", None),
];

impl Layout {
    /// The layout of a header that has columns at these places.
    ///
    /// # Errors
    /// What is missing for either form.
    pub(super) fn of(place: impl Fn(&str) -> Option<usize>) -> Result<Self, String> {
        match place("ChargePeriodStart") {
            Some(_) => Self::of_focus(place),
            None => Self::of_aws(place),
        }
    }

    fn of_focus(place: impl Fn(&str) -> Option<usize>) -> Result<Self, String> {
        let need = |name: &str| place(name).ok_or_else(|| missing("FOCUS", name));
        let cost = place("EffectiveCost").or_else(|| place("BilledCost"));
        Ok(Self {
            resource: need("ResourceId")?,
            from: need("ChargePeriodStart")?,
            to: need("ChargePeriodEnd")?,
            costs: vec![CostColumn {
                column: cost.ok_or_else(|| missing("FOCUS", "EffectiveCost"))?,
                kind: None,
            }],
            billed: place("BilledCost"),
            list: place("ListCost"),
            contracted: place("ContractedCost"),
            kind: place("ChargeCategory"),
            usage: &["Usage"],
            discounts: &[("Credit", Discount::AsWritten)],
            nets: Vec::new(),
            covered: &[],
            bought: place("PricingCategory"),
            // A column of AWS' own in its export of FOCUS.
            usage_type: place("x_UsageType"),
            product_family: None,
            commitments: focus_commitment(&place).into_iter().collect(),
            is_invoiced: place("EffectiveCost").is_none(),
            parent: None,
            currency: place("BillingCurrency"),
        })
    }

    fn of_aws(place: impl Fn(&str) -> Option<usize>) -> Result<Self, String> {
        // Older reports write `lineItem/ResourceId`, newer ones `line_item_resource_id`.
        let twice = RefCell::new(None);
        let aws = |name: &str| {
            let (older, newer) = (place(name), place(&snake(name)));
            if older.is_some() && newer.is_some() {
                twice.replace(Some(name.to_owned()));
            }
            older.or(newer)
        };
        if aws("lineItem/ResourceId").is_none() {
            return Err("neither a FOCUS file (ResourceId, ChargePeriodStart, EffectiveCost, …) nor an AWS cost \
                        and usage report (lineItem/ResourceId, …): export one of them as CSV"
                .to_owned());
        }
        let need = |name: &str| aws(name).ok_or_else(|| missing("an AWS report", name));
        let columns = |of: &[(&str, Option<&'static str>)]| -> Vec<CostColumn> {
            let known = of.iter();
            let known = known
                .filter_map(|(name, kind)| Some(CostColumn { column: aws(name)?, kind: *kind }));
            known.collect()
        };
        let billed = Some(need("lineItem/UnblendedCost")?);
        let layout = Self {
            resource: need("lineItem/ResourceId")?,
            from: need("lineItem/UsageStartDate")?,
            to: need("lineItem/UsageEndDate")?,
            costs: columns(&AWS_COSTS),
            billed,
            list: aws("pricing/publicOnDemandCost"),
            contracted: None,
            kind: Some(need("lineItem/LineItemType")?),
            usage: &AWS_USAGE,
            discounts: &AWS_DISCOUNTS,
            nets: columns(&AWS_NETS),
            covered: &AWS_COVERED,
            bought: aws("pricing/term"),
            usage_type: aws("lineItem/UsageType"),
            product_family: aws("product/productFamily"),
            commitments: aws_commitments(aws),
            is_invoiced: false,
            parent: aws("splitLineItem/ParentResourceId"),
            currency: aws("lineItem/CurrencyCode"),
        };
        match twice.take() {
            Some(name) => {
                Err(format!("columns `{name}` and `{}` are the same: keep one", snake(&name)))
            }
            None => Ok(layout),
        }
    }
}

/// Where FOCUS names commitments.
fn focus_commitment(place: impl Fn(&str) -> Option<usize>) -> Option<CommitmentColumns> {
    Some(CommitmentColumns {
        id: place("CommitmentDiscountId")?,
        of_kind: None,
        category: place("CommitmentDiscountCategory"),
        kind: place("CommitmentDiscountType"),
        category_of_kind: "",
        name_of_kind: "",
    })
}

/// Where reports of AWS do.
fn aws_commitments(place: impl Fn(&str) -> Option<usize>) -> Vec<CommitmentColumns> {
    let named = AWS_COMMITMENTS.iter().filter_map(|(name, kind, category, word)| {
        Some(CommitmentColumns {
            id: place(name)?,
            of_kind: Some(kind),
            category: None,
            kind: None,
            category_of_kind: category,
            name_of_kind: word,
        })
    });
    named.collect()
}

fn missing(form: &str, name: &str) -> String {
    format!("column `{name}` of {form} is missing: include it in the export")
}

/// `lineItem/UsageStartDate` as `line_item_usage_start_date`.
fn snake(name: &str) -> String {
    let mut text = String::with_capacity(name.len() + 8);
    for letter in name.chars() {
        match letter {
            '/' => text.push('_'),
            letter if letter.is_ascii_uppercase() => {
                if !text.is_empty() && !text.ends_with('_') {
                    text.push('_');
                }
                text.push(letter.to_ascii_lowercase());
            }
            letter => text.push(letter),
        }
    }
    text
}
