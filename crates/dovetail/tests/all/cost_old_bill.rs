//! `dovetail cost --bill` with a bill of another time, of this program itself, and with traffic in
//! it.

use serde_json::json;

use crate::cost::{HOURS, cost, document, folder, of};

/// A bill of October says nothing of a moment in November but what a machine cost then.
#[test]
fn the_rate_of_an_old_bill_is_told_with_its_time() {
    let folder = folder();
    let header = "ResourceId,ChargePeriodStart,ChargePeriodEnd,EffectiveCost,ChargeCategory,BillingCurrency\n";
    let other = "i-x,2026-10-01T00:00:00Z,2026-10-01T05:00:00Z,5,Usage,USD\n\
                 i-x,2026-10-01T04:00:00Z,2026-10-01T06:00:00Z,1,Usage,USD\n";
    let g1 = "i-g1,2026-10-01T00:00:00Z,2026-10-02T00:00:00Z,960,Usage,USD\n";
    folder.write("bill.csv", &format!("{header}{g1}{other}"));
    let found = document(&folder, "--by node --bill bill.csv");
    assert_eq!(of(&found, &json!({"node": "g1"})), 40_000_000 * HOURS);
    let notes = found["notes"].to_string();
    let told = "bill.csv: 1 node billed for a different time than the snapshot (first: g1, from \
                2026-10-01T00:00:00Z to 2026-10-02T00:00:00Z";
    assert!(notes.contains(told), "{notes}");
    // Machines outside the cluster come with their time; hours that two lines have count once.
    assert!(
        notes.contains("1 machine outside this cluster, $6.00 in total, 6.0 hours (first: i-x)"),
        "{notes}"
    );
    assert_eq!(found["bill"]["unmatched"][0]["hours"], json!(6.0));
    folder.write("bill.csv", &format!("{header}{}", g1.replace("2026-10-02", "2026-12-01")));
    let found = document(&folder, "--by node --bill bill.csv");
    assert!(!found["notes"].to_string().contains("another time"), "{}", found["notes"]);
    folder.write("bill.csv", &format!("{header}{}", g1.replace("2026-10", "2027-10")));
    let notes = document(&folder, "--by node --bill bill.csv")["notes"].to_string();
    assert!(notes.contains("1 node billed for a later time than the snapshot"), "{notes}");
    // What is given back of a machine without time is nobody's cost.
    let credit = "i-g1,2026-10-01T00:00:00Z,2026-10-02T00:00:00Z,-5,Credit,USD\n";
    folder.write("bill.csv", &format!("{header}{credit}"));
    let notes = document(&folder, "--by node --bill bill.csv")["notes"].to_string();
    let told = "bill.csv: credits or discounts of 1 node, -$5.00 in total, are not included";
    assert!(notes.contains(told), "{notes}");
}

/// A dataset of FOCUS is CSV, whoever asks for something else is told; a file of settings asks for
/// nothing in particular.
#[test]
fn a_dataset_of_focus_has_one_form() {
    let folder = folder();
    let call = |more: &str| folder.call(&format!("cost --example --focus 1.3 {more}"));
    let csv = call("--output csv");
    assert!(csv.code == Some(0) && csv.out == call("").out, "{}", csv.err);
    for form in ["json", "table"] {
        let done = call(&format!("--output {form}"));
        let told = format!("--focus prints a FOCUS dataset, which is CSV; omit --output {form}");
        assert!(done.code == Some(2) && done.err.contains(&told), "{}", done.err);
    }
    folder.write("dovetail.toml", "output = \"json\"\n");
    assert_eq!(call("").out, csv.out);
}

/// What a dataset of FOCUS says of nodes comes back as a bill of the same nodes: also of one that
/// has no identity to a provider and is there by its name.
#[test]
fn a_dataset_of_focus_is_read_as_the_bill_that_it_is() {
    let folder = folder();
    let dump = folder.read("dump.json");
    let unnamed = dump.replace("aws:///us-east-1a/i-c1", "");
    for dump in [&dump, &unnamed] {
        folder.write("dump.json", dump);
        folder.write("first.csv", FIRST);
        let first = document(&folder, "--by node --bill first.csv");
        for version in ["1.2", "1.3", "1.4"] {
            let flags =
                format!("--focus {version} --bill first.csv --vcpu-price 0.04 --gib-price 0.005");
            folder.write("again.csv", &cost(&folder, &flags).out);
            let again = document(&folder, "--by node --bill again.csv");
            let counts = ["nodes", "billed_nodes", "unmatched_resources", "committed_nodes"];
            let counts = counts.map(|key| again["bill"][key].as_i64().expect("a count"));
            assert_eq!(counts, [2, 2, 0, 1], "{version}: {again:#}");
            let g1 = json!({"node": "g1"});
            assert_eq!(of(&again, &g1), of(&first, &g1));
            assert_eq!(of(&again, &g1), 20_020_000 * HOURS);
        }
    }
}

/// An hour of g1 under a reservation, with its traffic, which is on demand.
const FIRST: &str = "\
ResourceId,ChargePeriodStart,ChargePeriodEnd,EffectiveCost,ListCost,ChargeCategory,BillingCurrency,PricingCategory,CommitmentDiscountId
i-g1,2026-11-20T12:00:00Z,2026-11-20T13:00:00Z,0.01,0.01,Usage,USD,Standard,
i-g1,2026-11-20T12:00:00Z,2026-11-20T13:00:00Z,20,55.04,Usage,USD,Committed,ri-7
i-g1,2026-11-20T12:00:00Z,2026-11-20T13:00:00Z,0.01,0.01,Usage,USD,Standard,
";
