//! A raw client: requests as text, answers as code and JSON, so that nothing of an answer is lost.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::{Request, Response};
use kube::client::Body;
use serde_json::Value;

/// How long a test waits for what must happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A client that neither retries nor interprets.
pub(crate) struct Session {
    client: kube::Client,
}

/// A watch that is being read.
pub(crate) struct Events {
    response: Response<Body>,
    rest: Vec<u8>,
}

impl Session {
    /// Speaks to the server of this configuration.
    pub(crate) fn new(mut config: kube::Config) -> Self {
        config.default_retry = false;
        let client = kube::Client::try_from(config).expect("a client for a local server");
        Self { client }
    }

    /// Speaks to a server without TLS.
    pub(crate) fn plain(url: &str) -> Self {
        Self::new(kube::Config::new(url.parse().expect("the address of a local server")))
    }

    /// One request. `Err`: no answer came.
    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        content_type: &str,
        body: &str,
    ) -> Result<(u16, Value), String> {
        let response = self.open(method, path, content_type, body).await?;
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await.map_err(|error| error.to_string())?;
        Ok((code, read(&bytes.to_bytes())))
    }

    /// Opens a watch; `Err` with code and answer if it is refused.
    pub(crate) async fn watch(&self, path: &str) -> Result<Events, (u16, Value)> {
        let opened = self.open("GET", path, "application/json", "").await;
        let response = opened.map_err(|error| (0, Value::String(error)))?;
        let code = response.status().as_u16();
        if code != 200 {
            let bytes = response.into_body().collect().await;
            let bytes = bytes.map(|all| all.to_bytes()).unwrap_or_default();
            return Err((code, read(&bytes)));
        }
        Ok(Events { response, rest: Vec::new() })
    }

    async fn open(
        &self,
        method: &str,
        path: &str,
        content_type: &str,
        body: &str,
    ) -> Result<Response<Body>, String> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("Content-Type", content_type)
            .header("Accept", "application/json")
            .body(Body::from(Bytes::from(body.to_owned())))
            .expect("a well-formed request");
        let answer = tokio::time::timeout(PATIENCE, self.client.send(request)).await;
        answer.expect("an answer in time").map_err(|error| error.to_string())
    }
}

impl Events {
    /// The next event; `None` at the orderly end, `Some(Err)` at any other.
    pub(crate) async fn next(&mut self) -> Option<Result<Value, String>> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                return Some(Ok(read(&line)));
            }
            let frame = tokio::time::timeout(PATIENCE, self.response.body_mut().frame()).await;
            match frame.expect("an event or an end in time")? {
                Ok(frame) => self.rest.extend_from_slice(frame.data_ref().map_or(&[], |data| data)),
                Err(error) => return Some(Err(error.to_string())),
            }
        }
    }

    /// The names of the objects of the next events, with the type of the event.
    pub(crate) async fn names(&mut self, count: usize) -> Vec<String> {
        let mut names = Vec::new();
        for _ in 0..count {
            let event = self.next().await.expect("an event").expect("an unbroken stream");
            let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
            names.push(format!(
                "{} {}",
                text(&event["type"]),
                text(&event["object"]["metadata"]["name"])
            ));
        }
        names
    }
}

fn read(bytes: &[u8]) -> Value {
    let text = || Value::String(String::from_utf8_lossy(bytes).into_owned());
    serde_json::from_slice(bytes).unwrap_or_else(|_| text())
}
