//! The columns that are written, by version.

use super::FocusVersion;

/// Columns that stand in every version, in the order in which they are written.
const IN_ALL: [&str; 37] = [
    "BilledCost",
    "BillingAccountId",
    "BillingAccountName",
    "BillingCurrency",
    "BillingPeriodEnd",
    "BillingPeriodStart",
    "ChargeCategory",
    "ChargeClass",
    "ChargeDescription",
    "ChargeFrequency",
    "ChargePeriodEnd",
    "ChargePeriodStart",
    "CommitmentDiscountCategory",
    "CommitmentDiscountId",
    "CommitmentDiscountStatus",
    "CommitmentDiscountType",
    "ConsumedQuantity",
    "ConsumedUnit",
    "ContractedCost",
    "EffectiveCost",
    "InvoiceId",
    "InvoiceIssuerName",
    "ListCost",
    "PricingCategory",
    "PricingQuantity",
    "PricingUnit",
    "RegionId",
    "RegionName",
    "ResourceId",
    "ResourceName",
    "ResourceType",
    "ServiceCategory",
    "ServiceName",
    "ServiceSubcategory",
    "SkuId",
    "SkuPriceId",
    "Tags",
];

/// Columns that 1.4 removed.
const UNTIL_1_3: [&str; 2] = ["ProviderName", "PublisherName"];
/// Columns that 1.3 brought.
const SINCE_1_3: [&str; 2] = ["HostProviderName", "ServiceProviderName"];
/// Columns that 1.4 brought.
const SINCE_1_4: [&str; 1] = ["InvoiceDetailId"];

/// How a charge was split; custom columns before 1.3.
const SPLIT: [&str; 5] = [
    "AllocatedMethodId",
    "AllocatedMethodDetails",
    "AllocatedResourceId",
    "AllocatedResourceName",
    "AllocatedTags",
];

/// Our own columns.
const CUSTOM: [&str; 10] = [
    "x_GpuModel",
    "x_GpuSeconds",
    "x_GpuAllocatedSeconds",
    "x_GpuActiveSeconds",
    "x_WasteCause",
    "x_IsWaste",
    "x_Namespace",
    "x_Team",
    "x_Job",
    "x_Model",
];

/// Columns in which every row must say something, whatever the version.
pub(super) const NOT_NULL: [&str; 19] = [
    "BilledCost",
    "BillingAccountId",
    "BillingCurrency",
    "BillingPeriodEnd",
    "BillingPeriodStart",
    "ChargeCategory",
    "ChargeDescription",
    "ChargePeriodEnd",
    "ChargePeriodStart",
    "ContractedCost",
    "EffectiveCost",
    "InvoiceIssuerName",
    "ListCost",
    "PricingCategory",
    "PricingQuantity",
    "PricingUnit",
    "ServiceCategory",
    "ServiceName",
    "ServiceSubcategory",
];

/// All columns of a version, in order: FOCUS' own before custom ones.
pub(super) fn columns(version: FocusVersion) -> Vec<String> {
    let mut own: Vec<&str> = IN_ALL.to_vec();
    if version < FocusVersion::V1_4 {
        own.extend(UNTIL_1_3);
    }
    if version >= FocusVersion::V1_3 {
        own.extend(SINCE_1_3);
    }
    if version >= FocusVersion::V1_4 {
        own.extend(SINCE_1_4);
    }
    own.sort_unstable();
    let mut columns: Vec<String> = own.into_iter().map(str::to_owned).collect();
    columns.extend(SPLIT.map(|column| split_column(version, column)));
    columns.extend(CUSTOM.map(str::to_owned));
    columns
}

/// The name of a column of split cost allocation in a version.
pub(super) fn split_column(version: FocusVersion, column: &str) -> String {
    let prefix = if version < FocusVersion::V1_3 { "x_" } else { "" };
    format!("{prefix}{column}")
}
