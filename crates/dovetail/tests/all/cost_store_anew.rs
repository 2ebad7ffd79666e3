//! A ledger billed anew: by what the provider asked, with what is unused shared out, as a FOCUS
//! dataset.

use std::collections::BTreeMap;

use dovetail_account::device_time::Span;
use dovetail_bill::focus::{FocusVersion, check};
use dovetail_store::{Address, Store};
use dovetail_testkit::PostgresServer;
use serde_json::{Value, json};

use crate::ledger_world::{START_MS, World};
use crate::program::Folder;

/// The world begins on 2024-10-04.
const PERIOD: &str = "--period 4000d";
/// The world with days before and after it of which nothing is known. The states of single GPUs are
/// read day by day: each empty day is one more question to the ledger.
const WEEK: &str = "--period 2024-10-01..2024-10-07";

fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(future)
}

/// A ledger with the small world; the first node is `i-0` to its provider. Half a day is looked at
/// closely.
fn fill(address: &Address, world: &World) {
    let mut reading = world.reading(world.period());
    reading.nodes[0].provider_id = "aws:///us-east-1a/i-0".to_owned();
    reading.nodes[0].provider = "aws".to_owned();
    run(async {
        let mut store = Store::open(address).await.expect("a ledger");
        store.keep(&reading, world.period().to_ms).await.expect("kept");
        let span = Span { from_ms: START_MS, to_ms: START_MS + 12 * 3_600_000 };
        reading = world.reading(span);
        reading.nodes[0].provider_id = "aws:///us-east-1a/i-0".to_owned();
        reading.step_ms = Some(60_000);
        store.keep(&reading, world.period().to_ms).await.expect("kept");
        store.close().await;
    });
}

/// Costs by the one key of a bill.
fn costs(bill: &Value, key: &str) -> BTreeMap<String, i64> {
    let rows = bill["rows"].as_array().expect("rows").iter();
    let cost = |row: &Value| {
        let name = row["key"][key].as_str().expect("a key").to_owned();
        (name, row["cost_usd_micros"].as_i64().unwrap_or(0))
    };
    rows.map(cost).collect()
}

#[test]
fn a_ledger_is_billed_anew_to_the_micro_dollar() {
    let folder = Folder::new();
    let server = PostgresServer::start();
    let ledgers = [(Address::File(folder.path("ledger.db")), "ledger.db".to_owned())].into_iter();
    let on_server = server.iter().map(|server| (Address::Server(server.url()), server.url()));
    for (address, name) in ledgers.chain(on_server) {
        let world = World::new("west", 5);
        fill(&address, &world);
        let ask = format!("cost --store {name} {WEEK}");
        let price = i64::try_from(world.price(world.period())).expect("an amount");
        let by_node = costs(&folder.json(&format!("{ask} --by node")), "node");
        assert_eq!(by_node.values().sum::<i64>(), price);
        let ever =
            folder.json(&format!("cost --store {name} {PERIOD} --unused distributed --by node"));
        assert_eq!(costs(&ever, "node"), by_node);

        // Shared out: the same of each node, and nobody pays for what pods could.
        for method in ["all-in", "residual", "aws-split", "opencost", "datadog"] {
            let shared = format!("{ask} --unused distributed --method {method}");
            let bill = folder.json(&format!("{shared} --by node"));
            assert_eq!(costs(&bill, "node"), by_node, "{method}");
            assert_eq!(bill["unused"], "distributed");
        }
        let by_cause =
            folder.json(&format!("{ask} --unused distributed --method all-in --by cause"));
        let by_cause = costs(&by_cause, "cause");
        assert!(by_cause["unused_distributed"] > 0, "{by_cause:?}");
        assert_eq!((by_cause["free_no_demand"], by_cause["unavailable"]), (0, 0), "{by_cause:?}");

        // As billed: five dollars for each hour of the first node.
        let mut bill = "ResourceId,ChargePeriodStart,ChargePeriodEnd,EffectiveCost,ChargeCategory,BillingCurrency\n"
            .to_owned();
        for hour in 0..30 {
            let (day, hour, next) = (4 + hour / 24, hour % 24, (hour + 1) % 24);
            let last = day + u64::from(next == 0);
            bill += &format!(
                "i-0,2024-10-0{day}T{hour:02}:00:00Z,2024-10-0{last}T{next:02}:00:00Z,5.00,Usage,USD\n"
            );
        }
        folder.write("bill.csv", &bill);
        let billed = folder.json(&format!("{ask} --bill bill.csv --by node"));
        let mut expected = by_node.clone();
        expected.insert("node-0".to_owned(), 150_000_000);
        assert_eq!(costs(&billed, "node"), expected);
        assert_eq!(billed["bill"]["list_usd_micros"], by_node["node-0"]);
        assert_eq!(billed["bill"]["billed_usd_micros"], 150_000_000);

        // A dataset keeps its rules, and sums to the same.
        for (version, text) in [(FocusVersion::V1_2, "1.2"), (FocusVersion::V1_4, "1.4")] {
            let dataset = folder.call(&format!("{ask} --focus {text}"));
            assert_eq!(dataset.code, Some(0), "{}", dataset.err);
            let violations = check(version, &dataset.out, None);
            assert!(violations.is_empty(), "{violations:?}");
            let mut rows = csv::Reader::from_reader(dataset.out.as_bytes());
            let rows: Vec<BTreeMap<String, String>> =
                rows.deserialize().map(|row| row.expect("a row")).collect();
            let costs = rows.iter().map(|row| row["BilledCost"].parse::<f64>().expect("a number"));
            let sum = (costs.sum::<f64>() * 1e6).round();
            // Of the second day six hours were seen, and no more are charged.
            let last = rows.iter().map(|row| &*row["ChargePeriodEnd"]).max();
            assert_eq!(last, Some("2024-10-05T06:00:00Z"));
            assert_eq!(sum as i64, price);
            assert!(dataset.err.contains("omitted from the FOCUS file"), "{}", dataset.err);
        }
    }
}

#[test]
fn each_day_of_a_ledger_says_what_it_rests_on() {
    let folder = Folder::new();
    let world = World::new("west", 5);
    fill(&Address::File(folder.path("ledger.db")), &world);
    let bill = folder.json(&format!("cost --store ledger.db {PERIOD}"));
    let day = |day: &str, hours_read, finest_s, coarsest_s| {
        json!({"cluster": "west", "day": day, "hours_read": hours_read, "hours_unknown": 0,
            "finest_s": finest_s, "coarsest_s": coarsest_s})
    };
    let expected = [day("2024-10-04", 24, 60.0, 600.0), day("2024-10-05", 6, 600.0, 600.0)];
    assert_eq!(bill["resolution_by_day"], json!(expected));
    let table = folder.call(&format!("cost --store ledger.db {PERIOD}")).out;
    let told = "Sample interval, by day (UTC): 2024-10-04 60 to 600 s; 2024-10-05 600 s.";
    assert!(table.contains(told), "{table}");
}

#[test]
fn what_cannot_be_billed_anew_is_said() {
    let folder = Folder::new();
    let world = World::new("west", 5);
    let address = Address::File(folder.path("ledger.db"));
    fill(&address, &world);
    fill(&address, &World::new("east", 6));
    let done = folder.call(&format!("cost --store ledger.db {PERIOD} --unused distributed"));
    assert_eq!(done.code, Some(2), "{}", done.err);
    assert!(done.err.contains("the ledger has east, west"), "{}", done.err);
    // Nodes one by one are forgotten; sums of days stay.
    run(async {
        let mut store = Store::open(&address).await.expect("a ledger");
        let now_ms = world.period().to_ms + 90 * 86_400_000;
        dovetail_store::Retention::default().apply(&mut store, now_ms).await.expect("forgotten");
        store.close().await;
    });
    let call = format!("cost --store ledger.db {PERIOD} --cluster west --focus 1.4");
    let done = folder.call(&call);
    assert_eq!(done.code, Some(1), "{}", done.err);
    assert!(done.err.contains("states of single GPUs are available only from"), "{}", done.err);
}
