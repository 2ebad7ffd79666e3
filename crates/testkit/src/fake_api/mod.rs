//! An API server in memory, over HTTP.
//!
//! It speaks plain HTTP/1.1 and HTTP/2 on loopback. What it answers is up to the model server of
//! `dovetail-rehearsal`; here are connections, the clock, the streams of watches, and services by
//! way of the server. A conformance script holds it against a real server.
//!
//! Faults strike on demand and repeatably: see [`FaultRule`].

mod proxy;
mod serve;
mod shared;
mod stream;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;

use dovetail_rehearsal::api::{ApiFailure, ApiServer, Call, Query};
pub use dovetail_rehearsal::api::{
    ApiFault, Bound, FaultRecord, FaultRule, On, ResourceKind, Settings, Verb,
};
use serde_json::Value;
use tokio::sync::watch as signal;

use shared::{Shared, now_ms};

/// A refusal of a direct call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} ({code} {reason})")]
pub struct RefusedCall {
    pub code: u16,
    pub reason: &'static str,
    pub message: String,
}

impl From<ApiFailure> for RefusedCall {
    fn from(failure: ApiFailure) -> Self {
        Self { code: failure.code, reason: failure.reason, message: failure.message }
    }
}

/// A running server. It stops when dropped, and every connection with it.
#[derive(Debug)]
pub struct FakeApi {
    url: String,
    shared: Arc<Shared>,
    stop: signal::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl FakeApi {
    /// Starts a server as [`Settings::default`] says.
    ///
    /// # Errors
    /// When there is no port or no thread to be had.
    pub fn start() -> io::Result<Self> {
        Self::start_with(Settings::default())
    }

    /// Starts a server on a free port, in a thread of its own: a test's paused clock does not pause
    /// it.
    ///
    /// # Errors
    /// When there is no port or no thread to be had.
    pub fn start_with(settings: Settings) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let url = format!("http://{}", listener.local_addr()?);
        let shared = Arc::new(Shared::new(ApiServer::new(settings, now_ms())));
        let (stop, stopped) = signal::channel(false);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let serving = shared.clone();
        let thread = std::thread::Builder::new()
            .name("fake-api".to_owned())
            .spawn(move || runtime.block_on(serve::serve(serving, listener, stopped)))?;
        Ok(Self { url, shared, stop, thread: Some(thread) })
    }

    /// Where it listens, such as `http://127.0.0.1:40001`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Adds a kind, as a CustomResourceDefinition would.
    pub fn register(&self, kind: ResourceKind) {
        self.shared.change(|server| server.register(kind));
    }

    /// Lets a server on loopback answer for a service (`NAME:PORT`, with `https:` before it where
    /// the port speaks TLS; the server itself speaks none).
    pub fn serve_service(&self, namespace: &str, service: &str, address: SocketAddr) {
        self.shared.backends.set(namespace, &format!("services/{service}"), address);
    }

    /// The same for a pod (`NAME:PORT`).
    pub fn serve_pod(&self, namespace: &str, pod: &str, address: SocketAddr) {
        self.shared.backends.set(namespace, &format!("pods/{pod}"), address);
    }

    /// Replaces the rules of faults. Their counters start anew.
    pub fn set_faults(&self, seed: u64, rules: Vec<FaultRule>) {
        self.shared.faults().set(seed, rules);
    }

    /// The faults that struck, in the order of their striking.
    pub fn faults(&self) -> Vec<FaultRecord> {
        self.shared.faults().log.clone()
    }

    /// Waits until at least so many requests are held by [`Fault::Hold`] or [`Fault::HoldReply`].
    pub async fn held(&self, count: usize) {
        let mut held = self.shared.held.subscribe();
        // The sender lives as long as `self`.
        _ = held.wait_for(|held| *held >= count).await;
    }

    /// Lets every held request go on.
    pub fn release(&self) {
        self.shared.released.send_modify(|count| *count += 1);
    }

    /// Sends a bookmark on every watch that takes bookmarks.
    pub fn send_bookmarks(&self) {
        self.shared.bookmark_orders.send_modify(|count| *count += 1);
    }

    /// Forgets all history, as etcd's compaction does: continued lists and watches from older
    /// versions get 410.
    pub fn compact(&self) {
        self.shared.change(ApiServer::compact);
    }

    /// Version of the latest write.
    pub fn revision(&self) -> u64 {
        self.shared.change(|server| server.revision())
    }

    /// Tells the version of every write from now on; use it to wait without sleeping.
    pub fn written(&self) -> signal::Receiver<u64> {
        self.shared.written()
    }

    /// Every bind that took effect, in order.
    pub fn bound(&self) -> Vec<Bound> {
        self.shared.change(|server| server.bound().to_vec())
    }

    /// Creates an object directly, without HTTP and without faults. An empty namespace means none.
    ///
    /// # Errors
    /// What the server would refuse.
    pub fn create(
        &self,
        plural: &str,
        namespace: &str,
        object: &Value,
    ) -> Result<Value, RefusedCall> {
        self.direct(Verb::Create, plural, namespace, "", "", object)
    }

    /// Reads an object directly.
    ///
    /// # Errors
    /// When there is none.
    pub fn get(&self, plural: &str, namespace: &str, name: &str) -> Result<Value, RefusedCall> {
        self.direct(Verb::Get, plural, namespace, name, "", &Value::Null)
    }

    /// Merges a patch into an object, or into its subresource (`status`), directly.
    ///
    /// # Errors
    /// What the server would refuse.
    pub fn merge(
        &self,
        plural: &str,
        namespace: &str,
        name: &str,
        subresource: &str,
        patch: &Value,
    ) -> Result<Value, RefusedCall> {
        self.direct(Verb::Patch, plural, namespace, name, subresource, patch)
    }

    /// Deletes an object directly; `options` are `DeleteOptions` or null.
    ///
    /// # Errors
    /// What the server would refuse.
    pub fn delete(
        &self,
        plural: &str,
        namespace: &str,
        name: &str,
        options: &Value,
    ) -> Result<Value, RefusedCall> {
        self.direct(Verb::Delete, plural, namespace, name, "", options)
    }

    /// Writes an object as a test wants it, also where the real server would never have it so: a
    /// deletion that began long ago, say. Nothing happens if there is none.
    pub fn overwrite(
        &self,
        plural: &str,
        namespace: &str,
        name: &str,
        change: impl FnOnce(&mut Value),
    ) {
        let namespace = (!namespace.is_empty()).then_some(namespace);
        self.shared.change(|server| {
            let Some(kind) = server.kind(plural) else { return };
            server.overwrite(&kind, namespace, name, change);
        });
    }

    /// All objects of a kind, in the order of namespace and name.
    pub fn all(&self, plural: &str) -> Vec<Value> {
        self.shared.change(|server| {
            let kind = server.kind(plural);
            kind.map_or_else(Vec::new, |kind| server.all_with_kind(&kind))
        })
    }

    fn direct(
        &self,
        verb: Verb,
        plural: &str,
        namespace: &str,
        name: &str,
        subresource: &str,
        body: &Value,
    ) -> Result<Value, RefusedCall> {
        let kind = self.shared.change(|server| server.kind(plural)).ok_or_else(|| RefusedCall {
            code: 404,
            reason: "NotFound",
            message: format!("the fake server has no kind with the plural `{plural}`: register it"),
        })?;
        let namespace = (!namespace.is_empty()).then(|| namespace.to_owned());
        let (name, subresource) = (name.to_owned(), subresource.to_owned());
        let call = Call { verb, kind, namespace, name, subresource, query: Query::default() };
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let merge = "application/merge-patch+json";
        let reply = self.shared.change(|server| server.perform(&call, merge, &body))?;
        Ok(serde_json::from_slice(&reply.body).unwrap_or_default())
    }
}

impl Drop for FakeApi {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take() {
            // A panic there has been reported by the thread itself.
            _ = thread.join();
        }
    }
}
