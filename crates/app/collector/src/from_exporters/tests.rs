use dovetail_account::rollup::HOUR_MS;
use dovetail_costing::teams::Teams;
use dovetail_settings::Settings;
use dovetail_sources::own_prices::OwnPriceFlags;
use dovetail_store::{Address, Detail, SumQuery};

use super::*;

const BEGIN_HOUR: u64 = 480_000;
const MINUTE_MS: u64 = 60_000;

fn at(minute: u64) -> u64 {
    BEGIN_HOUR * HOUR_MS + minute * MINUTE_MS
}

/// The page of a node: device, who holds it, how busy it is.
fn page(node: &str, devices: &[(&str, &str, f64)]) -> String {
    let line = |(device, pod, busy): &(&str, &str, f64)| {
        let pod =
            if pod.is_empty() { String::new() } else { format!(",namespace=\"ml\",pod=\"{pod}\"") };
        format!(
            "DCGM_FI_PROF_GR_ENGINE_ACTIVE{{UUID=\"{device}\",Hostname=\"{node}\"{pod}}} {busy}\n"
        )
    };
    devices.iter().map(line).collect()
}

/// What was seen in these minutes.
fn seen(minutes: impl Iterator<Item = u64>, pages: &[String]) -> Scrapes {
    let mut scrapes = Scrapes::default();
    for minute in minutes {
        for page in pages {
            scrapes.take("x", page.as_bytes(), at(minute) as i64).unwrap();
        }
    }
    scrapes
}

fn ledger(folder: &tempfile::TempDir) -> Ledger {
    Ledger::open("--store", &Address::File(folder.path().join("ledger.db"))).unwrap()
}

/// Minutes of GPUs by pod (empty: nobody) and cause.
fn minutes(ledger: &mut Ledger) -> BTreeMap<(String, String), i128> {
    let question = SumQuery {
        cluster: Some("west".to_owned()),
        from_hour: BEGIN_HOUR,
        to_hour: BEGIN_HOUR + 1,
        detail: Detail { pod: true, ..Detail::default() },
    };
    let rows = ledger.run(|store| store.sums(&question)).unwrap();
    let mut found = BTreeMap::new();
    for row in rows.iter().filter(|row| row.gpu_milli_ms > 0) {
        let pod = row.pod.as_deref().unwrap_or_default().to_owned();
        *found.entry((pod, row.paid.name())).or_default() += row.gpu_milli_ms / 60_000_000;
    }
    found
}

fn taking(from_minute: u64) -> Taking {
    Taking::new(MINUTE_MS, at(from_minute))
}

#[test]
fn minutes_of_several_programs_follow_each_other_and_what_nobody_saw_is_unknown() {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = ledger(&folder);
    let (settings, prices) = (Settings::of_nothing(), OwnPriceFlags::default());
    let teams = Teams::new(&settings.cost, &[]);
    let sources = BillInputs {
        teams: &teams,
        prices: &prices,
        list_prices: None,
        settings: &settings,
        gathered: None,
        free: &[],
    };
    let mut keep = |taking: &mut Taking, seen: Scrapes, to_minute: u64| -> ReadPart {
        taking.keep(&mut ledger, seen, &sources, "west", (at(0), at(to_minute))).unwrap()
    };
    let first = [
        page("n1", &[("a", "train-0", 0.9), ("b", "", 0.0), ("c", "debug-0", 0.0)]),
        page("n2", &[("d", "lost-0", 0.0)]),
    ];
    let later = page("n1", &[("a", "train-0", 0.9), ("b", "", 0.0), ("c", "other-0", 0.0)]);
    let later = std::slice::from_ref(&later);
    keep(&mut taking(0), seen(0..5, &first), 5);
    // Another program begins ten minutes later; the exporter of n2 answers it no more.
    let mut second = taking(15);
    keep(&mut second, seen(15..20, later), 20);
    // A look is missed where one reading ends and the next begins, and nobody answers for the last
    // minutes.
    let told = keep(&mut second, seen(21..25, later), 30);
    assert_eq!(told.gaps, [Span { from_ms: at(25), to_ms: at(30) }]);
    let silent = keep(&mut second, Scrapes::default(), 35);
    assert!(silent.is_silent && second.until_ms == at(30));

    let expected = [
        (("train-0", "active_not_separable"), 14),
        (("train-0", "unknown"), 11),
        (("", "free_of_unknown_cause"), 25),
        (("debug-0", "idle"), 5),
        // Between the two nobody knows whose it was.
        (("", "unknown"), 10),
        (("other-0", "idle"), 9),
        (("other-0", "unknown"), 1),
        // Not free and not nothing: there until it was seen last.
        (("lost-0", "idle"), 5),
    ];
    let expected =
        expected.map(|((pod, cause), minutes)| ((pod.to_owned(), cause.to_owned()), minutes));
    assert_eq!(minutes(&mut ledger), BTreeMap::from(expected));
    let period = Span { from_ms: at(0), to_ms: at(30) };
    let missing = ledger.run(|store| store.missing("west", Some(SOURCE), period)).unwrap();
    assert_eq!(missing, [Span { from_ms: at(25), to_ms: at(30) }]);
}

#[test]
fn a_pod_that_is_gone_is_told_as_before() {
    let pod = |name: &str, queue: Option<&str>| ReadPod {
        namespace: "ml".to_owned(),
        name: name.to_owned(),
        queue: queue.map(str::to_owned),
        ..ReadPod::default()
    };
    let queues = |pods: [ReadPod; 2], before: &mut BTreeMap<_, _>| -> Vec<Option<String>> {
        let mut reading = Reading { pods: pods.into(), ..Reading::default() };
        remember(&mut reading, None, before);
        reading.pods.into_iter().map(|pod| pod.queue).collect()
    };
    let mut before = BTreeMap::new();
    queues([pod("a", Some("q")), pod("b", None)], &mut before);
    let found = queues([pod("a", None), pod("c", Some("r"))], &mut before);
    assert_eq!(found, [Some("q".to_owned()), Some("r".to_owned())]);
    // Only the reading before is remembered.
    assert_eq!(before.len(), 2);
}
