//! How many pods can share each GPU by what a real Prometheus has of them.

use std::time::{SystemTime, UNIX_EPOCH};

use dovetail_testkit::PrometheusServer;
use serde_json::json;

use crate::program::Folder;

const MINUTE_S: u64 = 60;
const DAY_S: u64 = 86_400;

/// A pod with GPUs of a node, which uses so much memory and time of each.
struct Pod {
    name: &'static str,
    namespace: &'static str,
    model: &'static str,
    node: &'static str,
    gpus: usize,
    memory_mib: u64,
    activity: f64,
    days: u64,
}

const A100: &str = "NVIDIA A100-SXM4-80GB";

const fn pod(name: &'static str, memory_mib: u64, activity: f64, days: u64) -> Pod {
    Pod { name, namespace: "team", model: A100, node: name, gpus: 1, memory_mib, activity, days }
}

const PODS: [Pod; 8] = [
    pod("a", 20_000, 0.1, 3),
    pod("b", 15_000, 0.2, 2),
    pod("c", 40_000, 0.05, 3),
    pod("new", 70_000, 0.9, 0),
    Pod { gpus: 2, ..pod("two", 70_000, 0.9, 3) },
    Pod { model: "Tesla T4", ..pod("t4", 10_000, 0.9, 3) },
    // They share a GPU already: its figures are of both.
    Pod { node: "shared", ..pod("x", 70_000, 0.9, 3) },
    Pod { node: "shared", namespace: "other", ..pod("y", 70_000, 0.9, 3) },
];

/// What a pod has of a metric; the second number is 1 but for a short peak.
type Value = fn(&Pod, f64) -> f64;

/// Samples every two minutes until now, and a peak that is too short for the 99th percentile.
fn history(now_s: u64) -> String {
    let metrics: [(&str, Value); 3] = [
        ("DCGM_FI_DEV_FB_USED", |pod, peak| pod.memory_mib as f64 * peak),
        ("DCGM_FI_DEV_FB_FREE", |pod, peak| 81_920.0 - pod.memory_mib as f64 * peak),
        ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", |pod, _| pod.activity),
    ];
    let mut lines = String::new();
    for (metric, value) in metrics {
        lines += &format!("# TYPE {metric} gauge\n");
        for pod in &PODS {
            let from_s = now_s - pod.days * DAY_S - 3 * 3_600;
            for gpu in 0..pod.gpus {
                let steps = (now_s - from_s) / (2 * MINUTE_S);
                for step in 0..=steps {
                    let at_s = now_s - (steps - step) * 2 * MINUTE_S;
                    let peak = if step == 5 { 1.1 } else { 1.0 };
                    lines += &format!(
                        "{metric}{{Hostname=\"{0}\",gpu=\"{gpu}\",UUID=\"GPU-{0}-{gpu}\",\
                         modelName=\"{1}\",namespace=\"{2}\",pod=\"{3}\",container=\"c\"}} {4} {at_s}\n",
                        pod.node,
                        pod.model,
                        pod.namespace,
                        pod.name,
                        value(pod, peak)
                    );
                }
            }
        }
    }
    lines + "# EOF\n"
}

#[test]
fn replicas_follow_from_what_pods_use() {
    if !PrometheusServer::is_there() {
        return;
    }
    let folder = Folder::new();
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_secs();
    folder.write("history.txt", &history(now_s));
    let data = folder.path(".");
    PrometheusServer::write_blocks(&data, &folder.path("history.txt"));
    let server = PrometheusServer::start(&data, "scrape_configs: []\n");
    let call = format!("partition size --gpu A100-80GB --prometheus {}", server.url);
    let found = folder.json(&format!("{call} --gpu-price A100-80GB=1"));
    // 40,000 and 20,000 MiB are 73.2% of 81,920; with 15,000 more, 91.6%.
    assert_eq!(
        (&found["replicas"], &found["limited_by"]),
        (&json!(2), &json!("memory")),
        "{found}"
    );
    assert_eq!((&found["pods"], &found["gpus"]), (&json!(3), &json!(2)), "{found}");
    let percent = found["memory_percent"].as_f64().expect("a number");
    assert!((73.2..74.0).contains(&percent), "{found}");
    let activity = found["activity_percent"].as_f64().expect("a number");
    assert!((30.0..30.1).contains(&activity), "{found}");
    assert_eq!((&found["usd_per_month"], &found["lower_bound"]), (&json!(1440.0), &json!(2)));
    let left_out = json!({"measured for less than a day": 1, "on GPUs of other models": 1,
        "on GPUs that other pods use, too": 2, "with several GPUs": 1});
    assert_eq!(found["left_out"], left_out, "{found}");
    let done = folder.call(&call);
    assert_eq!(done.code, Some(0), "{done:?}");
    for line in [
        "2 per GPU: 2 of these pods can need 73.",
        "one more can exceed the limit of memory",
        "measured for 2.1 d to 3.1 d; estimate",
        "1 with several GPUs",
    ] {
        assert!(done.out.contains(line), "{line}: {}", done.out);
    }
    for (flags, code, told) in [
        ("--gpu A100", 2, "--gpu A100: add its memory size, such as A100-40GB or A100-80GB"),
        ("--gpu A100-80GB --window 1d", 2, "--window: use at least 2d"),
        ("--gpu L4", 1, "on GPUs of other models; models: A100-80GB, T4)"),
    ] {
        let done = folder.call(&format!("partition size {flags} --prometheus {}", server.url));
        assert_eq!(done.code, Some(code), "{done:?}");
        assert!(done.err.contains(told), "{told}: {}", done.err);
    }
    // Also where the other pod is in a namespace that is not asked about.
    let team = folder.json(&format!("{call} --namespace team"));
    let shared = &team["left_out"]["on GPUs that other pods use, too"];
    assert_eq!((&team["replicas"], shared), (&json!(2), &json!(1)), "{team}");
    let none = folder.call(&format!("{call} --namespace other"));
    assert_eq!(none.code, Some(1), "{none:?}");
    let told = "has no data for any pod that used one whole A100-80GB for a day or more (it has: 1 \
                on GPUs that other pods use, too; models: A100-80GB)";
    assert!(none.err.contains(told), "{none:?}");
}
