//! Watches against a server that answers from a script.

use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use dovetail_apiserver::watch::{Notice, Served, Settings, served, watch};
use dovetail_cluster::world::Change;
use dovetail_objects::{Kind, Object};
use futures_util::stream::{self, StreamExt};
use http_body_util::BodyExt;
use http_body_util::StreamBody;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Frame;
use hyper::{Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

/// An answer: status, text, and whether the connection stays open behind it.
struct Answer {
    code: u16,
    text: String,
    open: bool,
}

impl Answer {
    fn json(code: u16, value: &Value) -> Self {
        Self { code, text: value.to_string(), open: false }
    }

    /// As servers write them: the type goes before the object.
    fn events(events: &[Value]) -> Self {
        let line = |event: &Value| {
            format!("{{\"type\":{},\"object\":{}}}\n", event["type"], event["object"])
        };
        let text = events.iter().map(line).collect();
        Self { code: 200, text, open: true }
    }

    fn body(self) -> Response<UnsyncBoxBody<Bytes, Infallible>> {
        let text = stream::iter([Ok(Frame::data(Bytes::from(self.text)))]);
        let rest = match self.open {
            true => stream::pending().boxed(),
            false => stream::empty().boxed(),
        };
        let body = BodyExt::boxed_unsync(StreamBody::new(text.chain(rest)));
        Response::builder().status(self.code).body(body).unwrap()
    }
}

/// A client of a server that answers each request by a function; the paths asked for are noted.
fn client(
    answer: impl Fn(&str) -> Answer + Send + Sync + 'static,
) -> (Client, Arc<Mutex<Vec<String>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&asked);
    let service = tower::service_fn(move |request: Request<Body>| {
        let path = request.uri().to_string();
        let reply = answer(&path).body();
        noted.lock().unwrap().push(path);
        async move { Ok::<_, Infallible>(reply) }
    });
    (Client::new(service, "default"), asked)
}

fn node(name: &str, version: u64) -> Value {
    json!({"apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "uid": name, "resourceVersion": version.to_string()}})
}

fn event(kind: &str, object: Value) -> Value {
    json!({"type": kind, "object": object})
}

fn end_of_list(version: u64) -> Value {
    event(
        "BOOKMARK",
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {
        "resourceVersion": version.to_string(),
        "annotations": {"k8s.io/initial-events-end": "true"}}}),
    )
}

fn refused(code: u16) -> Answer {
    Answer::json(
        code,
        &json!({"kind": "Status", "apiVersion": "v1", "status": "Failure",
        "message": "sendInitialEvents is forbidden for watch", "reason": "Invalid", "code": code}),
    )
}

/// The first notices about nodes, in brief; other kinds are absent.
async fn first(client: &Client, count: usize) -> Vec<String> {
    let kinds = Served::from([(Kind::Node, "v1")]);
    let never = Settings { discovery_s: u32::MAX, ..Settings::default() };
    let notices = watch(client, &kinds, never);
    let of_nodes = notices.filter_map(async |notice| match notice {
        Notice::Change(Change::Listing(Kind::Node), _) => Some("listing".to_owned()),
        Notice::Change(Change::Listed(Kind::Node), _) => Some("listed".to_owned()),
        Notice::Change(Change::Applied(Object::Node(node)), _) => {
            Some(format!("+{}", node.meta.name))
        }
        Notice::Change(Change::Applied(Object::Strange(kind, strange)), _) => {
            Some(format!("?{} {}: {}", kind.name(), strange.meta.name, strange.field))
        }
        Notice::Change(Change::Deleted(Kind::Node, meta), _) => Some(format!("-{}", meta.name)),
        Notice::Interrupted { kind, .. } => Some(format!("interrupted {}", kind.name())),
        _ => None,
    });
    of_nodes.take(count).collect().await
}

#[tokio::test(start_paused = true)]
async fn lists_stream_and_one_strange_object_stops_nothing() {
    let (client, asked) = client(|path| {
        assert!(path.contains("/api/v1/nodes?"), "{path}");
        let mut strange = node("odd", 3);
        strange["spec"] = json!({"unschedulable": "perhaps"});
        Answer::events(&[
            event("ADDED", node("a", 1)),
            event("ADDED", strange),
            event("ADDED", node("b", 2)),
            end_of_list(5),
            event("MODIFIED", node("a", 6)),
            event("DELETED", node("b", 7)),
        ])
    });
    let seen = first(&client, 7).await;
    let expected = ["listing", "+a", "?Node odd: spec.unschedulable", "+b", "listed", "+a", "-b"];
    assert_eq!(seen, expected);
    let asked = asked.lock().unwrap();
    assert_eq!(asked.len(), 1, "{asked:?}");
    for parameter in ["sendInitialEvents=true", "allowWatchBookmarks=true", "timeoutSeconds=200"] {
        assert!(asked[0].contains(parameter), "{asked:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_cannot_stream_lists_is_asked_for_pages() {
    let (client, asked) = client(|path| {
        let page = |items: Vec<Value>, more: &str| {
            Answer::json(
                200,
                &json!({"apiVersion": "v1", "kind": "NodeList", "items": items,
                "metadata": {"resourceVersion": "9", "continue": more}}),
            )
        };
        if path.contains("sendInitialEvents") {
            refused(422)
        } else if path.contains("continue=next") {
            page(vec![node("b", 2)], "")
        } else if path.contains("watch=true") {
            Answer::events(&[event("ADDED", node("c", 10))])
        } else {
            page(vec![node("a", 1)], "next")
        }
    });
    assert_eq!(first(&client, 5).await, ["listing", "+a", "+b", "listed", "+c"]);
    let asked = asked.lock().unwrap();
    assert!(asked.iter().any(|path| path.contains("limit=500")), "{asked:?}");
    assert!(asked.last().unwrap().contains("resourceVersion=9"), "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_too_old_begins_with_a_new_list_after_a_pause() {
    let answers = Mutex::new(0);
    let (client, _) = client(move |_| {
        let mut answers = answers.lock().unwrap();
        *answers += 1;
        match *answers {
            1 => Answer::events(&[
                event("ADDED", node("a", 1)),
                end_of_list(1),
                event(
                    "ERROR",
                    json!({"kind": "Status", "code": 410, "reason": "Expired",
                    "message": "too old resource version", "status": "Failure"}),
                ),
            ]),
            2 => refused(500),
            _ => Answer::events(&[event("ADDED", node("b", 8)), end_of_list(8)]),
        }
    });
    let seen = first(&client, 8).await;
    let interrupted = "interrupted Node";
    let expected = ["listing", "+a", "listed", interrupted, interrupted, "listing", "+b", "listed"];
    assert_eq!(seen, expected);
}

#[tokio::test(start_paused = true)]
async fn kinds_that_a_server_lacks_are_listed_and_empty() {
    let list = |names: &[&str]| {
        let resource = |name: &&str| {
            json!({"name": name, "singularName": "", "namespaced": false,
            "kind": "", "verbs": ["get", "list", "watch"]})
        };
        let resources: Vec<Value> = names.iter().map(resource).collect();
        json!({"kind": "APIResourceList", "groupVersion": "v1", "resources": resources})
    };
    let core = list(&["pods", "pods/status", "nodes", "namespaces"]);
    let storage = list(&["storageclasses"]);
    let (client, _) = client(move |path| match path {
        path if path.ends_with("/api/v1") => Answer::json(200, &core),
        path if path.ends_with("/apis/storage.k8s.io/v1") => Answer::json(200, &storage),
        path if path.contains("/apis/") => refused(404),
        path => panic!("{path}"),
    });
    let found = served(&client).await.unwrap();
    let kinds = [Kind::Namespace, Kind::Node, Kind::Pod, Kind::StorageClass];
    assert_eq!(found, kinds.map(|kind| (kind, "v1")).into());
    let nothing = watch(&client, &Served::new(), Settings::default());
    let notices: Vec<Notice> = nothing.take(2 * Kind::ALL.len()).collect().await;
    let told = notices.iter().filter(|n| matches!(n, Notice::Change(Change::Absent(_), _))).count();
    let absent = notices.iter().filter(|n| matches!(n, Notice::Absent { .. })).count();
    assert_eq!((told, absent), (Kind::ALL.len(), Kind::ALL.len()));
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_a_server_gets_later_is_watched_from_then_on() {
    let looks = AtomicUsize::new(0);
    let (client, asked) = client(move |path| match path {
        // The first look finds nothing, the second fails.
        path if path.ends_with("/api/v1") => match looks.fetch_add(1, Ordering::Relaxed) {
            0 => refused(404),
            1 => refused(500),
            _ => Answer::json(
                200,
                &json!({"kind": "APIResourceList", "groupVersion": "v1", "resources": [
                    {"name": "nodes", "singularName": "", "namespaced": false, "kind": "Node",
                    "verbs": ["list", "watch"]}]}),
            ),
        },
        path if path.contains("/api/v1/nodes?") => {
            Answer::events(&[event("ADDED", node("a", 1)), end_of_list(1)])
        }
        _ => refused(404),
    });
    let mut notices = watch(&client, &Served::new(), Settings::default());
    let mut seen = Vec::new();
    while !matches!(seen.last(), Some(Notice::Change(Change::Listed(Kind::Node), _))) {
        seen.extend(notices.next().await);
    }
    let about = |notice: &&Notice| matches!(notice, Notice::Change(Change::Applied(_), _));
    assert_eq!(seen.iter().filter(about).count(), 1, "{seen:?}");
    let looked = asked.lock().unwrap().iter().filter(|path| path.ends_with("/api/v1")).count();
    assert_eq!(looked, 3);
}

/// Somebody deletes the definition of queues, and later makes it again.
#[tokio::test(start_paused = true)]
async fn a_kind_that_a_server_loses_is_empty_until_it_is_back() {
    let queue = |name: &str| {
        json!({"apiVersion": "dovetail.dev/v1alpha1", "kind": "Queue",
            "metadata": {"name": name, "uid": name, "resourceVersion": "1"}})
    };
    let lists = AtomicUsize::new(0);
    let (client, _) = client(move |path| match path {
        path if !path.contains("/queues?") => refused(404),
        _ => match lists.fetch_add(1, Ordering::Relaxed) {
            0 => {
                let events = [event("ADDED", queue("a")), end_of_list(1)];
                Answer { open: false, ..Answer::events(&events) }
            }
            1..4 => refused(404),
            _ => Answer::events(&[event("ADDED", queue("b")), end_of_list(9)]),
        },
    });
    let never = Settings { discovery_s: u32::MAX, ..Settings::default() };
    let notices = watch(&client, &Served::from([(Kind::Queue, Kind::Queue.version())]), never);
    let of_queues = notices.filter_map(async |notice| match notice {
        Notice::Change(Change::Listed(Kind::Queue), _) => Some("listed".to_owned()),
        Notice::Change(Change::Absent(Kind::Queue), _) => Some("absent".to_owned()),
        Notice::Change(Change::Applied(object), _) => Some(format!("+{}", object.meta().name)),
        Notice::Interrupted { kind, .. } => Some(format!("interrupted {}", kind.name())),
        _ => None,
    });
    let seen: Vec<String> = of_queues.take(5).collect().await;
    assert_eq!(seen, ["+a", "listed", "absent", "+b", "listed"]);
}

/// An older server has rules that taint devices in an older version, and gets the new one.
#[tokio::test(start_paused = true)]
async fn a_kind_is_watched_in_the_version_that_the_server_has() {
    let rule = |name: &str| {
        json!({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceTaintRule",
            "metadata": {"name": name, "uid": name, "resourceVersion": "1"}})
    };
    let resources = json!({"kind": "APIResourceList", "groupVersion": "", "resources": [
        {"name": "devicetaintrules", "singularName": "", "namespaced": false,
            "kind": "DeviceTaintRule", "verbs": ["list", "watch"]}]});
    let lists = Arc::new(AtomicUsize::new(0));
    let upgraded = Arc::clone(&lists);
    let (client, _) = client(move |path| {
        let is_upgraded = upgraded.load(Ordering::Relaxed) > 0;
        match path {
            path if path.ends_with("resource.k8s.io/v1") && is_upgraded => {
                Answer::json(200, &resources)
            }
            path if path.ends_with("resource.k8s.io/v1beta2") && !is_upgraded => {
                Answer::json(200, &resources)
            }
            path if path.contains("/v1beta2/devicetaintrules?") && !is_upgraded => {
                lists.fetch_add(1, Ordering::Relaxed);
                let events = [event("ADDED", rule("a")), end_of_list(1)];
                Answer { open: false, ..Answer::events(&events) }
            }
            path if path.contains("/v1/devicetaintrules?") && is_upgraded => {
                Answer::events(&[event("ADDED", rule("b")), end_of_list(9)])
            }
            _ => refused(404),
        }
    });
    let kinds = served(&client).await.expect("the server's kinds");
    assert_eq!(kinds, Served::from([(Kind::DeviceTaintRule, "v1beta2")]));
    let never = Settings { discovery_s: u32::MAX, ..Settings::default() };
    let of_rules = watch(&client, &kinds, never).filter_map(async |notice| match notice {
        Notice::Change(Change::Applied(object), _) => Some(format!("+{}", object.meta().name)),
        Notice::Change(Change::Absent(Kind::DeviceTaintRule), _) => Some("absent".to_owned()),
        _ => None,
    });
    let seen: Vec<String> = of_rules.take(2).collect().await;
    assert_eq!(seen, ["+a", "+b"]);
}
