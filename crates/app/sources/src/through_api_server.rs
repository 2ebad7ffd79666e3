//! The way to a service or a pod of a cluster that its API server knows.

use dovetail_apiserver::discover::{Proxy, ProxyError};
use dovetail_metrics::prometheus::{HttpReply, Transport, TransportError};
use futures_util::future::BoxFuture;

/// Whoever is asked by way of the API server.
pub struct ThroughApiServer(pub Proxy);

impl Transport for ThroughApiServer {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn get<'a>(
        &'a self,
        path: &'a str,
        most_bytes: usize,
    ) -> BoxFuture<'a, Result<HttpReply, TransportError>> {
        Box::pin(async move {
            let reply = self.0.get(path, most_bytes).await.map_err(|error| match error {
                ProxyError::NoAnswer { asked: server, problem } => {
                    TransportError::NoAnswer { server, problem }
                }
                ProxyError::TooLarge { asked: server, most_bytes } => {
                    TransportError::TooLarge { server, most_bytes }
                }
            })?;
            Ok(HttpReply { status: reply.status, retry_after: reply.retry_after, body: reply.body })
        })
    }
}
