//! An audit and a bill of one snapshot report the same: one rule says what may be extrapolated to
//! a month, and both round at one place.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::program::Folder;

/// What a bill has as unmeasured is, in an audit, without what is too recent to extrapolate.
const OPEN: [&str; 2] = ["unknown", "free_of_unknown_cause"];

/// Asserts that `cost` agrees with an audit of the same objects, which `flags` name.
pub(crate) fn bill_agrees(folder: &Folder, audit: &Value, flags: &str) {
    let call = format!("cost {flags} --by cause --output json");
    let done = folder.call(&call);
    let bill: Value =
        serde_json::from_str(&done.out).unwrap_or_else(|error| panic!("{error}: {}", done.err));
    let (of_audit, of_bill) = (&audit["headline"], &bill["headline"]);
    for (name, audited, billed) in [
        ("waste", "waste_usd_micros_per_month", "waste_usd_micros"),
        ("cost", "bill_usd_micros_per_month", "cost_usd_micros"),
        ("waste so far", "waste_usd_micros_so_far", "waste_usd_micros_so_far"),
    ] {
        assert_eq!(of_audit[audited], of_bill[billed], "{name}: {call}");
    }
    for end in ["lowest", "highest"] {
        let audited = &of_audit[end]["waste_usd_micros_per_month"];
        assert_eq!(audited, &of_bill[end]["waste_usd_micros"], "{end}: {call}");
    }
    let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{value}: {call}"));
    for name in ["waste_gpu_hours_so_far", "waste_share", "blind_share", "too_recent_share"] {
        let (audited, billed) = (number(&of_audit[name]), number(&of_bill[name]));
        assert!((audited - billed).abs() < 1e-9, "{name} {audited} {billed}: {call}");
    }
    let states = audit["states"].as_array().expect("states").iter();
    let rows = bill["rows"].as_array().expect("rows").iter();
    let mut of_month: BTreeMap<&str, &Value> = rows
        .filter(|row| row["gpu_hours"].as_f64() > Some(0.0))
        .map(|row| (row["key"]["cause"].as_str().expect("a cause"), &row["cost_usd_micros"]))
        .collect();
    let of_month_open: i64 = OPEN.iter().filter_map(|cause| of_month.remove(cause)?.as_i64()).sum();
    let mut so_far: BTreeMap<&str, &Value> = bill["so_far"]
        .as_array()
        .expect("so far")
        .iter()
        .map(|row| (row["cause"].as_str().expect("a cause"), &row["usd_micros"]))
        .collect();
    let mut open = 0;
    for state in states {
        let name = state["state"].as_str().expect("a name");
        let month = &state["usd_micros_per_month"];
        if OPEN.contains(&name) {
            open += month.as_i64().unwrap_or(0);
        } else if !month.is_null() {
            assert_eq!(of_month.remove(name), Some(month), "{name}: {call}");
        }
        let now = &state["usd_micros_so_far"];
        if !now.is_null() {
            assert_eq!(so_far.remove(name), Some(now), "{name} so far: {call}");
        }
    }
    let left: Vec<_> = of_month.into_iter().filter(|(_, cost)| !cost.is_null()).collect();
    assert!(left.is_empty(), "a bill has months that the audit has not: {left:?}: {call}");
    so_far.retain(|_, cost| cost.as_i64() > Some(0));
    assert!(so_far.is_empty(), "a bill has {so_far:?} so far, and the audit has not: {call}");
    assert!(open <= of_month_open, "{open} of {of_month_open}: {call}");
}
