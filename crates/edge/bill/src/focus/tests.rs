use std::collections::BTreeMap;

use dovetail_cases::cases;
use dovetail_model::Money;
use proptest::prelude::*;

use super::*;
use crate::import::Commitment;

const HOUR_MS: u64 = 3_600_000;
/// 2026-11-20T10:00:00Z.
const TEN_MS: u64 = 1_795_168_800_000;

fn part(cost: i64, pod: Option<&str>, cause: &str) -> OriginShare {
    let tags = [("team", "eyes"), ("job", "Job vision/train")];
    OriginShare {
        cost: Money::micros(cost),
        cause: cause.to_owned(),
        is_waste: pod.is_none(),
        gpu_milli_ms: [4_000 * i128::from(HOUR_MS), 4_000 * i128::from(HOUR_MS), 0],
        pod: pod.map(|pod| ("vision".to_owned(), pod.to_owned())),
        tags: tags.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
    }
}

fn origin(node: &str, parts: Vec<OriginShare>) -> SplitCharge {
    SplitCharge {
        account: "west".into(),
        currency: "USD".into(),
        description: "node-hours of p5.48xlarge, split".into(),
        from_ms: TEN_MS,
        to_ms: TEN_MS + HOUR_MS,
        effective: parts.iter().map(|part| part.cost).sum(),
        billed: parts.iter().map(|part| part.cost).sum(),
        list: Money::micros(60_000_000),
        contracted: Money::micros(50_000_000),
        commitment: None,
        billed_ms: HOUR_MS,
        pricing: Pricing::Dynamic,
        provider: "Amazon Web Services".into(),
        region: Some("us-east-1".into()),
        node_id: format!("i-{node}"),
        node: node.into(),
        gpu_model: Some("H100".into()),
        method: "residual/1".into(),
        parts,
    }
}

fn dataset(version: FocusVersion, origins: &[SplitCharge]) -> String {
    let mut text = Vec::new();
    write(version, origins, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

fn sums(origins: &[SplitCharge]) -> BTreeMap<(String, String), i64> {
    let key = |origin: &SplitCharge| (origin.node_id.clone(), "2026-11-20T10:00:00Z".to_owned());
    origins.iter().map(|origin| (key(origin), origin.billed.usd_micros)).collect()
}

#[test]
fn every_version_holds_the_rules_and_has_its_own_columns() {
    let parts = vec![
        part(27_520_000, Some("train-0"), "active_not_separable"),
        part(27_519_999, None, "free_no_demand"),
    ];
    let origins = [origin("g1", parts), origin("g2", vec![part(1, Some("=cmd"), "idle")])];
    for version in FocusVersion::ALL {
        let text = dataset(version, &origins);
        assert_eq!(check(version, &text, Some(&sums(&origins))), [], "{version}\n{text}");
        let header = text.lines().next().unwrap();
        let has = |column: &str| header.split(',').any(|name| name == column);
        assert_eq!(has("ProviderName"), version < FocusVersion::V1_4, "{version}");
        assert_eq!(has("ServiceProviderName"), version >= FocusVersion::V1_3, "{version}");
        assert_eq!(has("AllocatedMethodId"), version >= FocusVersion::V1_3, "{version}");
        assert_eq!(has("x_AllocatedMethodId"), version < FocusVersion::V1_3, "{version}");
        assert_eq!(has("InvoiceDetailId"), version >= FocusVersion::V1_4, "{version}");
        // Each is told apart from the others.
        for other in FocusVersion::ALL.into_iter().filter(|other| *other != version) {
            assert_ne!(check(other, &text, None), [], "{version} as {other}");
        }
        assert_eq!(version.name().parse(), Ok(version));
    }
    assert!("1.1".parse::<FocusVersion>().unwrap_err().contains("use 1.2, 1.3 or 1.4"));
}

#[test]
fn rows_say_what_they_are() {
    let parts = vec![
        part(30_000_000, Some("train-0"), "active_not_separable"),
        part(10_000_000, None, "free_no_demand"),
    ];
    let text = dataset(FocusVersion::V1_4, &[origin("g1", parts)]);
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let rows: Vec<BTreeMap<String, String>> =
        reader.deserialize().map(|row| row.expect("a row by column")).collect();
    let cells = |row: usize, columns: &[&str]| -> Vec<String> {
        columns.iter().map(|column| rows[row][*column].clone()).collect()
    };
    let period = ["BillingPeriodStart", "BillingPeriodEnd", "ChargePeriodStart", "ChargePeriodEnd"];
    assert_eq!(
        cells(0, &period),
        [
            "2026-11-01T00:00:00Z",
            "2026-12-01T00:00:00Z",
            "2026-11-20T10:00:00Z",
            "2026-11-20T11:00:00Z"
        ]
    );
    // Three quarters of $40 billed, of $60 at list prices, of one hour.
    let amounts =
        ["BilledCost", "EffectiveCost", "ListCost", "PricingQuantity", "ConsumedQuantity"];
    assert_eq!(cells(0, &amounts), ["30", "30", "45", "0.75", "0.75"]);
    assert_eq!(cells(1, &amounts), ["10", "10", "15", "0.25", "0.25"]);
    let split =
        ["AllocatedMethodId", "AllocatedResourceId", "AllocatedResourceName", "x_WasteCause"];
    assert_eq!(
        cells(0, &split),
        ["dovetail/residual/1", "vision/train-0", "train-0", "active_not_separable"]
    );
    assert_eq!(cells(1, &split), ["dovetail/residual/1", "", "", "free_no_demand"]);
    assert_eq!(
        rows[0]["AllocatedMethodDetails"],
        "{\"Elements\": [{\"AllocatedRatio\": 0.75, \"UsageUnit\": \"GPU Hours\", \"UsageQuantity\": 4}]}"
    );
    assert_eq!(rows[0]["AllocatedTags"], "{\"job\":\"Job vision/train\",\"team\":\"eyes\"}");
    assert_eq!((&*rows[0]["PricingCategory"], &*rows[0]["x_GpuSeconds"]), ("Dynamic", "14400"));
}

#[test]
fn parts_that_are_not_their_origin_are_not_written() {
    let mut broken = origin("g1", vec![part(5, None, "idle")]);
    broken.effective = Money::micros(6);
    let error = write(FocusVersion::V1_3, &[broken], Vec::new()).unwrap_err();
    assert!(matches!(error, FocusError::Parts { .. }), "{error}");
}

/// A reservation covers the node: nothing of the hour is on the invoice, and it costs what it used
/// of the reservation.
#[test]
fn a_commitment_is_named_where_it_prices_the_charge() {
    let mut origin = origin("g1", vec![part(20_000_000, Some("train-0"), "idle")]);
    origin.billed = Money::ZERO;
    origin.pricing = Pricing::Committed;
    let named =
        Commitment { id: "arn:ri/1".into(), category: "Usage".into(), kind: "Reserved".into() };
    origin.commitment = Some(named);
    let text = dataset(FocusVersion::V1_2, &[origin.clone()]);
    assert_eq!(check(FocusVersion::V1_2, &text, Some(&sums(&[origin.clone()]))), []);
    let row: BTreeMap<String, String> =
        csv::Reader::from_reader(text.as_bytes()).deserialize().next().unwrap().unwrap();
    let costs = ["BilledCost", "EffectiveCost", "ContractedCost", "ListCost"].map(|c| &*row[c]);
    assert_eq!(costs, ["0", "20", "50", "60"]);
    let said =
        ["Category", "Id", "Status", "Type"].map(|c| &*row[&format!("CommitmentDiscount{c}")]);
    assert_eq!(said, ["Usage", "arn:ri/1", "Used", "Reserved"]);
    for (from, to, column) in [
        (",Used,", ",,", "CommitmentDiscountStatus"),
        (",Usage,arn:ri/1,", ",Usage,,", "CommitmentDiscountCategory"),
        (",Committed,", ",Standard,", "PricingCategory"),
    ] {
        let bad = text.replacen(from, to, 1);
        assert_ne!(bad, text, "{from} is not there");
        let found = check(FocusVersion::V1_2, &bad, None);
        assert!(found.iter().any(|violation| violation.column == column), "{from}: {found:?}");
    }
    // Time that is mostly bought on demand is not the commitment's.
    origin.pricing = Pricing::Standard;
    let text = dataset(FocusVersion::V1_2, &[origin]);
    assert!(!text.contains("arn:ri/1"), "{text}");
}

/// Each edit breaks one rule, and the checker names the column.
#[test]
fn each_rule_can_be_broken() {
    let parts = vec![part(30_000_000, Some("train-0"), "idle"), part(10_000_000, None, "idle")];
    let origins = [origin("g1", parts)];
    let good = dataset(FocusVersion::V1_3, &origins);
    for (from, to, column) in [
        ("BillingAccountName", "AccountName", "BillingAccountName"),
        ("ServiceProviderName", "ServiceProvider", "ServiceProviderName"),
        ("x_WasteCause,", "x_GpuModel,", "x_GpuModel"),
        (",USD,", ",US,", "BillingCurrency"),
        (",Usage,", ",Use,", "ChargeCategory"),
        (",Dynamic,", ",Spot,", "PricingCategory"),
        (",Compute,", ",Computing,", "ServiceCategory"),
        ("2026-11-20T11:00:00Z", "2026-11-20T09:00:00Z", "ChargePeriodEnd"),
        ("2026-11-20T11:00:00Z", "2026-11-31T11:00:00Z", "ChargePeriodEnd"),
        ("2026-11-20T11:00:00Z", "2026-11-20 11:00:00Z", "ChargePeriodEnd"),
        ("\n30,", "\n30$,", "BilledCost"),
        ("\n30,", "\n31,", "BilledCost"),
        ("\"\"AllocatedRatio\"\": 0.75", "\"\"AllocatedRatio\"\": 0.76", "AllocatedMethodDetails"),
        ("\"\"AllocatedRatio\"\": 0.75", "\"\"Ratio\"\": 0.75", "AllocatedMethodDetails"),
        ("\"\"UsageUnit\"\": \"\"GPU Hours\"\", ", "", "AllocatedMethodDetails"),
        ("dovetail/residual/1", "", "AllocatedMethodId"),
        ("vision/train-0,train-0", "vision/train-0,", "AllocatedResourceName"),
        (",{},", ",[],", "Tags"),
        (",{},", ",\"{\"\"team\"\": \"\"x\"\"}\",", "AllocatedTags"),
        ("us-east-1,us-east-1", "us-east-1,", "RegionName"),
        (",west,west,", ",=west,=west,", "BillingAccountId"),
    ] {
        let bad = good.replacen(from, to, 1);
        assert_ne!(bad, good, "{from} is not there");
        let found = check(FocusVersion::V1_3, &bad, Some(&sums(&origins)));
        assert!(
            found.iter().any(|violation| violation.column == column),
            "{from} → {to}: {found:?}"
        );
    }
    // A row that is gone, and an origin without rows.
    let shorter: String = good.lines().take(2).map(|line| format!("{line}\n")).collect();
    assert_ne!(check(FocusVersion::V1_3, &shorter, Some(&sums(&origins))), []);
    let header = good.lines().next().unwrap();
    assert_ne!(check(FocusVersion::V1_3, header, Some(&sums(&origins))), []);
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn any_split_of_any_amount_is_its_origin(
        costs in prop::collection::vec(0_i64..1_000_000_000_000, 1..9),
        list in 0_i64..1_000_000_000_000,
        invoiced in 0_i64..1_000_000_000_000,
        hours in 1_u64..800,
        version in 0_usize..3,
    ) {
        let parts = costs.iter().enumerate().map(|(pod, cost)| {
            part(*cost, (pod % 3 > 0).then_some("p"), "idle")
        });
        let mut whole = origin("g1", parts.collect());
        whole.list = Money::micros(list);
        whole.billed = Money::micros(invoiced);
        whole.billed_ms = hours * HOUR_MS;
        let version = FocusVersion::ALL[version];
        let text = dataset(version, &[whole.clone()]);
        prop_assert_eq!(check(version, &text, Some(&sums(&[whole.clone()]))), []);
        // Quantities and list costs are the origin's too.
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let rows: Vec<BTreeMap<String, String>> = reader.deserialize().map(Result::unwrap).collect();
        let sum = |column: &str| rows.iter().map(|row| crate::amount::pico(&row[column]).unwrap()).sum::<i128>();
        prop_assert_eq!(sum("ListCost"), i128::from(list) * 1_000_000);
        prop_assert_eq!(sum("BilledCost"), i128::from(invoiced) * 1_000_000);
        prop_assert_eq!(sum("ContractedCost"), 50 * crate::amount::PICO);
        prop_assert_eq!(sum("EffectiveCost"), i128::from(costs.iter().sum::<i64>()) * 1_000_000);
        prop_assert_eq!(sum("PricingQuantity"), i128::from(hours) * crate::amount::PICO);
    }
}
