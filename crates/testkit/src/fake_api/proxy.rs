//! Services and pods of the cluster, reached through the server as through the real one's
//! `services/proxy` and `pods/proxy`.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use dovetail_rehearsal::api::{ApiFailure, ApiReply};
use http_body_util::{BodyExt, Empty};
use hyper::Request;
use hyper::client::conn::http1::handshake;
use hyper::header::HOST;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// Who answers for which service or pod.
#[derive(Debug, Default)]
pub(super) struct Backends(Mutex<BTreeMap<String, SocketAddr>>);

impl Backends {
    pub(super) fn set(&self, namespace: &str, object: &str, address: SocketAddr) {
        let mut backends = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        backends.insert(format!("{namespace}/{object}"), address);
    }

    /// The answer of a service or pod, or what the server says where none is behind it; none for
    /// any other path.
    pub(super) async fn answer(&self, path: &str, query: Option<&str>) -> Option<ApiReply> {
        let (service, rest) = split(path)?;
        let backends = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let address = backends().get(&service).copied();
        let target =
            format!("{rest}{}{}", if query.is_some() { "?" } else { "" }, query.unwrap_or(""));
        let answered = match address {
            Some(address) => forward(address, &target).await.ok(),
            None => None,
        };
        Some(answered.unwrap_or_else(|| ApiReply::failure(&ApiFailure::of_code(503))))
    }
}

/// Namespace, kind and name of a path, with the path behind them.
fn split(path: &str) -> Option<(String, &str)> {
    let rest = path.strip_prefix("/api/v1/namespaces/")?;
    let (object, rest) = rest.split_once("/proxy")?;
    let parts: Vec<&str> = object.split('/').collect();
    matches!(parts[..], [_, "services" | "pods", _]).then(|| (object.to_owned(), rest))
}

async fn forward(
    address: SocketAddr,
    target: &str,
) -> Result<ApiReply, Box<dyn std::error::Error + Send + Sync>> {
    let stream = TcpStream::connect(address).await?;
    let (mut sender, connection) = handshake(TokioIo::new(stream)).await?;
    // It ends with the answer, or with an error that the answer tells.
    tokio::spawn(async move { drop(connection.await) });
    let request = Request::get(target).header(HOST, address.to_string());
    let response = sender.send_request(request.body(Empty::<Bytes>::new())?).await?;
    let code = response.status().as_u16();
    Ok(ApiReply::bytes(code, response.into_body().collect().await?.to_bytes()))
}
