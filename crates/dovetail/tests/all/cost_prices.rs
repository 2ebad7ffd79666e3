//! Which price a node has where its labels say little, and what is said of prices.

use serde_json::json;

use crate::cost::{HOURS, document, folder, node, of};
use crate::fake_prometheus::{FakePrometheus, two_gpus};

/// A node of no cloud that anybody knows has the price that names none, and else that of another
/// place, as an estimate. A price of a day that is yet to come is told.
#[test]
fn a_node_of_an_unknown_provider_is_priced_as_one_or_by_an_estimate_that_is_told() {
    let folder = folder();
    let mut own = node("own", 1, "h100");
    own["spec"]["providerID"] = json!("metal3://rack/7");
    // It is not known whose region that is.
    own["metadata"]["labels"]["topology.kubernetes.io/region"] = json!("rack-row-7");
    folder.write("dump.json", &json!({"kind": "List", "items": [own]}).to_string());
    folder.write("aws.csv", "gpu_model,provider,region,usd_per_gpu_hour\nH100,aws,us-east-1,9\n");
    let found = document(&folder, "--by node --prices aws.csv");
    let place = ["provider", "region"].map(|key| &found["prices"][0][key]);
    assert_eq!(place, [&json!("aws"), &json!("us-east-1")]);
    let price = |rows: &str| {
        let head = "gpu_model,provider,region,usd_per_gpu_hour,as_of\n";
        folder.write("mine.csv", &format!("{head}{rows}"));
        let found = document(&folder, "--by node --prices mine.csv");
        (of(&found, &json!({"node": "own"})) / HOURS, found["notes"].to_string())
    };
    let estimate = "1 GPU of model H100 on nodes of unknown provider: priced as in aws \
                    us-east-1, an estimate";
    let (named, notes) = price("H100,aws,us-east-1,9,\n");
    assert_eq!(named, 9_000_000);
    assert!(notes.contains(estimate), "{notes}");
    let (unnamed, notes) = price("H100,aws,us-east-1,9,\nH100,,,2,2999-01-01\n");
    assert_eq!(unnamed, 2_000_000);
    assert!(!notes.contains("estimate"), "{notes}");
    assert!(
        notes.contains("prices of H100 date from 2999-01-01, which is in the future"),
        "{notes}"
    );
}

/// Settings in which an H100 costs so many euros an hour, of 1.25 dollars each.
pub(crate) fn own_rates(eur: &str) -> String {
    format!(
        "[prices.exchange]\nEUR = \"1.25\"\n[[prices.rates]]\ngpu_model = \"H100\"\n\
         price_per_gpu_hour = \"{eur}\"\ncurrency = \"EUR\"\n"
    )
}

/// One's own prices stand in dovetail.toml, or in flags before it. Whatever reads nodes, GPUs of a
/// server or of a trace takes the same ones; of `serve` and `scheduler --of` their own tests say
/// it.
#[test]
fn a_node_costs_the_same_in_every_command() {
    let folder = folder();
    folder.write("h100.csv", "sn,cpu_milli,memory_mib,gpu,model\nn,192000,2097152,8,H100\n");
    folder.write("dovetail.toml", &own_rates("2"));
    let server = FakePrometheus::start(two_gpus);
    let of_nodes = "--from dump.json --at 2026-11-20T12:00:00Z";
    let prices = |flags: &str| -> Vec<i64> {
        let json = |command: &str| folder.json(&format!("{command} {flags}"));
        let of_node =
            |found: &serde_json::Value| found["prices"][0]["usd_micros_per_gpu_hour"].clone();
        let usage = json(&format!("usage gpus --prometheus {} --period 2h --step 5m", server.url));
        let usd = usage["prices"][0]["usd_per_gpu_hour"].as_f64().expect("a price");
        let simulated =
            json("sim run --protocol timed --nodes h100.csv --jobs jobs.csv --order fifo");
        let found = [
            of_node(&json(&format!("cost {of_nodes}"))),
            of_node(&json(&format!("audit --fail-on never {of_nodes}"))),
            of_node(&json(&format!("cost questions {of_nodes}"))),
            simulated["usage"]["models"][0]["usd_micros_per_gpu_hour"].clone(),
            json!((usd * 1e6).round() as i64),
        ];
        found.iter().map(|price| price.as_i64().expect("a price")).collect()
    };
    assert_eq!(prices(""), [2_500_000; 5]);
    assert_eq!(prices("--exchange EUR=1.5"), [3_000_000; 5]);
    assert_eq!(prices("--gpu-price H100=4"), [4_000_000; 5]);
    folder.write("mine.csv", "gpu_model,usd_per_gpu_hour\nH100,5\n");
    assert_eq!(prices("--prices mine.csv"), [5_000_000; 5]);
    let demo = "demo --nodes 20 --days 1 --report page.html --prices mine.csv";
    let demo = &folder.json(demo)["timed"][0]["policies"][0]["runs"][0]["account"]["usage"];
    let models = demo["models"].as_array().expect("models");
    let h100 = models.iter().find(|of| of["model"].as_str().is_some_and(|m| m.contains("H100")));
    assert_eq!(h100.expect("an H100")["usd_micros_per_gpu_hour"], 5_000_000);
    // What the flag was called once.
    assert_eq!(prices("--price-file mine.csv"), [5_000_000; 5]);
}
