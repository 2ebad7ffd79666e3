//! Events of pods that are bound stand behind claims that are being written, as behind binds.

use bytes::Bytes;
use dovetail_control::Control;
use dovetail_control::control::{Credits, Input, Settings};
use dovetail_control::request::{ApiRequest, ApiResponse, Now, RequestClass};
use dovetail_objects::Kind;
use serde_json::{Value, json};

use crate::device_claims::{merge, slice, with_claim};
use crate::gangs::{node, pod};
use crate::server::Server;

const NOW: Now = Now { wall_ms: 1_900_000_000_000, own_ms: 1_000 };
const CREDITS: Credits = Credits { binds: 8, orders: 8, claims: 8, announcements: 8 };

/// What the watches deliver.
fn news(server: &mut Server) -> Vec<Input> {
    let mut news = Vec::new();
    for kind in Kind::ALL {
        while let Some(message) = server.next(kind) {
            news.push(Input::Change(message.change(), None));
        }
    }
    news
}

fn answered(request: &ApiRequest) -> Input {
    let answered = Some(Ok((200, None, Bytes::new())));
    Input::Answered(ApiResponse { number: request.number, answered, took_ms: 1, over_ms: 0 })
}

/// The server carries out a request about pod `p0` or its claim.
fn carry_out(server: &mut Server, request: &ApiRequest) {
    let body: Value = serde_json::from_slice(&request.body).expect("a body");
    match request.class {
        RequestClass::Claim => {
            let claim = (Kind::DeviceClaim, "blue".to_owned(), "c0".to_owned());
            server.change(&claim, |object| merge(object, &body));
        }
        RequestClass::Bind => {
            let pod = (Kind::Pod, "blue".to_owned(), "p0".to_owned());
            server.change(&pod, |pod| {
                pod["spec"]["nodeName"] = body["target"]["name"].clone();
                pod["metadata"]["annotations"] = body["metadata"]["annotations"].clone();
            });
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_event_waits_until_no_claim_is_being_written() {
    let mut server = Server::default();
    let selectors = json!([{"cel": {"expression": "device.driver == 'gpu.example.com'"}}]);
    server.apply(Kind::DeviceClass, "", "gpu", json!({"spec": {"selectors": selectors}}));
    node(&mut server, 0);
    slice(&mut server, 0, 2);
    for at in 0..2 {
        let request = json!({"name": "r", "exactly": {"deviceClassName": "gpu"}});
        let spec = json!({"devices": {"requests": [request]}});
        let claim = format!("c{at}");
        server.apply(Kind::DeviceClaim, "blue", &claim, json!({"spec": spec}));
        server.apply(Kind::Pod, "blue", &format!("p{at}"), with_claim(pod(0), &claim));
    }
    let mut control = Control::new(Settings::default());
    let mut inputs = vec![Input::Won { epoch: 1 }];
    for kind in Kind::ALL {
        inputs.extend(server.list(kind).into_iter().map(|change| Input::Change(change, None)));
    }
    let mut requests = control.step(inputs, CREDITS, NOW).requests;
    assert!(requests.iter().all(|request| request.class == RequestClass::Claim), "{requests:?}");
    let is_first = |request: &ApiRequest| request.path.ends_with("/c0");
    let own = requests.iter().position(is_first).expect("a write of the first claim");
    let mut request = requests.remove(own);
    // The server does not answer this one.
    let other = requests.pop().expect("a write of the other claim");
    assert!(requests.is_empty(), "{requests:?}");
    // The finalizer is written; the allocation, and the bind come next.
    for next in [RequestClass::Claim, RequestClass::Bind] {
        carry_out(&mut server, &request);
        let mut inputs = vec![answered(&request)];
        inputs.extend(news(&mut server));
        let mut requests = control.step(inputs, CREDITS, NOW).requests;
        request = requests.pop().expect("the next write");
        assert!(requests.is_empty() && request.class == next, "{request:?} {requests:?}");
    }
    carry_out(&mut server, &request);
    let mut inputs = vec![answered(&request)];
    inputs.extend(news(&mut server));
    let output = control.step(inputs, CREDITS, NOW);
    assert!(output.requests.is_empty(), "a claim is being written: {:?}", output.requests);
    assert_eq!(output.owed.0, 1, "the event of the pod that is bound");
    let output = control.step(vec![answered(&other)], CREDITS, NOW);
    let classes: Vec<RequestClass> = output.requests.iter().map(|one| one.class).collect();
    assert_eq!(classes, [RequestClass::Announcement]);
}
