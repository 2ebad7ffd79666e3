//! What goes wrong on demand goes wrong as it does in life.

use dovetail_testkit::FakeApi;
use dovetail_testkit::fake_api::{ApiFault, FaultRule, On, Verb};
use serde_json::{Value, json};

use crate::session::{Events, Session};

const PODS: &str = "/api/v1/namespaces/default/pods";
const JSON: &str = "application/json";

fn start() -> (FakeApi, Session) {
    let api = FakeApi::start().expect("a free port");
    let session = Session::plain(api.url());
    (api, session)
}

fn add(api: &FakeApi, name: &str) {
    let pod = json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c"}]}});
    api.create("pods", "default", &pod).expect("a new pod");
}

fn strike(api: &FakeApi, on: On, fault: ApiFault) {
    api.set_faults(1, vec![FaultRule::first(on, 1, fault)]);
}

async fn bind(session: &Session, name: &str) -> Result<(u16, Value), String> {
    let body = json!({"metadata": {"name": name}, "target": {"name": "n1"}}).to_string();
    session.send("POST", &format!("{PODS}/{name}/binding"), JSON, &body).await
}

async fn watch(session: &Session, options: &str) -> Events {
    let opened = session.watch(&format!("{PODS}?watch=1&timeoutSeconds=60&{options}")).await;
    opened.unwrap_or_else(|refused| panic!("{refused:?}"))
}

#[tokio::test]
async fn refusals_come_with_their_codes_and_without_effect() {
    let (api, session) = start();
    add(&api, "p");
    let cases = [
        (ApiFault::Conflict, 409, "Conflict"),
        (ApiFault::Gone, 410, "Expired"),
        (ApiFault::TooManyRequests { retry_after_s: 3 }, 429, "TooManyRequests"),
        (ApiFault::ServerError { code: 500 }, 500, "InternalError"),
        (ApiFault::ServerError { code: 503 }, 503, "ServiceUnavailable"),
    ];
    for (fault, code, reason) in cases {
        strike(&api, On::binds(), fault);
        let (answered, body) = bind(&session, "p").await.expect("an answer");
        assert_eq!((answered, body["reason"].as_str()), (code, Some(reason)), "{fault:?}");
    }
    assert!(api.bound().is_empty());
    assert_eq!(api.faults().len(), cases.len());
    assert_eq!(bind(&session, "p").await.expect("an answer").0, 201);
}

#[tokio::test]
async fn a_lost_reply_hides_an_effect_and_a_cut_prevents_it() {
    let (api, session) = start();
    add(&api, "lost");
    add(&api, "cut");
    strike(&api, On::binds(), ApiFault::ReplyLost);
    bind(&session, "lost").await.expect_err("no answer");
    strike(&api, On::binds(), ApiFault::Cut);
    bind(&session, "cut").await.expect_err("no answer");
    let bound: Vec<String> = api.bound().into_iter().map(|bound| bound.pod).collect();
    assert_eq!(bound, ["lost"]);
}

#[tokio::test]
async fn held_requests_wait_before_or_after_their_effect() {
    let (api, session) = start();
    for (name, fault, done) in [("a", ApiFault::Hold, 0), ("b", ApiFault::HoldReply, 2)] {
        add(&api, name);
        strike(&api, On::binds(), fault);
        let (answer, ()) = tokio::join!(bind(&session, name), async {
            api.held(1).await;
            assert_eq!(api.bound().len(), done);
            api.release();
        });
        assert_eq!(answer.expect("an answer").0, 201);
    }
}

#[tokio::test]
async fn a_cut_watch_breaks_behind_the_events_it_sent() {
    let (api, session) = start();
    strike(&api, On::new(&[Verb::Watch], "pods"), ApiFault::CutWatch { after_events: 2 });
    let mut events = watch(&session, "").await;
    ["a", "b", "c"].iter().for_each(|name| add(&api, name));
    assert_eq!(events.names(2).await, ["ADDED a", "ADDED b"]);
    assert!(matches!(events.next().await, Some(Err(_))));
}

#[tokio::test]
async fn an_expired_watch_says_410_and_ends() {
    let (api, session) = start();
    let on = On::new(&[Verb::Watch], "pods");
    strike(&api, on, ApiFault::ExpireWatch { after_events: 1 });
    let mut events = watch(&session, "").await;
    ["a", "b"].iter().for_each(|name| add(&api, name));
    assert_eq!(events.names(1).await, ["ADDED a"]);
    let last = events.next().await.expect("an event").expect("an unbroken stream");
    assert_eq!((&last["type"], &last["object"]["code"]), (&json!("ERROR"), &json!(410)));
    assert!(events.next().await.is_none());
}

#[tokio::test]
async fn a_silent_watch_says_nothing_while_others_hear_everything() {
    let (api, session) = start();
    let on = On::new(&[Verb::Watch], "pods");
    strike(&api, on, ApiFault::SilentWatch { after_events: 1 });
    let mut silent = watch(&session, "").await;
    let mut sound = watch(&session, "").await;
    ["a", "b"].iter().for_each(|name| add(&api, name));
    assert_eq!(silent.names(1).await, ["ADDED a"]);
    assert_eq!(sound.names(2).await, ["ADDED a", "ADDED b"]);
    tokio::select! {
        biased;
        _ = silent.next() => panic!("a silent watch spoke"),
        names = async {
            add(&api, "c");
            sound.names(1).await
        } => assert_eq!(names, ["ADDED c"]),
    }
}

#[tokio::test]
async fn events_come_twice_or_in_another_order_but_in_order_per_object() {
    let (api, session) = start();
    let on = On::new(&[Verb::Watch], "pods");
    strike(&api, on.clone(), ApiFault::DuplicateEvents { per_million: 1_000_000 });
    let mut events = watch(&session, "").await;
    add(&api, "a");
    assert_eq!(events.names(2).await, ["ADDED a", "ADDED a"]);

    strike(&api, on, ApiFault::ReorderEvents { window_ms: 50 });
    let version = api.revision();
    let mut events = watch(&session, &format!("resourceVersion={version}")).await;
    let names: Vec<String> = (0..20).map(|number| format!("r{number}")).collect();
    for name in &names {
        add(&api, name);
        api.merge("pods", "default", name, "", &json!({"metadata": {"labels": {"l": "1"}}}))
            .expect("a label");
    }
    let told = events.names(40).await;
    let place = |event: String| told.iter().position(|one| *one == event).expect("every event");
    let in_order =
        |name: &String| place(format!("ADDED {name}")) < place(format!("MODIFIED {name}"));
    assert!(names.iter().all(in_order));
    let sorted = told.iter().filter(|one| one.starts_with("ADDED")).map(|one| &one[6..]).ne(&names);
    assert!(sorted, "40 events in their old order");
}

#[tokio::test]
async fn compaction_ends_old_lists_and_watches() {
    let (api, session) = start();
    ["a", "b", "c"].iter().for_each(|name| add(&api, name));
    let old = api.revision();
    let (_, page) =
        session.send("GET", &format!("{PODS}?limit=1"), JSON, "").await.expect("a page");
    add(&api, "d");
    let next =
        format!("{PODS}?limit=1&continue={}", page["metadata"]["continue"].as_str().expect("more"));
    let (code, second) = session.send("GET", &next, JSON, "").await.expect("a page");
    assert_eq!((code, &second["items"][0]["metadata"]["name"]), (200, &json!("b")));
    assert_eq!(second["metadata"]["remainingItemCount"], 1, "`d` came later");
    api.compact();
    let (code, expired) = session.send("GET", &next, JSON, "").await.expect("an answer");
    assert_eq!((code, &expired["reason"]), (410, &json!("Expired")));
    let again =
        format!("{PODS}?continue={}", expired["metadata"]["continue"].as_str().expect("a token"));
    let (_, rest) = session.send("GET", &again, JSON, "").await.expect("the rest");
    assert_eq!(rest["items"].as_array().map(Vec::len), Some(3), "b, c and the new d");
    let mut events = watch(&session, &format!("resourceVersion={old}")).await;
    let told = events.next().await.expect("an event").expect("an unbroken stream");
    assert_eq!(told["object"]["code"], 410);
}

#[tokio::test]
async fn bookmarks_come_when_ordered_and_stopping_ends_every_watch() {
    let (api, session) = start();
    add(&api, "a");
    let mut events = watch(&session, "allowWatchBookmarks=true").await;
    assert_eq!(events.names(1).await, ["ADDED a"]);
    api.send_bookmarks();
    let told = events.next().await.expect("an event").expect("an unbroken stream");
    assert_eq!(told["type"], "BOOKMARK");
    assert_eq!(told["object"]["metadata"]["resourceVersion"], json!(api.revision().to_string()));
    drop(api);
    assert!(!matches!(events.next().await, Some(Ok(_))));
}

#[tokio::test]
async fn an_older_server_refuses_streaming_lists_and_lacks_newer_groups() {
    let settings = dovetail_testkit::fake_api::Settings {
        minor: 33,
        streaming_lists: false,
        ..Default::default()
    };
    let api = FakeApi::start_with(settings).expect("a free port");
    let session = Session::plain(api.url());
    let path = format!("{PODS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan");
    let (code, refused) = session.watch(&path).await.err().expect("a refusal");
    assert_eq!((code, &refused["reason"]), (422, &json!("Invalid")));
    let (code, _) = session
        .send("GET", "/apis/resource.k8s.io/v1/resourceclaims", JSON, "")
        .await
        .expect("an answer");
    assert_eq!(code, 404);
    let (_, version) = session.send("GET", "/version", JSON, "").await.expect("an answer");
    assert_eq!(version["minor"], "33");
}
