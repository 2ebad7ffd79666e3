//! Services that may answer Prometheus' query API.

use dovetail_objects::labels;
use std::collections::BTreeMap;

use serde::Deserialize;

/// A service with the path below which it answers `/api/v1/query`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CandidateService {
    pub namespace: String,
    pub service: String,
    pub port: u16,
    /// Whether the port speaks TLS.
    pub tls: bool,
    /// What stands before `/api/v1/`; empty, or begins with `/`.
    pub prefix: String,
    /// What it seems to be.
    pub flavour: Flavour,
    /// Why it is asked, for people.
    pub reason: String,
}

/// What a service seems to be. Those that see several servers, and further back, come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Flavour {
    /// A Prometheus that the operator's custom resource describes.
    Operated,
    /// Thanos' query component.
    Thanos,
    Mimir,
    VictoriaMetrics,
    /// A Prometheus by its labels.
    Prometheus,
}

impl CandidateService {
    /// The path of the service in the API server.
    pub fn path(&self) -> String {
        let scheme = if self.tls { "https:" } else { "" };
        let Self { namespace, service, port, prefix, .. } = self;
        format!("/api/v1/namespaces/{namespace}/services/{scheme}{service}:{port}/proxy{prefix}")
    }

    /// As messages name it.
    pub fn name(&self) -> String {
        format!("service {}/{} (port {})", self.namespace, self.service, self.port)
    }
}

/// All services to ask, the likeliest first, each once.
pub(super) fn candidates(services: &[Service], operated: &[Prometheus]) -> Vec<CandidateService> {
    let mut found: Vec<CandidateService> =
        operated.iter().filter_map(Prometheus::candidate).collect();
    found.extend(services.iter().filter_map(Service::candidate));
    found.sort_by(|a, b| {
        let key =
            |one: &CandidateService| (one.flavour, one.namespace.clone(), one.service.clone());
        key(a).cmp(&key(b))
    });
    let mut seen = std::collections::BTreeSet::new();
    found.retain(|one| seen.insert((one.namespace.clone(), one.service.clone())));
    found
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Metadata {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) labels: Option<BTreeMap<String, String>>,
}

impl Metadata {
    /// Whether the names can stand in a path: the server allows no others, but an answer is only an
    /// answer.
    pub(super) fn is_sound(&self) -> bool {
        let is_name = |text: &str| {
            let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.';
            !text.is_empty() && !text.starts_with('.') && text.bytes().all(allowed)
        };
        is_name(&self.namespace) && is_name(&self.name)
    }
}

/// What is read of a Service.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Service {
    metadata: Metadata,
    spec: ServiceSpec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct ServiceSpec {
    #[serde(rename = "type")]
    kind: Option<String>,
    ports: Option<Vec<ServicePort>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct ServicePort {
    name: Option<String>,
    port: u16,
}

/// Labels that name an application, by which the charts of each name it.
const APPLICATION: [&str; 2] = [labels::APPLICATION, "app"];
/// Labels that name a part of it.
const COMPONENT: [&str; 2] = [labels::COMPONENT, "component"];
/// Ports that answer queries, in the order of preference; else the first port is taken.
const PORT_NAMES: [&str; 7] =
    ["web", "http-web", "http", "http-query", "http-metrics", "query", "https"];

/// An application, the parts of it that answer queries (none: all of it), what stands before their
/// paths.
struct WellKnown {
    application: &'static str,
    components: &'static [&'static str],
    flavour: Flavour,
    prefix: &'static str,
}

const fn known(
    application: &'static str,
    components: &'static [&'static str],
    flavour: Flavour,
    prefix: &'static str,
) -> WellKnown {
    WellKnown { application, components, flavour, prefix }
}

const WELL_KNOWN: [WellKnown; 14] = [
    known("thanos", &["query-frontend", "query"], Flavour::Thanos, ""),
    known("thanos-query-frontend", &[], Flavour::Thanos, ""),
    known("thanos-query", &[], Flavour::Thanos, ""),
    known("mimir", &["gateway", "nginx", "query-frontend"], Flavour::Mimir, "/prometheus"),
    known("vmselect", &[], Flavour::VictoriaMetrics, "/select/0/prometheus"),
    known(
        "victoria-metrics-cluster",
        &["vmselect"],
        Flavour::VictoriaMetrics,
        "/select/0/prometheus",
    ),
    known("vmsingle", &[], Flavour::VictoriaMetrics, ""),
    known("victoria-metrics-single", &[], Flavour::VictoriaMetrics, ""),
    known("victoria-metrics-single-server", &[], Flavour::VictoriaMetrics, ""),
    known("prometheus", &["server", "prometheus"], Flavour::Prometheus, ""),
    known("kube-prometheus-stack-prometheus", &[], Flavour::Prometheus, ""),
    known("prometheus-operator-prometheus", &[], Flavour::Prometheus, ""),
    known("prometheus-server", &[], Flavour::Prometheus, ""),
    known("prometheus-k8s", &[], Flavour::Prometheus, ""),
];

impl Service {
    fn candidate(&self) -> Option<CandidateService> {
        // A name elsewhere: the API server forwards to none.
        if self.spec.kind.as_deref() == Some("ExternalName") || !self.metadata.is_sound() {
            return None;
        }
        let (known, label) = self.well_known()?;
        let port = self.port()?;
        let is_tls = |name: &str| name.starts_with("https");
        Some(CandidateService {
            namespace: self.metadata.namespace.clone(),
            service: self.metadata.name.clone(),
            port: port.port,
            tls: port.name.as_deref().is_some_and(is_tls) || port.port == 443,
            prefix: known.prefix.to_owned(),
            flavour: known.flavour,
            reason: format!("label {label}={}", known.application),
        })
    }

    /// What it is by its labels, and the label that says so.
    fn well_known(&self) -> Option<(&'static WellKnown, &'static str)> {
        let labels = self.metadata.labels.as_ref()?;
        let component = COMPONENT.iter().find_map(|key| labels.get(*key)).map(String::as_str);
        APPLICATION.iter().find_map(|key| {
            let application = labels.get(*key)?;
            let known = WELL_KNOWN.iter().find(|known| known.application == application)?;
            // Without a component there is one part alone.
            let fits = |part: &str| known.components.is_empty() || known.components.contains(&part);
            component.is_none_or(fits).then_some((known, *key))
        })
    }

    fn port(&self) -> Option<&ServicePort> {
        let ports = self.spec.ports.as_deref()?;
        let named = |name: &&str| ports.iter().find(|port| port.name.as_deref() == Some(*name));
        PORT_NAMES.iter().find_map(named).or_else(|| ports.first())
    }
}

/// What is read of the operator's Prometheus object.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Prometheus {
    metadata: Metadata,
    spec: PrometheusSpec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PrometheusSpec {
    route_prefix: Option<String>,
    service_name: Option<String>,
    web: Option<Web>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Web {
    tls_config: Option<serde_json::Value>,
}

impl Prometheus {
    /// The service that the operator makes for all its servers of a namespace: port 9090, named
    /// `web`.
    fn candidate(&self) -> Option<CandidateService> {
        let prefix = self.spec.route_prefix.as_deref().unwrap_or("/").trim_end_matches('/');
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte);
        let is_path = prefix.is_empty() || prefix.starts_with('/');
        if !is_path || !prefix.bytes().all(allowed) || prefix.contains("..") {
            return None;
        }
        let service = self.spec.service_name.as_deref().unwrap_or("prometheus-operated");
        let at = Metadata { name: service.to_owned(), ..self.metadata.clone() };
        (at.is_sound() && self.metadata.is_sound()).then(|| CandidateService {
            namespace: at.namespace,
            service: at.name,
            port: 9090,
            tls: self.spec.web.as_ref().is_some_and(|web| web.tls_config.is_some()),
            prefix: prefix.to_owned(),
            flavour: Flavour::Operated,
            reason: format!("Prometheus object {}", self.metadata.name),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn service(name: &str, labels: Value, ports: Value) -> Service {
        let value = json!({"metadata": {"namespace": "m", "name": name, "labels": labels},
            "spec": {"ports": ports}});
        serde_json::from_value(value).unwrap()
    }

    fn paths(services: &[Service], operated: &[Prometheus]) -> Vec<String> {
        candidates(services, operated).iter().map(CandidateService::path).collect()
    }

    #[test]
    fn services_are_asked_by_what_charts_call_them_the_widest_first() {
        let web = json!([{"name": "other", "port": 1}, {"name": "http", "port": 80}]);
        let services = [
            service("prom", json!({"app": "prometheus", "component": "server"}), web.clone()),
            service("alerts", json!({"app": "prometheus", "component": "alertmanager"}), web),
            service(
                "gate",
                json!({"app.kubernetes.io/name": "mimir",
                "app.kubernetes.io/component": "gateway"}),
                json!([{"port": 8080}]),
            ),
            service(
                "ingest",
                json!({"app.kubernetes.io/name": "mimir",
                "app.kubernetes.io/component": "ingester"}),
                json!([{"port": 8080}]),
            ),
            service("select", json!({"app": "vmselect"}), json!([{"name": "http", "port": 8481}])),
            service(
                "query",
                json!({"app.kubernetes.io/name": "thanos-query"}),
                json!([{"name": "https", "port": 10_902}]),
            ),
            service("shop", json!({"app": "shop"}), json!([{"port": 80}])),
            service("deaf", json!({"app": "prometheus"}), json!([])),
        ];
        let under = "/api/v1/namespaces/m/services/";
        let expected = [
            "https:query:10902/proxy",
            "gate:8080/proxy/prometheus",
            "select:8481/proxy/select/0/prometheus",
            "prom:80/proxy",
        ];
        assert_eq!(paths(&services, &[]), expected.map(|path| format!("{under}{path}")));
    }

    #[test]
    fn the_operators_object_comes_first_with_its_prefix_and_never_leaves_the_service() {
        let object = |prefix: &str| -> Prometheus {
            let value = json!({"metadata": {"namespace": "m", "name": "k8s"},
                "spec": {"routePrefix": prefix, "web": {"tlsConfig": {}}}});
            serde_json::from_value(value).unwrap()
        };
        let labelled = service(
            "prometheus-operated",
            json!({"app": "prometheus"}),
            json!([{"name": "web", "port": 9090}]),
        );
        let path = "/api/v1/namespaces/m/services/https:prometheus-operated:9090/proxy/metrics";
        assert_eq!(paths(&[labelled], &[object("/metrics/")]), [path]);
        for prefix in ["/../../../secrets", "metrics", "/a?b", "/a#", "/%2e%2e"] {
            assert_eq!(paths(&[], &[object(prefix)]), [""; 0], "{prefix}");
        }
        let strange = Service {
            metadata: Metadata { name: "a/../b".to_owned(), ..Metadata::default() },
            ..service("x", json!({"app": "prometheus"}), json!([{"port": 80}]))
        };
        assert_eq!(paths(&[strange], &[]), [""; 0]);
    }
}
