//! The matrix of regimes and policies against an accepted page.

use dovetail_comparison::arena::{ArenaParts, page};
use dovetail_sim::arena::{ArenaRun, Bound, RegimeVerdict, RunFigures, regimes, summary};

/// A regime with one figure for each policy and seed.
fn verdict(name: &str, figures: &[(&str, [f64; 4])]) -> RegimeVerdict {
    let regime = regimes().into_iter().find(|regime| regime.name == name).expect("a regime");
    let run = |policy: &str, seed: usize, value: f64| ArenaRun {
        seed: seed as u64,
        order: 0,
        policy: policy.to_owned(),
        figures: RunFigures::from([(regime.figure().key.to_owned(), value)]),
    };
    let runs: Vec<ArenaRun> = figures
        .iter()
        .flat_map(|(policy, values)| (0..4).map(|seed| run(policy, seed, values[seed])))
        .collect();
    RegimeVerdict::of(&regime, &runs)
}

#[test]
fn the_page_is_the_accepted_one() {
    let verdicts = [
        verdict(
            "openb/default/plain",
            &[("best-fit", [93.0; 4]), ("dovetail", [95.5; 4]), ("fgd", [95.0; 4])],
        ),
        verdict(
            "mixed/50-nodes/load-0.9/fifo-skip",
            &[
                ("best-fit", [4.0, 5.0, 6.0, 5.0]),
                ("dovetail", [5.0, 6.0, 5.0, 6.5]),
                ("first-fit", [4.0, 5.0, 6.0, 5.002]),
            ],
        ),
        verdict(
            "sharing/10-nodes/load-0.7/fifo-skip",
            &[("best-fit", [0.01; 4]), ("dovetail", [0.2; 4])],
        ),
    ];
    let bound = Bound {
        group: "mixed".to_owned(),
        what: "GPU-weighted wait vs. best-fit".to_owned(),
        unit: "times",
        target: 1.05,
        at_most: true,
        measured: 1.25,
        met: Some(false),
        regime: Some("mixed/50-nodes".to_owned()),
        lists_run: None,
    };
    let summary = summary(&verdicts);
    let parts = ArenaParts { verdicts: &verdicts, summary: &summary, bounds: &[bound] };
    let html = page(parts, "dovetail <test>", &["Seeds 0 to 3.".to_owned()]).unwrap();
    let main = html.find("<main>").zip(html.find("</main>"));
    let (from, to) = main.expect("a page has a main part");
    insta::assert_snapshot!(&html[from..to]);
    assert!(html.contains("dovetail &lt;test&gt;"), "names are escaped");
}
