//! The page and the tables against accepted ones, and against hostile input.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_account::{GpuPrice, Priced};
use dovetail_capacity::{States, Usage};
use dovetail_model::FreeCause;

use dovetail_comparison::{ReportError, html, text};
use dovetail_sim::comparison::{
    ArrivalComparison, ArrivalPolicy, ArrivalRun, PrefixLimit, ReportData, RunAccount,
    TimedComparison, TimedPolicy, TimedRun,
};
use dovetail_sim::timed::TimedMetrics;
use dovetail_sim::timeline::{Series, SeriesPoint, UsageReport};

const HOUR_MS: u64 = 3_600_000;

/// Four hours of ten GPUs: eight of a model with a price, two of one without.
fn usage(fragmented: i128) -> UsageReport {
    let states = |installed: i128, allocated: i128, fragmented: i128| {
        let hours = i128::from(HOUR_MS) * 1_000 * 4;
        let mut free: BTreeMap<FreeCause, i128> =
            FreeCause::ALL.iter().map(|cause| (*cause, 0)).collect();
        free.insert(FreeCause::Fragmented, fragmented * hours);
        free.insert(FreeCause::NoDemand, (installed - allocated - fragmented) * hours);
        States {
            installed: installed * hours,
            unavailable: 0,
            allocated: allocated * hours,
            allocated_by_queue: BTreeMap::from([("research".to_owned(), allocated * hours)]),
            allocated_by_others: 0,
            free: (installed - allocated) * hours,
            free_by_cause: free,
        }
    };
    let models = BTreeMap::from([
        ("H100".to_owned(), states(8, 5, fragmented)),
        (String::new(), states(2, 1, 0)),
    ]);
    let usage = Usage {
        from_ms: HOUR_MS,
        to_ms: 5 * HOUR_MS,
        cause_period_ms: 600_000,
        cause_samples: 24,
        total_gpu_milli_ms: states(10, 6, fragmented),
        models_gpu_milli_ms: models,
    };
    usage.check().expect("made to add up");
    let price = GpuPrice {
        usd_micros_per_gpu_hour: 6_880_000,
        source: "price list of 2026-01-15".to_owned(),
        assumed: true,
    };
    UsageReport::new(&usage, &BTreeMap::from([(Some("H100".to_owned()), Priced::Known(price))]))
        .unwrap()
}

fn series(fragmented: f64) -> Series {
    let point = |hour: u64| SeriesPoint {
        at_ms: hour * HOUR_MS,
        length_ms: HOUR_MS,
        installed_gpus: 10.0,
        unavailable_gpus: 0.0,
        allocated_gpus: 6.0,
        free_gpus_by_cause: BTreeMap::from([
            (FreeCause::Fragmented, fragmented),
            (FreeCause::NoDemand, 4.0 - fragmented),
        ]),
        waiting_jobs: hour as f64,
        waiting_gpus: 2.0 * hour as f64,
    };
    let points = (1..5).map(point).collect();
    Series { from_ms: HOUR_MS, to_ms: 5 * HOUR_MS, bin_ms: HOUR_MS, points }
}

fn timed_policy(name: &str, fragmented: u32) -> TimedPolicy {
    let metrics = TimedMetrics {
        jobs: 12,
        unfinished_jobs: 0,
        started_jobs: 12,
        average_jct_s: Some(3_000.0 + f64::from(fragmented) * 100.0),
        p99_jct_s: Some(7_000.0),
        makespan_s: Some(20_000.0),
        average_queue_s: Some(f64::from(fragmented) * 100.0),
        p50_queue_s: Some(0.0),
        p99_queue_s: Some(600.0),
        worst_queue_s: None,
        gpu_occupancy: Some(0.6),
        restarts: 0,
        repeated_gpu_hours: 0.0,
        preemptions: 0,
        lost_gpu_s: 0.0,
        lost_percent: Some(0.0),
    };
    TimedPolicy {
        policy: name.to_owned(),
        learning_started_from: (fragmented == 1).then(|| "nothing".to_owned()),
        runs: vec![TimedRun {
            seed: 1,
            metrics,
            account: Some(RunAccount {
                usage: usage(i128::from(fragmented)),
                series: series(f64::from(fragmented)),
            }),
            event_log_hash: "00".to_owned(),
        }],
    }
}

fn arrival_policy(name: &str, most: f64) -> ArrivalPolicy {
    let run = |seed: u64| {
        let most = most + seed as f64;
        // Sparse on purpose: most percents have no arrival.
        let at = |percent: usize, value: f64| {
            (percent.is_multiple_of(26) || percent == 100).then_some(value)
        };
        ArrivalRun {
            seed,
            allocation_percent: (0..131).map(|p| at(p, (p as f64).min(most))).collect(),
            fragmentation_percent: (0..131).map(|p| at(p, 30.0 - p as f64 / 10.0)).collect(),
            first_rejection_percent: (seed == 1).then_some(most),
            held_percent: most - 1.0,
            failed_pods: 40 + seed,
            decisions: 1_234,
            decisions_per_second: (seed == 1).then_some(300_000.0),
            event_log_hash: "00".to_owned(),
        }
    };
    ArrivalPolicy {
        policy: name.to_owned(),
        learning_started_from: None,
        runs: vec![run(1), run(2)],
    }
}

fn data(first: &str, second: &str) -> ReportData {
    let limit = |seed| PrefixLimit { seed, device_prefix_percent: 97.5, lp_prefix_percent: 95.25 };
    ReportData {
        title: "Two policies".to_owned(),
        program: "dovetail 0.0.0".to_owned(),
        command: Some("dovetail sim compare".to_owned()),
        arrivals: vec![ArrivalComparison {
            trace: "pods".to_owned(),
            nodes: 3,
            gpus: 10,
            limits: vec![limit(1), limit(2)],
            policies: vec![arrival_policy(first, 90.0), arrival_policy(second, 93.0)],
        }],
        timed: vec![TimedComparison {
            trace: "jobs".to_owned(),
            nodes: 3,
            gpus: 10,
            limit_average_jct_s: Some(2_500.0),
            limit_makespan_s: None,
            policies: vec![timed_policy(first, 3), timed_policy(second, 1)],
            ..TimedComparison::default()
        }],
        notes: vec!["One more thing.".to_owned()],
    }
}

/// The page without its style sheet.
fn body(page: &str) -> String {
    let (before, rest) = page.split_once("<style>").expect("a style sheet");
    let (_, after) = rest.split_once("</style>").expect("its end");
    format!("{before}{after}")
}

#[test]
fn the_page_is_the_accepted_one() {
    insta::assert_snapshot!(body(&html(&data("kube-default", "dovetail")).expect("complete")));
}

#[test]
fn the_tables_are_the_accepted_ones() {
    insta::assert_snapshot!(text(&data("kube-default", "dovetail")).expect("complete"));
}

#[test]
fn data_survives_a_file() {
    let data = data("a", "b");
    let file = serde_json::to_string(&data).expect("plain data");
    assert_eq!(serde_json::from_str::<ReportData>(&file).expect("the same"), data);
}

const HOSTILE: &str =
    "</title></svg><script>alert(1)</script>\"' onload='x\u{1b}[31m\u{202e}{{ 7*7 }}&";

/// Hostile text in every place that takes a text.
fn hostile() -> ReportData {
    let mut data = data(HOSTILE, "x");
    data.title = HOSTILE.to_owned();
    data.program = HOSTILE.to_owned();
    data.command = Some(HOSTILE.to_owned());
    data.notes = vec![HOSTILE.to_owned()];
    data.arrivals[0].trace = HOSTILE.to_owned();
    data.arrivals[0].policies[0].learning_started_from = Some(HOSTILE.to_owned());
    data.timed[0].trace = HOSTILE.to_owned();
    data.timed[0].policies[0].learning_started_from = Some(HOSTILE.to_owned());
    let account = data.timed[0].policies[0].runs[0].account.as_mut();
    let usage = &mut account.expect("there is one").usage;
    usage.models[1].model = Some(HOSTILE.to_owned());
    usage.models[1].price_source = Some(HOSTILE.to_owned());
    usage.unknown_price_models = vec![Some(HOSTILE.to_owned())];
    usage.method.push(HOSTILE.to_owned());
    data
}

/// Tags of a page; text may hold no bare `<`.
fn tags(page: &str) -> Vec<&str> {
    page.split('<').skip(1).map(|rest| rest.split_once('>').expect("a whole tag").0).collect()
}

#[test]
fn hostile_names_stay_text() {
    let page = html(&hostile()).expect("complete");
    assert!(page.contains("&lt;script&gt;alert(1)") && page.contains("{{ 7*7 }}"));
    assert!(!page.contains(['\u{1b}', '\u{202e}']));
    let plain = html(&data("a", "b")).expect("complete");
    let kinds = |page: &str| -> BTreeSet<String> {
        let name = |tag: &&str| tag.split([' ', '\n']).next().unwrap_or_default().to_owned();
        tags(page).iter().map(name).collect()
    };
    assert_eq!(kinds(&page), kinds(&plain), "a name brought a tag of its own");
    for tag in tags(&page) {
        let outside_of_quotes: String = tag.split('"').step_by(2).collect();
        assert!(!outside_of_quotes.contains("onload"), "{tag}");
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
    }
    let tables = text(&hostile()).expect("complete");
    assert!(!tables.contains(['\u{1b}', '\u{202e}']));
}

#[test]
fn the_page_needs_nothing_from_outside() {
    let page = html(&data("a", "b")).expect("complete");
    for tag in tags(&body(&page)) {
        assert!(!tag.starts_with("script") && !tag.starts_with("link"), "{tag}");
        assert!(!tag.contains("src=") && !tag.contains("http"), "{tag}");
        assert!(!tag.contains("href=") || tag.contains("href=\"#"), "{tag}");
    }
    assert!(!page.contains("url(") && !page.contains("@import"));
}

#[test]
fn every_picture_has_a_name_and_every_id_is_used_once() {
    let page = html(&data("a", "b")).expect("complete");
    let tags = tags(&page);
    let pictures = tags.iter().filter(|tag| tag.starts_with("svg ")).count();
    assert!(pictures >= 7);
    assert_eq!(tags.iter().filter(|tag| tag.starts_with("desc id=")).count(), pictures);
    let ids = tags.iter().filter_map(|tag| Some(tag.split_once(" id=\"")?.1.split_once('"')?.0));
    let ids: Vec<&str> = ids.collect();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
}

#[test]
fn tables_fit_a_terminal_whatever_the_names() {
    let long = "a-policy-whose-name-does-not-end-".repeat(4);
    for (first, second) in [(HOSTILE, "b"), (long.as_str(), long.as_str())] {
        let mut data = data(first, second);
        for more in 0..7 {
            data.timed[0].policies.push(timed_policy(&format!("{more}"), more));
            data.arrivals[0].policies.push(arrival_policy(&format!("{more}"), 90.0));
        }
        let tables = text(&data).expect("complete");
        let widest = tables.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(100), "{tables}");
        for name in 0..7 {
            assert!(tables.contains(&format!(" {name} ")), "{name} is missing");
        }
    }
}

#[test]
fn runs_without_an_account_are_compared_all_the_same() {
    let mut data = data("srtf", "dovetail");
    data.timed[0].policies[0].runs[0].account = None;
    let (page, tables) = (html(&data).expect("complete"), text(&data).expect("complete"));
    assert!(page.contains(
        "<tr><th scope=\"row\">allocated, share of installed</th><td>–</td><td>60.00%</td></tr>"
    ));
    assert!(page.contains("do not record GPU time by cause: srtf"));
    assert!(page.contains("stack-t") && tables.contains("5 min"));
    data.timed[0].policies[1].runs[0].account = None;
    let page = html(&data).expect("complete");
    assert!(!page.contains("stack-t") && !page.contains("Dollars per month"));
    assert!(page.contains("time in queue, mean"));
}

#[test]
fn policies_with_other_numbers_of_runs_are_refused() {
    let mut uneven = data("a", "b");
    uneven.arrivals[0].policies[1].runs.pop();
    let told = html(&uneven).expect_err("uneven").to_string();
    assert!(told.contains("`b` on `pods` has 1 run and the first policy has 2"), "{told}");
    let mut none = data("a", "b");
    none.timed[0].policies[0].runs.clear();
    assert!(matches!(text(&none), Err(ReportError::Runs { runs: 0, .. })));
    assert!(matches!(html(&ReportData::default()), Err(ReportError::Empty)));
}
