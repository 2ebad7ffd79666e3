//! A cluster's own Prometheus: found by what services are called, believed after an answer, asked
//! through the API server.

use dovetail_testkit::FakeApi;
use dovetail_testkit::fake_api::ResourceKind;
use serde_json::{Value, json};

use crate::cost_period::series;
use crate::fake_prometheus::{FakePrometheus, Made, Query};
use crate::live::connected;

/// An API server with the service `prometheus-operated` of an operator's object, and others that
/// are called like it.
fn cluster() -> FakeApi {
    let api = FakeApi::start().expect("a free port");
    api.register(ResourceKind::custom("monitoring.coreos.com", "v1", "Prometheus", "prometheuses"));
    api.register(ResourceKind::custom("", "v1", "Service", "services"));
    for name in ["monitoring", "shop"] {
        api.create("namespaces", "", &json!({"metadata": {"name": name}})).expect("a namespace");
    }
    let shop = json!({"metadata": {"name": "prometheus", "labels": {"app": "prometheus"}},
        "spec": {"ports": [{"name": "http", "port": 80}]}});
    api.create("services", "shop", &shop).expect("a new service");
    let thanos = json!({"metadata": {"name": "thanos", "labels":
        {"app.kubernetes.io/name": "thanos", "app.kubernetes.io/component": "query"}},
        "spec": {"ports": [{"name": "http", "port": 9090}]}});
    api.create("services", "monitoring", &thanos).expect("a new service");
    let object = json!({"metadata": {"name": "k8s"}, "spec": {"routePrefix": "/prom"}});
    api.create("prometheuses", "monitoring", &object).expect("a new object");
    api
}

/// Answers as `series` does, and to the question which series there are with these.
fn server(names: &'static [&'static str]) -> FakePrometheus {
    FakePrometheus::start(move |query: &Query| -> Vec<Made> {
        if !query.text.starts_with("count by (__name__)") {
            return series(query);
        }
        let one = |name: &&str| -> Made { (json!({"__name__": name}), Box::new(|_| Some(1.0))) };
        names.iter().map(one).collect()
    })
}

fn serve(api: &FakeApi, namespace: &str, service: &str, server: &FakePrometheus) {
    let address = server.url.trim_start_matches("http://").parse().expect("an address");
    api.serve_service(namespace, service, address);
}

const COST: &str = "cost --kubeconfig kubeconfig --period 2h --gpu-price H100=6 --by team,cause";

fn notes(found: &Value) -> String {
    found["notes"].to_string()
}

#[test]
fn the_one_with_series_of_gpus_is_asked() {
    let api = cluster();
    let folder = connected(&api);
    // The operator's has objects alone; the shop's own Prometheus is nobody's business and is not
    // reached.
    let objects = server(&["kube_pod_info"]);
    serve(&api, "monitoring", "prometheus-operated:9090", &objects);
    let gpus = server(&["DCGM_FI_PROF_GR_ENGINE_ACTIVE", "kube_pod_info"]);
    serve(&api, "monitoring", "thanos:9090", &gpus);
    let found = folder.json(COST);
    assert_eq!(found["basis"], "sampled", "{found:#}");
    assert_eq!(found["headline"]["cost_usd_micros"], 24_000_000);
    let told = notes(&found);
    assert!(
        told.contains(
            "service monitoring/thanos (port 9090), found by label app.kubernetes.io/name=thanos"
        ),
        "{told}"
    );
    let alone = folder.json(&format!("{COST} --prometheus none"));
    assert_ne!(alone["basis"], "sampled", "{alone:#}");
}

#[test]
fn where_nobody_has_them_the_run_goes_on_and_says_who_was_asked() {
    let api = cluster();
    let folder = connected(&api);
    let objects = server(&["kube_pod_info"]);
    serve(&api, "monitoring", "prometheus-operated:9090", &objects);
    let told = notes(&folder.json(COST));
    for part in [
        "no Prometheus, Thanos, Mimir or VictoriaMetrics with GPU metrics was found",
        "monitoring/prometheus-operated (port 9090): it has kube-state-metrics series but no",
        "monitoring/thanos (port 9090) through the API server returned status 503 (attempts: 1): the server is",
        "service shop/prometheus (port 80) through the API server returned",
        "name a server with --prometheus URL",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
}
