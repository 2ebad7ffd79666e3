//! Which price a node has where its labels say little, and what is said of prices.

use serde_json::{Value, json};

use crate::cost::{HOURS, document, dump, folder, node, of};
use crate::fake_prometheus::{FakePrometheus, Made, Query, two_gpus};
use crate::program::Folder;

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
        let of_node = |found: &Value| found["prices"][0]["usd_micros_per_gpu_hour"].clone();
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

/// A spot node whose GPUs are cut into sevenths, and four pods that wait for halves.
fn spot_node_and_pods() -> Vec<Value> {
    let mut spot = node("n1", 8, "h100");
    spot["metadata"]["labels"]["karpenter.sh/capacity-type"] = json!("spot");
    spot["metadata"]["labels"]["nvidia.com/gpu.count"] = json!("8");
    let offers =
        json!({"cpu": "192", "memory": "2048Gi", "pods": "110", "nvidia.com/mig-1g.10gb": "56"});
    spot["status"]["capacity"] = offers.clone();
    spot["status"]["allocatable"] = offers;
    let half = json!({"nvidia.com/mig-3g.40gb": "1"});
    let pod = |number: u32| {
        json!({
            "apiVersion": "v1", "kind": "Pod", "status": {"phase": "Pending"},
            "metadata": {"name": format!("half-{number}"), "namespace": "team",
                "uid": format!("half-{number}"), "creationTimestamp": "2026-11-20T10:00:00Z"},
            "spec": {"containers": [{"name": "c", "image": "i",
                "resources": {"requests": half, "limits": half}}]}
        })
    };
    [spot].into_iter().chain((0..4).map(pod)).collect()
}

/// What kube-state-metrics says of that node, beside what an exporter says of two of its GPUs.
fn spot_series(query: &Query) -> Vec<Made> {
    let labels = if query.text.contains("kube_node_info[") {
        json!({"node": "n1", "provider_id": "aws:///us-east-1a/i-n1"})
    } else if query.text.contains("kube_node_labels[") {
        json!({
            "node": "n1", "label_karpenter_sh_capacity_type": "spot",
            "label_node_kubernetes_io_instance_type": "p5.48xlarge",
            "label_topology_kubernetes_io_region": "us-east-1"
        })
    } else {
        return two_gpus(query);
    };
    vec![(labels, Box::new(|_| Some(1.0)))]
}

/// The same of a node of which labels say more than the model: how it is bought, and that it is a
/// machine of one's own. The commands that know the node take its price, and not its model's.
#[test]
fn a_spot_node_and_own_hardware_cost_the_same_in_every_command() {
    let folder = Folder::new();
    folder.write("dump.json", &dump(&spot_node_and_pods()));
    let server = FakePrometheus::start(spot_series);
    let of_nodes = "--from dump.json --at 2026-11-20T12:00:00Z";
    let prices = |flags: &str| -> Vec<i64> {
        let json = |command: &str| folder.json(&format!("{command} {flags}"));
        let of_node = |command: &str| {
            let found = json(&format!("{command} {of_nodes}"));
            let price = &found["prices"][0]["usd_micros_per_gpu_hour"];
            price.as_i64().unwrap_or_else(|| panic!("{command}: {found:#}"))
        };
        let usage = json(&format!("usage gpus --prometheus {} --period 2h --step 5m", server.url));
        let usd = usage["prices"][0]["usd_per_gpu_hour"].as_f64().expect("a price");
        // Two GPUs serve two pods each, which take six of seven slices.
        let plan = json(&format!("partition plan {of_nodes}"));
        assert_eq!(plan["accepted"], json!({"3g.40gb": 4}), "{plan:#}");
        let month = plan["usd_per_month"].as_f64().expect("a price");
        let of_plan = month * 7.0 / 12.0 / HOURS as f64;
        let mut found =
            ["cost --by node", "audit --fail-on never", "cost questions"].map(of_node).to_vec();
        found.extend([usd, of_plan].map(|usd| (usd * 1e6).round() as i64));
        found
    };
    let spot = prices("");
    assert_eq!(spot, [spot[0]; 5]);
    assert!(spot[0] < 6_880_000, "{spot:?} is no price of spot");
    assert_eq!(prices("--gpu-price H100=4"), [4_000_000; 5]);
    let hardware = "[[cost.hardware]]\ngpu_model = \"H100\"\ngpus = 8\ncapex_usd = \"280000\"\nyears = 4\n\
                    watts = 10200\npue = \"1.4\"\nusd_per_kwh = \"0.12\"\n\
                    nodes = [\"node.kubernetes.io/instance-type=p5.48xlarge\"]\n";
    folder.write("dovetail.toml", hardware);
    assert_eq!(prices(""), [1_213_058; 5]);
    // Who names a provider or a purchase option asks for that price.
    let plan = |flags: &str| {
        let plan = folder.json(&format!("partition plan {of_nodes} {flags}"));
        plan["usd_per_month"].as_f64().expect("a price") * 7.0 / 12.0 / HOURS as f64
    };
    assert!((plan("--provider aws") - 6.88).abs() < 1e-6);
}

/// The amounts of `audit` are those of the method `all-in`, whatever a bill is split by.
#[test]
fn an_audit_names_the_settings_of_a_bill_that_it_does_not_apply() {
    let folder = folder();
    let notes = |settings: &str| {
        folder.write("dovetail.toml", &format!("[cost]\n{settings}"));
        let call = "audit --fail-on never --from dump.json --at 2026-11-20T12:00:00Z";
        folder.json(call)["notes"].to_string()
    };
    let all_in = notes("method = \"all-in\"\n");
    assert!(!all_in.contains("no effect on `dovetail audit`"), "{all_in}");
    let weights = notes("method = \"aws-split\"\n");
    assert!(weights.contains("cost.method has no effect on `dovetail audit`"), "{weights}");
    assert!(weights.contains("to its GPUs (method all-in) and no price"), "{weights}");
    let parts = notes("usd_per_vcpu_hour = \"0.04\"\nusd_per_gib_hour = \"0.005\"\n");
    let both = "cost.usd_per_vcpu_hour, cost.usd_per_gib_hour have no effect";
    assert!(parts.contains(both), "{parts}");
}
