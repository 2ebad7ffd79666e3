//! `dovetail cost` on a small cluster: who pays what, in each form, and that it is the price.

use std::collections::BTreeMap;

use dovetail_bill::focus::{FocusVersion, check};
use serde_json::{Value, json};

use crate::program::{Done, Folder};

const GPU: &str = "nvidia.com/gpu";
/// Stands in every environment value and argument, and must stand nowhere else.
const CANARY: &str = "canary-77c0";
const CALL: &str = "cost --from dump.json --at 2026-11-20T12:00:00Z";

pub(crate) fn node(name: &str, gpus: u32, pool: &str) -> Value {
    let offers = json!({"cpu": "192", "memory": "2048Gi", "pods": "110", GPU: gpus.to_string()});
    let mut labels = json!({
        "kubernetes.io/hostname": name, "topology.kubernetes.io/region": "us-east-1",
        "karpenter.sh/nodepool": pool
    });
    if gpus > 0 {
        labels["nvidia.com/gpu.product"] = json!("NVIDIA-H100-80GB-HBM3");
    }
    if gpus == 8 {
        labels["node.kubernetes.io/instance-type"] = json!("p5.48xlarge");
    }
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": labels, "creationTimestamp": "2026-11-01T00:00:00Z"},
        "spec": {"providerID": format!("aws:///us-east-1a/i-{name}")},
        "status": {"capacity": offers, "allocatable": offers,
            "conditions": [{"type": "Ready", "status": "True"}]}
    })
}

/// A pod that ended: dumps of clusters have pods, and one without any is taken to lack them.
pub(crate) fn ended_pod() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "spec": {"containers": []},
        "metadata": {"name": "ended", "namespace": "kube-system", "uid": "ended"},
        "status": {"phase": "Succeeded"},
    })
}

/// These objects as a dump of all namespaces: a cluster has pods of its own.
pub(crate) fn dump(objects: &[Value]) -> String {
    let items: Vec<Value> = objects.iter().cloned().chain([ended_pod()]).collect();
    json!({"kind": "List", "items": items}).to_string()
}

pub(crate) fn pod(namespace: &str, name: &str, gpus: u32, node: &str) -> Value {
    let owner = name.rsplit_once('-').map_or(name, |(owner, _)| owner);
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "creationTimestamp": "2026-11-20T11:00:00Z",
            "labels": {"kueue.x-k8s.io/queue-name": "batch"},
            "ownerReferences": [{"kind": "Job", "name": owner, "controller": true}]},
        "spec": {"nodeName": node, "containers": [{
            "name": "main", "image": "train", "args": [CANARY],
            "env": [{"name": "KEY", "value": CANARY}],
            "resources": {"requests": {GPU: gpus, "cpu": "48", "memory": "512Gi"}, "limits": {GPU: gpus}}
        }]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    })
}

/// A pod that was there before anybody measured it.
pub(crate) fn made_long_ago(mut pod: Value) -> Value {
    pod["metadata"]["creationTimestamp"] = json!("2026-11-01T00:00:00Z");
    pod
}

fn namespace(name: &str, labels: Value) -> Value {
    let uid = if name == "kube-system" { "c1-u5-t3r" } else { name };
    json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": name, "uid": uid, "labels": labels}})
}

/// g1 has eight GPUs: four of vision, two of nlp, two that nobody wants. c1 has none.
pub(crate) fn folder() -> Folder {
    let folder = Folder::new();
    let objects = [
        node("g1", 8, "h100"),
        node("c1", 0, "web"),
        namespace("vision", json!({"team": "eyes"})),
        namespace("nlp", json!({})),
        namespace("kube-system", json!({})),
        pod("vision", "train-0", 4, "g1"),
        pod("nlp", "serve-0", 2, "g1"),
        pod("nlp", "web-0", 0, "c1"),
    ];
    folder.write("dump.json", &json!({"kind": "List", "items": objects}).to_string());
    folder
}

pub(crate) fn cost(folder: &Folder, flags: &str) -> Done {
    let done = folder.call(&format!("{CALL} {flags}"));
    assert!(!done.out.contains(CANARY) && !done.err.contains(CANARY), "{}", done.out);
    assert_eq!(done.code, Some(0), "{}", done.err);
    done
}

pub(crate) fn document(folder: &Folder, flags: &str) -> Value {
    serde_json::from_str(&cost(folder, &format!("{flags} --output json")).out).expect("JSON")
}

/// The amount of the row with this key.
pub(crate) fn of(document: &Value, key: &Value) -> i64 {
    let rows = document["rows"].as_array().expect("rows");
    let row = rows.iter().find(|row| row["key"] == *key);
    let row = row.unwrap_or_else(|| panic!("{key}: {document:#}"));
    row["cost_usd_micros"].as_i64().expect("an amount")
}

pub(crate) const HOURS: i64 = 720;

#[test]
fn each_form_is_as_documented() {
    let folder = folder();
    for form in ["table", "csv", "json"] {
        let done = cost(&folder, &format!("--by team,cause --output {form}"));
        let text = match form {
            "json" => {
                let mut value: Value = serde_json::from_str(&done.out).expect("JSON");
                value["notes"] = json!("(depends on the day)");
                serde_json::to_string_pretty(&value).expect("JSON")
            }
            // Notes say how old a price is.
            _ => done
                .out
                .lines()
                .filter(|line| !line.contains(" days ago"))
                .collect::<Vec<_>>()
                .join("\n"),
        };
        if form == "table" {
            assert!(done.out.lines().all(|line| line.chars().count() <= 100), "{}", done.out);
            let words = done.out.split_whitespace().collect::<Vec<_>>().join(" ");
            // Older than the moment, whenever it is asked for.
            assert!(words.contains("date from 2026-07-20, 123 days ago: check them"), "{words}");
        }
        insta::assert_snapshot!(format!("cost_{form}"), text);
    }
}

/// A p5.48xlarge is $55.04 an hour. All-in, a GPU is $6.88. With $0.04 a vCPU and $0.005 a GiB the
/// node's CPU is $7.68, its memory $10.24, and a GPU (55.04 − 17.92) / 8 = $4.64; each pod has a
/// quarter of both. AWS' weights: 192·0.9 + 2048·0.1 + 8·9 = 449.6, so a GPU is 55.04·9/449.6 =
/// $1.101779.
#[test]
fn amounts_are_those_worked_by_hand() {
    let folder = folder();
    let (vision, nobody) = (json!({"namespace": "vision"}), json!({"namespace": "(no owner)"}));
    let all_in = document(&folder, "--by namespace");
    assert_eq!(all_in["method"], "all-in/1");
    assert_eq!(of(&all_in, &vision), 4 * 6_880_000 * HOURS);
    assert_eq!(of(&all_in, &nobody), 2 * 6_880_000 * HOURS);
    assert_eq!(all_in["headline"]["waste_usd_micros"], 2 * 6_880_000 * HOURS);
    let residual = document(&folder, "--by namespace --vcpu-price 0.04 --gib-price 0.005");
    assert_eq!(residual["method"], "residual/1");
    assert_eq!(of(&residual, &vision), (4 * 4_640_000 + 1_920_000 + 2_560_000) * HOURS);
    // Two GPUs, and half of the CPU and memory of g1; of c1 three quarters.
    let of_c1 = 7_680_000 + 10_240_000;
    let of_nobody = 2 * 4_640_000 + of_c1 / 2 + of_c1 * 3 / 4;
    assert_eq!(of(&residual, &nobody), of_nobody * HOURS);
    let total = (55_040_000 + of_c1) * HOURS;
    assert_eq!(residual["headline"]["cost_usd_micros"], total);
    let unused = (of_c1 / 2 + of_c1 * 3 / 4) * HOURS;
    assert_eq!(residual["headline"]["unused_cpu_memory_usd_micros"], unused);
    let lowest = &residual["headline"]["lowest"];
    assert_eq!(lowest["method"], "aws-split/1");
    let waste = lowest["waste_usd_micros"].as_i64().expect("an amount");
    assert!((waste - 2 * 1_101_779 * HOURS).abs() <= 2 * HOURS, "{waste}");
    assert_eq!(residual["headline"]["highest"]["method"], "all-in/1");
}

#[test]
fn rows_are_the_price_however_they_are_grouped() {
    let folder = folder();
    let dimensions = [
        "namespace",
        "team",
        "queue",
        "job",
        "model",
        "pod",
        "gpu-type",
        "node-pool",
        "node",
        "cluster",
        "cause",
        "team,cause",
        "job,node,cause,cluster",
    ];
    for method in ["all-in", "residual", "aws-split", "opencost", "datadog"] {
        for unused in ["shown", "distributed"] {
            for by in dimensions {
                let flags = format!(
                    "--by {by} --method {method} --unused {unused} --vcpu-price 0.0391 --gib-price 0.0041"
                );
                let found = document(&folder, &flags);
                let rows = found["rows"].as_array().expect("rows").iter();
                let sum: i64 =
                    rows.map(|row| row["cost_usd_micros"].as_i64().expect("priced")).sum();
                let cpu_node = 192 * 39_100 + 2048 * 4_100;
                assert_eq!(sum, (55_040_000 + cpu_node) * HOURS, "{flags}");
            }
        }
    }
}

/// All is 8 × $6.88 an hour, of which vision's GPUs have half. By AWS' weights they have
/// $3,173.124555 of a month, so all others have the rest of $39,628.80.
#[test]
fn rows_beyond_the_top_are_one_and_the_sum_stays() {
    let folder = folder();
    let all = document(&folder, "--by team,cause");
    let top = document(&folder, "--by team,cause --top 1");
    assert_eq!((&top["total"], &top["headline"]), (&all["total"], &all["headline"]));
    let rows = top["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 2, "{top:#}");
    assert_eq!(rows[0], all["rows"][0]);
    let others = &rows[1];
    assert_eq!(others["key"], json!({"team": "others (4)", "cause": ""}));
    assert_eq!(others["cost_usd_micros"], 4 * 6_880_000 * HOURS);
    assert_eq!(others["lowest_usd_micros"], 4 * 6_880_000 * HOURS);
    assert_eq!(others["highest_usd_micros"], 39_628_800_000_i64 - 3_173_124_555);
    assert_eq!(document(&folder, "--by team,cause --top 5")["rows"], all["rows"]);
    let done = folder.call(&format!("{CALL} --top 0"));
    assert_eq!(done.code, Some(2), "{}", done.err);
}

#[test]
fn names_come_from_owners_labels_and_the_mapping() {
    let folder = folder();
    folder
        .write("dovetail.toml", "[cost]\ncluster = \"west\"\n[cost.teams]\n\"nl*\" = \"words\"\n");
    let found = document(&folder, "--by team,queue,job,gpu-type,node-pool,cluster,model");
    let row = json!({"team": "words", "queue": "batch", "job": "Job nlp/serve", "gpu-type": "H100",
        "node-pool": "NodePool h100", "cluster": "west", "model": "(unknown)"});
    assert_eq!(of(&found, &row), 2 * 6_880_000 * HOURS);
    let notes = found["notes"].to_string();
    assert!(notes.contains("to name the model of a pod, set the label llm-d.ai/model"), "{notes}");
    folder.write("dovetail.toml", "");
    let found = document(&folder, "--by team,cluster");
    assert_eq!(of(&found, &json!({"team": "eyes", "cluster": "c1-u5-t3r"})), 4 * 6_880_000 * HOURS);
    assert!(found["notes"].to_string().contains("[cost.teams] of dovetail.toml"));
}

#[test]
fn what_has_no_price_is_told_and_never_zero() {
    let folder = folder();
    let text = folder
        .read("dump.json")
        .replace("NVIDIA-H100-80GB-HBM3", "Prototype")
        .replace("p5.48xlarge", "x");
    folder.write("dump.json", &text);
    let found = document(&folder, "--by namespace");
    assert_eq!(found["headline"]["cost_usd_micros"], Value::Null);
    assert_eq!(found["rows"][0]["cost_usd_micros"], Value::Null);
    assert_eq!(found["total"]["gpu_hours"], json!(8.0 * HOURS as f64));
    let notes = found["notes"].to_string();
    assert!(notes.contains("8 GPUs of model PROTOTYPE: no price"), "{notes}");
    assert!(notes.contains("1 node without GPUs: no price"), "{notes}");
    assert!(!cost(&folder, "--by namespace").out.contains("$0"));
}

#[test]
fn hostile_names_neither_act_nor_break_a_row() {
    let folder = folder();
    let team = "=HYPERLINK(\\\"http://x\\\")";
    let text = folder.read("dump.json").replace("\"eyes\"", &format!("\"{team}\""));
    folder.write("dump.json", &text.replace("\"vision\"", "\"\\u001b[2J\\u202e@x\""));
    let done = cost(&folder, "--by team,namespace --output csv");
    let mut rows = csv::Reader::from_reader(done.out.as_bytes());
    let rows: Vec<csv::StringRecord> = rows.records().map(|row| row.expect("CSV")).collect();
    assert!(rows.iter().any(|row| row[0].starts_with("'=HYPERLINK")), "{}", done.out);
    assert!(rows.iter().any(|row| row[1].starts_with("[2J@x")), "{}", done.out);
    for form in ["table", "json"] {
        let done = cost(&folder, &format!("--by team,namespace --output {form}"));
        let acts = |letter: char| letter.is_control() && letter != '\n';
        assert!(!done.out.contains(acts) && !done.out.contains('\u{202e}'), "{form}");
    }
}

#[test]
fn what_cannot_be_split_is_told() {
    let folder = folder();
    let told = |flags: &str, code: i32, text: &str| {
        let done = folder.call(&format!("cost {flags}"));
        assert_eq!(done.code, Some(code), "{flags}: {}", done.err);
        assert!(done.err.contains(text) && done.out.is_empty(), "{flags}: {}", done.err);
    };
    told("", 1, "no kubeconfig: ");
    let from = "--from dump.json";
    told(&format!("{from} --method residual"), 2, "residual needs list prices");
    told(&format!("{from} --method best"), 2, "`best` is not a split method");
    told(&format!("{from} --by team,team"), 2, "--by: team is listed twice");
    told(&format!("{from} --by floor"), 2, "gpu-type");
    told(&format!("{from} --vcpu-price 5"), 2, "--gib-price");
    told(&format!("{from} --vcpu-price 5000 --gib-price 1"), 2, "--vcpu-price 5000: above");
    told(&format!("{from} --output html"), 2, "`dovetail cost` does not support -o html");
    folder.write("dovetail.toml", "[cost]\nmethod = \"best\"\n");
    told(from, 2, "cost.method = \"best\"");
}

/// The split columns in every version, by the checker that knows what the rows were split from.
#[test]
fn focus_datasets_hold_the_rules_of_their_version() {
    let folder = folder();
    let key =
        |node: &str| (format!("aws:///us-east-1a/i-{node}"), "2026-11-20T12:00:00Z".to_owned());
    let prices = "--vcpu-price 0.04 --gib-price 0.005";
    for version in FocusVersion::ALL {
        for unused in ["shown", "distributed"] {
            let flags = format!("--focus {version} --unused {unused}");
            let done = cost(&folder, &format!("{flags} {prices}"));
            let origins = BTreeMap::from([(key("g1"), 55_040_000), (key("c1"), 17_920_000)]);
            assert_eq!(check(version, &done.out, Some(&origins)), [], "{flags}\n{}", done.out);
        }
        // A node without a price is not in it, and that is told.
        let done = cost(&folder, &format!("--focus {version}"));
        assert_eq!(check(version, &done.out, Some(&BTreeMap::from([(key("g1"), 55_040_000)]))), []);
        assert!(done.err.contains("1 charge period of nodes has no price"), "{}", done.err);
    }
    let hostile = folder.read("dump.json").replace("\"eyes\"", "\"=1+1\\u001b\"");
    folder.write("dump.json", &hostile.replace("train-0", "@train-0"));
    let done = cost(&folder, "--focus 1.4");
    assert_eq!(check(FocusVersion::V1_4, &done.out, None), [], "{}", done.out);
    assert!(!done.out.contains('\u{1b}'));
    insta::assert_snapshot!("cost_focus", cost(&self::folder(), "--focus 1.4").out);
}

/// A quarter off for g1 in two hours of it, of which one is split into rows, and a machine of
/// somebody else.
#[test]
fn a_bill_takes_the_place_of_list_prices() {
    let folder = folder();
    folder.write(
        "bill.csv",
        "ResourceId,ChargePeriodStart,ChargePeriodEnd,EffectiveCost,ChargeCategory,BillingCurrency,AllocatedResourceId\n\
         i-g1,2026-11-20T10:00:00Z,2026-11-20T11:00:00Z,41.28,Usage,USD,\n\
         i-g1,2026-11-20T11:00:00Z,2026-11-20T12:00:00Z,20.64,Usage,USD,\n\
         i-g1,2026-11-20T11:00:00Z,2026-11-20T12:00:00Z,20.64,Usage,USD,train-0\n\
         i-other,2026-11-20T11:00:00Z,2026-11-20T12:00:00Z,12.5,Usage,USD,\n",
    );
    let found = document(&folder, "--by namespace --bill bill.csv");
    assert_eq!(of(&found, &json!({"namespace": "vision"})), 4 * 5_160_000 * HOURS);
    let bill = &found["bill"];
    assert_eq!(bill["discount_share"], json!(0.25));
    assert_eq!((&bill["billed_nodes"], &bill["split_lines"]), (&json!(1), &json!(0)));
    assert_eq!(bill["unmatched"][0]["resource"], "i-other");
    assert_eq!(bill["unmatched_usd_micros"], 12_500_000);
    let table = cost(&folder, "--by namespace --bill bill.csv").out;
    assert!(table.contains("25.0% below list"), "{table}");
    assert!(table.contains("bill.csv: 1 machine outside this cluster, $12.50"), "{table}");
    // In FOCUS both are told.
    let dataset = cost(&folder, "--focus 1.3 --bill bill.csv").out;
    let mut rows = csv::Reader::from_reader(dataset.as_bytes());
    let rows: Vec<BTreeMap<String, String>> =
        rows.deserialize().map(|row| row.expect("a row")).collect();
    let sum = |column: &str| {
        rows.iter().map(|row| row[column].parse::<f64>().expect("a number")).sum::<f64>()
    };
    assert!((sum("BilledCost") - 41.28).abs() < 1e-6 && (sum("ListCost") - 55.04).abs() < 1e-6);
    folder.write("bill.csv", &folder.read("bill.csv").replace("USD", "EUR"));
    let done = folder.call(&format!("{CALL} --bill bill.csv"));
    assert_eq!(done.code, Some(3), "{}", done.err);
    let told = "bill.csv: the bill is in EUR: `EUR` has no exchange rate: pass --exchange EUR=RATE";
    assert!(done.err.contains(told) && done.err.contains("[prices.exchange]"), "{}", done.err);
}

/// €41.28 at 1.25 is $51.60 an hour, €2.50 a GPU-hour $3.125. The flag beats the file.
#[test]
fn other_currencies_are_converted_at_the_users_rate_which_is_told() {
    let folder = folder();
    folder.write(
        "bill.csv",
        "ResourceId,ChargePeriodStart,ChargePeriodEnd,EffectiveCost,ChargeCategory,BillingCurrency\n\
         i-g1,2026-11-20T10:00:00Z,2026-11-20T11:00:00Z,41.28,Usage,EUR\n",
    );
    folder.write("mine.csv", "gpu_model,price_per_gpu_hour,currency\nH100,2.5,EUR\n");
    folder.write(
        "dovetail.toml",
        "[prices.exchange]\nEUR = { usd = \"1.08\", as_of = \"2026-11-01\" }\n",
    );
    let flags = "--by node --bill bill.csv --prices mine.csv";
    let found = document(&folder, &format!("{flags} --exchange EUR=1.25@2026-11-19"));
    let g1 = json!({"node": "g1"});
    assert_eq!(of(&found, &g1), 51_600_000 * HOURS);
    assert_eq!(found["prices"][0]["usd_micros_per_gpu_hour"], 3_125_000);
    assert_eq!(
        (&found["bill"]["currency"], &found["bill"]["usd_per_unit"]),
        (&json!("EUR"), &json!("1.25"))
    );
    let notes = found["notes"].to_string();
    let rate = "amounts in EUR are converted: 1 EUR = 1.25 USD, of 2026-11-19 (--exchange)";
    assert!(notes.contains(rate) && notes.contains(&format!("bill.csv: {rate}")), "{notes}");
    let found = document(&folder, flags);
    assert_eq!(of(&found, &g1), 44_582_400 * HOURS);
    let source = found["prices"][0]["source"].to_string();
    assert!(
        source.contains("2.5 EUR at 1 EUR = 1.08 USD, of 2026-11-01 (dovetail.toml)"),
        "{source}"
    );
    for (flag, told) in [
        ("--exchange 1.08", "`1.08` is not an exchange rate: write CURRENCY=RATE"),
        ("--exchange EUR=1,08", "write USD for one EUR, such as 1.08"),
        ("--exchange EUR=1 --exchange EUR=2", "--exchange: EUR is listed twice"),
    ] {
        let done = folder.call(&format!("{CALL} {flag}"));
        assert!(done.code == Some(2) && done.err.contains(told), "{flag}: {}", done.err);
    }
}

/// Purchase, the price that stands in for it, and the rate of the first line of prices.
fn price_line(found: &Value) -> [Value; 3] {
    let line = &found["prices"][0];
    [&line["purchase"], &line["priced_as"], &line["usd_micros_per_gpu_hour"]].map(Value::clone)
}

/// Category of the first row of a FOCUS dataset, and the sums of what was paid and of list prices
/// in micro-dollars.
fn focus(folder: &Folder, flags: &str) -> (String, i64, i64) {
    let dataset = cost(folder, &format!("--focus 1.4 {flags}")).out;
    let mut rows = csv::Reader::from_reader(dataset.as_bytes());
    let rows: Vec<BTreeMap<String, String>> =
        rows.deserialize().map(|row| row.expect("a row")).collect();
    let sum = |column: &str| {
        let cells = rows.iter().map(|row| row[column].parse::<f64>().expect("a number"));
        (cells.sum::<f64>() * 1e6).round() as i64
    };
    (rows[0]["PricingCategory"].clone(), sum("EffectiveCost"), sum("ListCost"))
}

/// Labels, settings and bills say what is committed; the rate is the user's, and without one the
/// list price says so.
#[test]
fn what_is_committed_has_its_rate_or_the_list_price_which_says_so() {
    let folder = folder();
    let plain = document(&folder, "--by node");
    assert_eq!(price_line(&plain), [json!("on_demand"), json!(null), json!(6_880_000)]);
    folder.write("dovetail.toml", "[prices]\ncommitted_nodes = [\"karpenter.sh/nodepool=h*\", \"karpenter.sh/nodepool=h100\"]\n");
    let listed = document(&folder, "--by node");
    assert_eq!(price_line(&listed), [json!("committed"), json!("on_demand"), json!(6_880_000)]);
    let notes = listed["notes"].to_string();
    assert!(notes.contains("8 GPUs of model H100 at an unknown committed rate"), "{notes}");
    let table = cost(&folder, "--by node").out.replace("\n    ", " ");
    assert!(
        table.contains("H100 in aws us-east-1, committed: $6.88 per GPU-hour on-demand ("),
        "{table}"
    );
    folder.write("mine.csv", "gpu_model,usd_per_gpu_hour,purchase\nH100,3.1,committed\n");
    let rated = document(&folder, "--by node --prices mine.csv");
    assert_eq!(price_line(&rated), [json!("committed"), json!(null), json!(3_100_000)]);
    assert_eq!(of(&rated, &json!({"node": "g1"})), 8 * 3_100_000 * HOURS);
    // FOCUS tells the rate beside what the hour would have cost on demand.
    assert_eq!(
        focus(&folder, "--prices mine.csv"),
        ("Committed".to_owned(), 24_800_000, 55_040_000)
    );
    let slip = "committed_nodes = [\"karpenter.sh/nodepool=h100\", \"pool=reserverd\"]\n";
    folder.write("dovetail.toml", &format!("[prices]\n{slip}"));
    let notes = document(&folder, "--by node")["notes"].to_string();
    assert!(notes.contains("prices.committed_nodes: `pool=reserverd` matches no node"), "{notes}");
    assert!(!notes.contains("nodepool=h100` finds"), "{notes}");
}

/// The rate out of the settings; and a bill that knows better than labels.
#[test]
fn a_bill_knows_better_than_labels_what_is_committed() {
    let folder = folder();
    folder.write(
        "dovetail.toml",
        "[[prices.rates]]\ngpu_model = \"H100\"\npurchase = \"committed\"\nusd_per_gpu_hour = \"3.1\"\n",
    );
    let labelled = folder.read("dump.json").replace(
        "\"karpenter.sh/nodepool\":\"h100\"",
        "\"karpenter.sh/capacity-type\":\"reserved\"",
    );
    assert_ne!(labelled, folder.read("dump.json"));
    folder.write("dump.json", &labelled);
    assert_eq!(
        price_line(&document(&folder, "--by node")),
        [json!("committed"), json!(null), json!(3_100_000)]
    );
    folder.write(
        "bill.csv",
        "ResourceId,ChargePeriodStart,ChargePeriodEnd,EffectiveCost,ChargeCategory,BillingCurrency,PricingCategory\n\
         i-g1,2026-11-20T10:00:00Z,2026-11-20T11:00:00Z,50,Usage,USD,Standard\n",
    );
    assert_eq!(focus(&folder, "--bill bill.csv").0, "Standard");
    folder.write("bill.csv", &folder.read("bill.csv").replace("Standard", "Committed"));
    let billed = document(&folder, "--by node --bill bill.csv");
    assert_eq!(
        (&billed["bill"]["committed_nodes"], &billed["bill"]["billed_nodes"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(focus(&folder, "--bill bill.csv"), ("Committed".to_owned(), 50_000_000, 55_040_000));
    folder.write(
        "dovetail.toml",
        "[[prices.rates]]\ngpu_model = \"H100\"\nusd_per_gpu_hour = \"3,1\"\n",
    );
    let done = folder.call(CALL);
    assert!(
        done.code == Some(2)
            && done.err.contains("prices.rates, number 1: usd_per_gpu_hour: `3,1` is not"),
        "{}",
        done.err
    );
}

/// A report without amortised columns has nothing for time that a reservation covers.
#[test]
fn a_node_whose_cost_is_not_in_the_bill_is_not_free() {
    let folder = folder();
    let report = "\
lineItem/LineItemType,lineItem/ResourceId,lineItem/UsageStartDate,lineItem/UsageEndDate,lineItem/UnblendedCost,lineItem/CurrencyCode
Usage,i-c1,2026-11-20T10:00:00Z,2026-11-20T11:00:00Z,9,USD
DiscountedUsage,i-g1,2026-11-20T10:00:00Z,2026-11-20T11:00:00Z,0,USD
";
    folder.write("cur.csv", report);
    let found = document(&folder, "--by node --bill cur.csv");
    assert_eq!(of(&found, &json!({"node": "g1"})), 55_040_000 * HOURS);
    assert_eq!(of(&found, &json!({"node": "c1"})), 9_000_000 * HOURS);
    let bill = &found["bill"];
    assert_eq!((&bill["billed_nodes"], &bill["lines_without_cost"]), (&json!(1), &json!(1)));
    let notes = found["notes"].to_string();
    let told = "cur.csv: 1 line (3; first kind: DiscountedUsage) without a cost: a commitment pays for them";
    assert!(notes.contains(told) && notes.contains("reservation/EffectiveCost"), "{notes}");
    assert!(notes.contains("1 node (first: g1): at list prices instead"), "{notes}");
    // What is billed at nothing is believed, and told.
    folder.write("cur.csv", &report.replace("DiscountedUsage", "Usage"));
    let found = document(&folder, "--by node --bill cur.csv");
    assert_eq!(of(&found, &json!({"node": "g1"})), 0);
    assert!(
        found["notes"].to_string().contains("1 node billed at $0.00 (first: g1)"),
        "{}",
        found["notes"]
    );
}

/// What is billed for less than nothing is no price; and who pays for what is unused changes no
/// waste.
#[test]
fn credits_beyond_costs_are_told_and_what_is_distributed_stays_waste() {
    let folder = folder();
    folder.write(
        "bill.csv",
        "ResourceId,ChargePeriodStart,ChargePeriodEnd,EffectiveCost,ChargeCategory,BillingCurrency\n\
         i-g1,2026-11-20T10:00:00Z,2026-11-20T11:00:00Z,-30,Usage,USD\n",
    );
    let found = document(&folder, "--by namespace --bill bill.csv");
    assert_eq!(found["bill"]["billed_nodes"], 0);
    let notes = found["notes"].to_string();
    assert!(notes.contains("credits of 1 node (first: g1) exceed the billed amount"), "{notes}");
    let waste = |flags: &str| {
        let found = document(&folder, flags);
        let rows = found["rows"].as_array().unwrap().iter();
        let sum: i64 = rows.map(|row| row["waste_usd_micros"].as_i64().unwrap_or(0)).sum();
        assert_eq!(Some(sum), found["total"]["waste_usd_micros"].as_i64(), "{flags}");
        sum
    };
    assert!(waste("--by team") > 0);
    assert_eq!(waste("--by team"), waste("--by team --unused distributed"));
}

/// A time needs somebody who is asked about it, a price somebody who has the model. Objects of a
/// file or of the example have no users: the whole cluster is no answer to the question for one's
/// own.
#[test]
fn mine_without_a_cluster_is_refused() {
    let folder = folder();
    for call in [format!("{CALL} --mine"), "cost --example --mine".to_owned()] {
        let done = folder.call(&call);
        assert_eq!(done.code, Some(2), "{call}: {}{}", done.out, done.err);
        assert!(done.err.contains("--mine requires a cluster"), "{}", done.err);
    }
    // Without objects the parser says it.
    let done = folder.call("cost --store none.db --mine");
    assert!(done.code == Some(1) && done.err.contains("--kubeconfig"), "{}", done.err);
}

#[test]
fn flags_without_effect_are_told() {
    let folder = folder();
    let notes = document(&folder, "--period 7d")["notes"].to_string();
    assert!(notes.contains("--period has no effect: without --prometheus"), "{notes}");
    folder.write("mine.csv", "gpu_model,usd_per_gpu_hour\nH100,5\nH10,4\nB900,3\n");
    let notes =
        document(&folder, "--gpu-price H1000=2 --gpu-price H100=3 --prices mine.csv")["notes"]
            .to_string();
    for told in [
        "--gpu-price H1000: no node has GPUs of this model, so the price has no effect; models in the cluster: H100",
        "mine.csv: no node has GPUs of B900, H10; models in the cluster: H100",
    ] {
        assert!(notes.contains(told), "{notes}");
    }
    let empty = folder.call("cost --store none.db --period 0h --prometheus http://127.0.0.1:1");
    assert_eq!(empty.code, Some(2), "{}", empty.err);
    assert!(empty.err.contains("--period: must be at least 1s"), "{}", empty.err);
    let done = folder.call(&format!("{CALL} --gpu-price H100=2=3"));
    assert_eq!(done.code, Some(2), "{}", done.err);
    assert!(done.err.contains("more than one `=`"), "{}", done.err);
}

/// $280,000 over 4 years, 10.2 kW, PUE 1.4, $0.12 per kWh: $1.213058 for each of eight GPUs. Four
/// years of $280,000 and 10.2 kW are $1.213058 a GPU-hour, for the nodes that are such machines: by
/// their labels, or where none are named those of no cloud.
#[test]
fn own_hardware_has_its_price_on_the_nodes_that_it_is() {
    let folder = folder();
    let hardware = "[[cost.hardware]]\ngpu_model = \"H100\"\ngpus = 8\ncapex_usd = \"280000\"\nyears = 4\n\
                    watts = 10200\npue = \"1.4\"\nusd_per_kwh = \"0.12\"\n";
    let vision = json!({"namespace": "vision"});
    folder.write("dovetail.toml", hardware);
    let rented = document(&folder, "--by namespace");
    assert_eq!(of(&rented, &vision), 4 * 6_880_000 * HOURS);
    let told = "cost.hardware, number 1: matches no node (H100), so its price is unused";
    assert!(rented["notes"].to_string().contains(told), "{}", rented["notes"]);
    for selector in ["nodes = [\"x=y\", \"karpenter.sh/nodepool=h100\"]\n", "provider = \"aws\"\n"]
    {
        folder.write("dovetail.toml", &format!("{hardware}{selector}"));
        let found = document(&folder, "--by namespace");
        assert_eq!(of(&found, &vision), 4 * 1_213_058 * HOURS, "{selector}");
        let source = found["prices"][0]["source"].to_string();
        assert!(source.contains("own machine: ($280000.00 / (4 years"), "{source}");
    }
    // What is said on the command line is stronger.
    let found = document(&folder, "--by namespace --gpu-price H100=2");
    assert_eq!(of(&found, &vision), 4 * 2_000_000 * HOURS);
    folder.write("dovetail.toml", hardware);
    folder.write("own.json", &folder.read("dump.json").replace("aws:///us-east-1a/", "metal://"));
    let done = folder.call("cost --from own.json --at 2026-11-20T12:00:00Z --output json");
    let found: Value = serde_json::from_str(&done.out).expect("JSON");
    assert_eq!(of(&found, &vision), 4 * 1_213_058 * HOURS);
    folder.write("dovetail.toml", &hardware.replace("1.4", "0.9"));
    let done = folder.call(CALL);
    let told = "dovetail.toml:7: cost.hardware, number 1: pue: 0.90 is below 1";
    assert!(done.code == Some(2) && done.err.contains(told), "{}", done.err);
}

/// A machine with one A100 is $4.10 an hour, one with eight $32.77: $4.09625 a GPU. With $0.04 a
/// vCPU (192 of them) and $0.005 a GiB (2,048) a machine's CPU and memory are $17.92; they are more
/// than the small machine costs.
#[test]
fn each_size_of_a_machine_has_its_own_price() {
    let folder = Folder::new();
    let machine = |name: &str, gpus: u32, of: &str| {
        let mut node = node(name, gpus, "a100");
        node["metadata"]["labels"]["nvidia.com/gpu.product"] = json!("NVIDIA-A100-SXM4-80GB");
        node["metadata"]["labels"]["node.kubernetes.io/instance-type"] = json!(of);
        node
    };
    let objects = [
        machine("one", 1, "one.xlarge"),
        machine("eight", 8, "eight.24xlarge"),
        machine("other", 8, "p4de.metal"),
        namespace("kube-system", json!({})),
        pod("vision", "train-0", 8, "eight"),
    ];
    folder.write("dump.json", &json!({"kind": "List", "items": objects}).to_string());
    let prices = "gpu_model,provider,region,instance_type,usd_per_gpu_hour,source,as_of\n\
                  A100-80GB,aws,us-east-1,one.xlarge,4.1,list,2026-11-01\n\
                  A100-80GB,aws,us-east-1,eight.24xlarge,4.09625,list,2026-11-01\n";
    folder.write("mine.csv", prices);
    let found = document(&folder, "--by node --prices mine.csv");
    let amount = |found: &Value, name: &str| of(found, &json!({"node": name}));
    assert_eq!(amount(&found, "one"), 4_100_000 * HOURS);
    assert_eq!(amount(&found, "eight"), 32_770_000 * HOURS);
    // Neither row is of this type, and the built-in list does not know it: the least of an A100
    // there, and told.
    assert_eq!(amount(&found, "other"), 8 * 3_430_888 * HOURS);
    let told = "8 GPUs of model A100-80GB on instance type p4de.metal, which has no known price: priced as \
                p4de.24xlarge";
    assert!(found["notes"].to_string().contains(told), "{}", found["notes"]);
    let mut lines: Vec<String> = found["prices"]
        .as_array()
        .expect("prices")
        .iter()
        .map(|line| {
            format!(
                "{} {} {}",
                line["instance_type"], line["gpus"], line["usd_micros_per_gpu_hour"]
            )
        })
        .collect();
    lines.sort();
    let expected =
        ["\"eight.24xlarge\" 8 4096250", "\"one.xlarge\" 1 4100000", "\"p4de.24xlarge\" 8 3430888"];
    assert_eq!(lines, expected);
    // What CPU and memory cost alone is taken off the price of the size: $32.77 less $17.92 are
    // $14.85 for eight GPUs.
    let flags =
        "--by node,cause --prices mine.csv --method residual --vcpu-price 0.04 --gib-price 0.005";
    let residual = document(&folder, flags);
    let gpus = json!({"node": "eight", "cause": "unknown"});
    assert_eq!(of(&residual, &gpus), 14_850_000 * HOURS);
    // Of two rows that say the same of a node none is nearer.
    folder.write("mine.csv", &format!("{prices}A100-80GB,aws,us-east-1,one.xlarge,5,,\n"));
    let done = folder.call(&format!("{CALL} --prices mine.csv"));
    let told = "mine.csv:4: column `gpu_model`: A100-80GB as one.xlarge has the same place and purchase option at mine.csv:2";
    assert!(done.code != Some(0) && done.err.contains(told), "{}", done.err);
}

/// Rows of a FOCUS dataset.
fn focus_rows(folder: &Folder, flags: &str) -> Vec<BTreeMap<String, String>> {
    let dataset = cost(folder, flags).out;
    let mut rows = csv::Reader::from_reader(dataset.as_bytes());
    rows.deserialize().map(|row| row.expect("a row")).collect()
}

/// An hour of g1 under a reservation: nothing on the invoice, $20.000001 of what was paid in
/// advance, $55.04 at list and $50.10 at negotiated prices. c1 is billed without any of these.
/// Whatever rows there are, they have the bill's amounts.
#[test]
fn each_cost_of_focus_is_what_the_bill_says() {
    let folder = folder();
    let bill = "\
ResourceId,ChargePeriodStart,ChargePeriodEnd,BilledCost,EffectiveCost,ListCost,ContractedCost,ChargeCategory,BillingCurrency,PricingCategory,CommitmentDiscountId,CommitmentDiscountType,CommitmentDiscountCategory
i-g1,2026-11-20T11:00:00Z,2026-11-20T12:00:00Z,0,20.000001,55.04,50.1,Usage,USD,Committed,ri-7,Reserved,Usage
i-c1,2026-11-20T11:00:00Z,2026-11-20T12:00:00Z,9.000007,9.000007,,,Usage,USD,Standard,,,
";
    folder.write("bill.csv", bill);
    for version in FocusVersion::ALL {
        for unused in ["shown", "distributed"] {
            let flags = format!("--focus {version} --bill bill.csv --unused {unused}");
            let dataset = cost(&folder, &flags).out;
            assert_eq!(check(version, &dataset, None), [], "{flags}\n{dataset}");
            let rows = focus_rows(&folder, &flags);
            let sum = |node: &str, column: &str| -> i64 {
                let of_node = rows.iter().filter(|row| row["ResourceName"] == node);
                let micros = of_node.map(|row| {
                    (row[column].parse::<f64>().expect("a number") * 1e6).round() as i64
                });
                micros.sum()
            };
            let columns = ["BilledCost", "EffectiveCost", "ListCost", "ContractedCost"];
            assert_eq!(columns.map(|c| sum("g1", c)), [0, 20_000_001, 55_040_000, 50_100_000]);
            assert_eq!(columns.map(|c| sum("c1", c)), [9_000_007; 4]);
            for row in &rows {
                let is_g1 = row["ResourceName"] == "g1";
                let said = ["Id", "Type", "Category", "Status"];
                let said = said.map(|c| row[&format!("CommitmentDiscount{c}")].as_str());
                let expected = if is_g1 { ["ri-7", "Reserved", "Usage", "Used"] } else { [""; 4] };
                assert_eq!(said, expected, "{flags}");
            }
        }
    }
    // A file that has no more than the invoice and the amortised cost: list price × hours, also as
    // the negotiated price of a committed node.
    let less: String = bill
        .lines()
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            format!("{},{}\n", cells[..5].join(","), cells[7..].join(","))
        })
        .collect();
    folder.write("bill.csv", &less);
    let rows = focus_rows(&folder, "--focus 1.3 --bill bill.csv");
    let sum = |column: &str| {
        let of_node = rows.iter().filter(|row| row["ResourceName"] == "g1");
        of_node.map(|row| row[column].parse::<f64>().expect("a number")).sum::<f64>()
    };
    assert!((sum("ListCost") - 55.04).abs() < 1e-9 && (sum("ContractedCost") - 55.04).abs() < 1e-9);
}
