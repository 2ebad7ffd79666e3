use super::*;

fn cell(team: &str, pool: &str, cause: &str, gpu_seconds: i128, usd: Option<i64>) -> SeriesValue {
    let [cluster, team, pool, cause] = ["west", team, pool, cause].map(str::to_owned);
    SeriesValue {
        place: SeriesLabels { cluster, team, pool, cause },
        gpu_milli_ms: gpu_seconds * 1_000_000,
        unpriced_gpu_milli_ms: if usd.is_none() { gpu_seconds * 1_000_000 } else { 0 },
        cost: usd.map(|usd| Money::micros(usd * 1_000_000)),
    }
}

#[test]
fn what_is_served_is_in_the_reference_with_its_labels() {
    let metrics = Metrics::default();
    let cells = [cell("eyes", "a", "idle", 3600, Some(6)), cell("eyes", "a", "unknown", 900, None)];
    metrics.show_moment(&cells);
    metrics.show_day(&cells);
    metrics.show_month(&teams(cells.clone()));
    metrics.show_budgets([(&"eyes".to_owned(), Money::micros(5_000_000))].into_iter());
    metrics.collected("west", true, 1500);
    metrics.stands(LedgerProgress {
        cluster: "west",
        read_until_ms: Some(40_000),
        missing_ms: 7_000,
    });
    metrics.asked_exporters("west", 3, 1);
    metrics.asked("/metrics", 200);
    let text = metrics.text(ExpositionFormat::OpenMetrics, 100_000);
    let mut seen = std::collections::BTreeSet::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split(['{', ' ']).next().unwrap();
        let found = metrics.described().iter().find(|described| described.name == name);
        let described = found.unwrap_or_else(|| panic!("{line}"));
        let labels = line.split_once('{').unwrap().1.split_once('}').unwrap().0;
        let labels: Vec<&str> =
            labels.split(',').map(|pair| pair.split_once('=').unwrap().0).collect();
        assert_eq!(labels, described.labels, "{line}");
        seen.insert(name.to_owned());
    }
    assert_eq!(seen.len(), metrics.described().len(), "{text}");
    for line in [
        "dovetail_gpus{cluster=\"west\",team=\"eyes\",pool=\"a\",cause=\"idle\"} 1.0",
        "dovetail_day_gpu_seconds{cluster=\"west\",team=\"eyes\",pool=\"a\",cause=\"idle\"} 3600.0",
        "dovetail_day_usd{cluster=\"west\",team=\"eyes\",pool=\"a\",cause=\"idle\"} 6.0",
        "dovetail_month_usd{cluster=\"west\",team=\"eyes\"} 6.0",
        "dovetail_collection_lag_seconds{cluster=\"west\"} 60.0",
        "dovetail_ledger_missing_seconds{cluster=\"west\"} 7.0",
        "dovetail_exporters{cluster=\"west\",state=\"silent\"} 1.0",
    ] {
        assert!(text.lines().any(|one| one == line), "{line} is not in\n{text}");
    }
    for line in [
        "dovetail_gpus_unpriced{cluster=\"west\",team=\"eyes\",pool=\"a\",cause=\"unknown\"} 0.25",
        "dovetail_day_unpriced_gpu_seconds{cluster=\"west\",team=\"eyes\",pool=\"a\",cause=\"unknown\"} 900.0",
        "dovetail_month_unpriced_gpu_seconds{cluster=\"west\",team=\"eyes\"} 900.0",
    ] {
        assert!(text.lines().any(|one| one == line), "{line} is not in\n{text}");
    }
    // Where all has a price nothing is without.
    assert_eq!(text.matches("unpriced_gpu_seconds{").count(), 2, "{text}");
    // What has no price is not 0.
    assert!(
        !text.contains(
            "dovetail_day_usd{cluster=\"west\",team=\"eyes\",pool=\"a\",cause=\"unknown\"}"
        )
    );
    // What is gone is not shown any more.
    metrics.show_day(&cells[..1]);
    assert!(!metrics.text(ExpositionFormat::Plain, 0).contains(
        "dovetail_day_gpu_seconds{cluster=\"west\",team=\"eyes\",pool=\"a\",cause=\"unknown\"}"
    ));
}

#[test]
fn any_number_of_teams_makes_a_bounded_number_of_series_with_the_same_sum() {
    let all: Vec<SeriesValue> = (0..3000_i64)
        .map(|n| cell(&format!("team-{n}"), "a", "idle", i128::from(n), Some(n)))
        .chain([cell("team-2999", "a", "idle", 1, None)])
        .collect();
    let sum = |cells: &[SeriesValue]| {
        let time: i128 = cells.iter().map(|cell| cell.gpu_milli_ms).sum();
        let cost: i64 = cells.iter().filter_map(|cell| cell.cost).map(|cost| cost.usd_micros).sum();
        let unpriced: i128 = cells.iter().map(|cell| cell.unpriced_gpu_milli_ms).sum();
        (time, cost, unpriced)
    };
    let found = fewer(all.clone());
    assert_eq!(found.len(), 501);
    assert_eq!(sum(&found), sum(&all));
    let place = |team: &str| found.iter().find(|cell| cell.place.team == team);
    assert_eq!(place("team-2999").unwrap().gpu_milli_ms, 3_000_000_000);
    assert!(place(OTHERS).is_some() && place("team-2499").is_none());
}
