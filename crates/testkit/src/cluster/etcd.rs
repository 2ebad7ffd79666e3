//! What the store of a control plane holds, so that one control plane can serve test after test.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use super::StartError;

/// The range of all keys of Kubernetes: from the first up to the second.
const ALL: (&str, &str) = ("/registry/", "/registry0");

/// What the API server makes last when it starts.
const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

const API_SERVICES: &str = "/registry/apiregistration.k8s.io/apiservices/";

/// The keys of a control plane in which nobody has created anything.
#[derive(Clone, Debug)]
pub struct Stored(BTreeSet<String>);

impl Stored {
    /// Whether the API server has made all that it makes by itself.
    fn is_whole(&self) -> bool {
        NAMESPACES.iter().all(|name| self.0.contains(&format!("/registry/namespaces/{name}")))
    }

    /// The ranges that hold these keys and none of the own ones: a whole kind at a time, where
    /// nothing of it was there.
    fn strange<'k>(&self, keys: impl Iterator<Item = &'k String>) -> BTreeSet<(String, String)> {
        let range = |key: &String| {
            let kind = key.split('/').nth(2).unwrap_or_default();
            let whole = (format!("/registry/{kind}/"), format!("/registry/{kind}0"));
            match self.0.range(whole.0.clone()..whole.1.clone()).next() {
                Some(_) => (key.clone(), format!("{key}\0")),
                None => whole,
            }
        };
        keys.filter(|key| !self.0.contains(*key)).map(range).collect()
    }
}

/// Speaks to the etcd of a control plane.
pub(super) struct Etcd {
    pub(super) port: u16,
}

impl Etcd {
    /// What it holds, once the API server has made all that it makes by itself.
    pub(super) fn stored(&self) -> Result<Option<Stored>, StartError> {
        Ok(Some(self.keys()?).filter(Stored::is_whole))
    }

    /// Removes what is not among these keys; answers with the paths of API versions that are gone.
    pub(super) fn restore(&self, stored: &Stored) -> Result<Vec<String>, StartError> {
        let Stored(keys) = self.keys()?;
        for (first, end) in stored.strange(keys.iter()) {
            let range = json!({"key": encoded(&first), "range_end": encoded(&end)});
            self.ask("/v3/kv/deleterange", &range)?;
        }
        let gone = keys.difference(&stored.0).filter_map(|key| key.strip_prefix(API_SERVICES));
        let path = |version: &str| {
            let (version, group) = version.split_once('.')?;
            Some(format!("/apis/{group}/{version}"))
        };
        Ok(gone.filter_map(path).collect())
    }

    fn keys(&self) -> Result<Stored, StartError> {
        let (first, end) = (encoded(ALL.0), encoded(ALL.1));
        let all = json!({"key": first, "range_end": end, "keys_only": true});
        let answer = self.ask("/v3/kv/range", &all)?;
        let keys = answer["kvs"].as_array().into_iter().flatten();
        let key = |found: &Value| {
            let bytes = BASE64_STANDARD.decode(found["key"].as_str()?).ok()?;
            String::from_utf8(bytes).ok()
        };
        Ok(Stored(keys.filter_map(key).collect()))
    }

    fn ask(&self, path: &str, question: &Value) -> Result<Value, StartError> {
        let refused = |answer: String| StartError::Refused { path: path.to_owned(), answer };
        let answer = self.post(path, &question.to_string());
        let answer = answer.map_err(|error| refused(error.to_string()))?;
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        match serde_json::from_str(body) {
            Ok(value) if answer.contains(" 200 ") => Ok(value),
            _ => Err(refused(answer)),
        }
    }

    /// The whole answer, which ends with the connection.
    fn post(&self, path: &str, body: &str) -> std::io::Result<String> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))?;
        let request = format!(
            "POST {path} HTTP/1.0\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }
}

fn encoded(key: &str) -> String {
    BASE64_STANDARD.encode(key)
}
