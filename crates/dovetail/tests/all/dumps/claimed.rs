//! How much of the waste of each cluster findings claim: as stated here and in the documentation.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Dump, all};
use crate::cost::dump;
use crate::program::Folder;

/// The claimed share of the wasted dollars in percent, to the tenth. With `None`, the test fails
/// and shows the figures to state here and in [`DOCUMENT`].
const STATED: [(&str, Option<f64>); 13] = [
    ("example", Some(92.5)),
    ("EKS, MIG", Some(100.0)),
    ("gang", Some(100.0)),
    ("GKE", Some(100.0)),
    ("AKS", Some(100.0)),
    ("AMD, Intel", Some(100.0)),
    ("time-slicing", Some(100.0)),
    ("Volcano", Some(100.0)),
    ("Kueue", Some(100.0)),
    ("DRA", Some(100.0)),
    ("EKS, gang", Some(64.8)),
    ("three vendors", Some(100.0)),
    (TOGETHER, Some(95.4)),
];

/// The example and all clusters.
const TOGETHER: &str = "all";

/// Clusters that miss the target: three quarters of the waste of each, nine tenths of all together.
const BELOW_TARGET: [&str; 1] = ["EKS, gang"];

/// Where the same shares are stated.
const DOCUMENT: &str = include_str!("../../../../../docs/reference/benchmarks/audit-and-ledger.md");

fn audit(of: &Dump) -> Value {
    let folder = Folder::new();
    folder.write("dump.json", &dump(&of.objects));
    let usage = of.usage.as_ref().map_or("", |rows| {
        folder.write("usage.csv", rows);
        "--usage usage.csv"
    });
    folder.json(&format!("audit --from dump.json --at {} {usage} {}", of.at, of.flags))
}

/// Wasted dollars, those of a month and those so far, and how much of them findings claim.
fn claimed(found: &Value) -> (f64, f64) {
    let micros = |value: &Value| value.as_f64().unwrap_or(0.0);
    let head = &found["headline"];
    let waste =
        micros(&head["waste_usd_micros_per_month"]) + micros(&head["waste_usd_micros_so_far"]);
    let of = |finding: &Value| {
        micros(&finding["usd_micros_per_month"]) + micros(&finding["usd_micros_so_far"])
    };
    let claimed: f64 = found["findings"].as_array().unwrap().iter().map(of).sum();
    (waste / 1e6, claimed / 1e6)
}

/// The rest is listed by cause (GPUs by state).
#[test]
#[allow(clippy::print_stdout, reason = "`--nocapture` shows the table")]
fn findings_claim_as_much_of_the_waste_as_is_stated() {
    let example = Folder::new().json("audit --example");
    let mut rows = vec![("example", claimed(&example))];
    rows.extend(all().iter().map(|of| (of.name, claimed(&audit(of)))));
    let sums = rows.iter().fold((0.0, 0.0), |sum, (_, of)| (sum.0 + of.0, sum.1 + of.1));
    rows.push((TOGETHER, sums));
    let stated: BTreeMap<&str, Option<f64>> = STATED.into_iter().collect();
    let (mut table, mut wrong) = (String::new(), Vec::new());
    for (name, (waste, claimed)) in &rows {
        let percent = 100.0 * claimed / waste;
        table += &format!("{name:14}{waste:>14.2}{claimed:>14.2}{percent:>8.1}%\n");
        let least = if *name == TOGETHER { 90.0 } else { 75.0 };
        let is_stated = stated.get(name).copied().flatten().is_some_and(|stated| {
            let row = format!("| {name} | {stated:.1}% |");
            (percent - stated).abs() <= 0.05 + 1e-9 && DOCUMENT.contains(&row)
        });
        if !is_stated || (percent < least) != BELOW_TARGET.contains(name) {
            wrong.push(*name);
        }
    }
    println!("{table}");
    assert!(
        wrong.is_empty() && rows.len() == STATED.len(),
        "{wrong:?} are not as stated here and in the document:\n{table}"
    );
}
