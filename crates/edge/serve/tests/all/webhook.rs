//! A message reaches a real listener, or says why it did not.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc;
use std::time::Duration;

use dovetail_serve::webhook::{Patience, Webhook, WebhookError};
use serde_json::{Value, json};

const PATIENCE: Patience = Patience {
    within: Duration::from_secs(20),
    tries: 3,
    pause: Duration::from_millis(1),
    longest_pause: Duration::from_millis(2),
};

/// Answers each request with the next status; 0 hangs up. What was sent comes through the channel.
fn listener(statuses: Vec<u16>) -> (String, mpsc::Receiver<(String, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/hooks/secret", listener.local_addr().expect("an address"));
    let (send, sent) = mpsc::channel();
    std::thread::spawn(move || {
        for status in statuses {
            let (mut stream, _) = listener.accept().expect("a connection");
            if status == 0 {
                continue;
            }
            let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
            let (head, body) = loop {
                let read = stream.read(&mut buffer).expect("a request");
                bytes.extend_from_slice(&buffer[..read]);
                let text = String::from_utf8_lossy(&bytes).into_owned();
                let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                if let Ok(body) = serde_json::from_str::<Value>(body) {
                    break (head.to_owned(), body);
                }
            };
            let close = "Connection: close\r\nContent-Length: 0\r\n\r\n";
            // Before the answer: with that the test may look at what was sent, and may end.
            _ = send.send((head, body));
            write!(stream, "HTTP/1.1 {status} X\r\nRetry-After: 9\r\n{close}").expect("an answer");
        }
    });
    (url, sent)
}

async fn deliver(statuses: Vec<u16>) -> (Result<(), WebhookError>, Vec<(String, Value)>) {
    let (url, sent) = listener(statuses);
    let hook = Webhook::new(&url, PATIENCE).expect("an address");
    let done = hook.send(&json!({"text": "a | b\n\"c\" é"})).await;
    (done, sent.try_iter().collect())
}

#[tokio::test]
async fn a_message_is_tried_until_it_is_taken_or_refused() {
    let (done, sent) = deliver(vec![503, 0, 200]).await;
    done.expect("taken");
    let (head, body) = sent.last().expect("a request");
    assert!(head.starts_with("POST /hooks/secret HTTP/1.1"), "{head}");
    assert!(head.to_lowercase().contains("content-type: application/json"), "{head}");
    assert_eq!(body, &json!({"text": "a | b\n\"c\" é"}));

    let (done, sent) = deliver(vec![404, 200]).await;
    let told = done.expect_err("refused").to_string();
    assert!(
        told.starts_with("127.0.0.1 rejected the message with status 404")
            && !told.contains("secret"),
        "{told}"
    );
    assert_eq!(sent.len(), 1);

    let (done, sent) = deliver(vec![500, 429, 502, 200]).await;
    let told = done.expect_err("given up").to_string();
    assert!(told.contains("(attempts: 3): it returned 502") && !told.contains("secret"), "{told}");
    assert_eq!(sent.len(), 3);
}

#[tokio::test]
async fn who_does_not_answer_is_not_waited_for() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/secret", listener.local_addr().expect("an address"));
    // Connections are taken by the system, and nobody ever answers.
    let patience = Patience { within: Duration::from_millis(50), ..PATIENCE };
    let hook = Webhook::new(&url, patience).expect("an address");
    let told = hook.send(&json!({"text": "a"})).await.expect_err("nobody").to_string();
    assert!(told.contains("(attempts: 3): timed out after 0.05 s"), "{told}");
}
