//! Formulas that give an amount again.

use dovetail_audit::TimeByPrice;
use dovetail_auditing::figures::formula;

/// The words of a formula, multiplied and added as a person would.
fn reckoned(formula: &str) -> f64 {
    let terms = formula.split(" + ").filter_map(|term| {
        let (hours, rest) = term.split_once(" GPU-hours")?;
        let (_, price) = rest.split_once("× $")?;
        let price = price.split(' ').next()?;
        Some(hours.replace(',', "").parse::<f64>().ok()? * price.parse::<f64>().ok()?)
    });
    terms.sum()
}

#[test]
fn a_formula_gives_its_amount_to_the_cent() {
    let hour = 3_600_000_000_i128;
    let cases: [&[(Option<i64>, i128)]; 4] = [
        &[(Some(2_500_000), 720 * hour)],
        &[(Some(12_290_000), 5_760 * hour), (Some(526_000), 1_234_567_890_123)],
        // A third of a GPU for a second, and what has no price.
        &[(Some(98_320_000), 333_000), (None, 8 * hour)],
        &[(Some(2), 17 * hour), (Some(6_880_001), 1_000_000 * hour + 7)],
    ];
    for case in cases {
        let by_price: TimeByPrice = case.iter().copied().collect();
        let exact: f64 = case
            .iter()
            .map(|(price, time)| price.unwrap_or(0) as f64 / 1e6 * *time as f64 / 3.6e9)
            .sum();
        let formula = formula(&by_price, "a month");
        assert!((reckoned(&formula) - exact).abs() < 0.005, "{formula}: {exact}");
    }
    let one = TimeByPrice::from([(Some(2_500_000), 720 * hour)]);
    assert_eq!(formula(&one, "so far"), "720.0 GPU-hours so far × $2.50 per GPU-hour");
}
