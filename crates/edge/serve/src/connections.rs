//! Connections with bounds: how many, how long, how large. A client that sends or reads slowly
//! costs one of them for a while and nothing else.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::listen_address::ListenAddress;

/// What one client may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at a time; further ones wait in the system's own queue.
    pub connections: usize,
    /// For the handshake of TLS.
    pub handshake: Duration,
    /// For the head of a request.
    pub head: Duration,
    pub head_bytes: usize,
    /// After this a connection ends with the answer that is being sent.
    pub life: Duration,
    /// For that answer, also when the server ends.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 128,
            handshake: Duration::from_secs(10),
            head: Duration::from_secs(10),
            head_bytes: 16 << 10,
            life: Duration::from_secs(300),
            grace: Duration::from_secs(20),
        }
    }
}

/// The address of who asks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) IpAddr);

/// Answers until `stop` becomes true; then what was asked before is still answered.
///
/// # Errors
/// When the listener breaks.
pub async fn serve(
    listener: TcpListener,
    place: &ListenAddress,
    routes: Router,
    limits: Limits,
    mut stop: watch::Receiver<bool>,
) -> io::Result<()> {
    let acceptor = place.tls.as_ref().map(|tls| TlsAcceptor::from(tls.configuration()));
    let slots = Arc::new(Semaphore::new(limits.connections));
    let mut talks = JoinSet::new();
    let ended = loop {
        let next = async {
            let slot = Arc::clone(&slots).acquire_owned().await;
            (slot, listener.accept().await)
        };
        let (slot, accepted) = tokio::select! {
            () = is_true(&mut stop) => break Ok(()),
            next = next => next,
            Some(_) = talks.join_next(), if !talks.is_empty() => continue,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) if is_passing(&error) => {
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
            Err(error) => break Err(error),
        };
        let (acceptor, routes, stop) = (acceptor.clone(), routes.clone(), stop.clone());
        talks.spawn(async move {
            begin(stream, acceptor, Peer(peer.ip()), routes, limits, stop).await;
            drop(slot);
        });
    };
    drop(listener);
    let all = async { while talks.join_next().await.is_some() {} };
    // Who has not read its answer by then is cut off.
    _ = tokio::time::timeout(limits.grace, all).await;
    ended
}

/// Of this connection, or for want of descriptors: the next one may be well.
fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    // ENFILE and EMFILE have no name in the standard library.
    let no_descriptors = matches!(error.raw_os_error(), Some(23 | 24));
    let of_connection = [ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted];
    no_descriptors || of_connection.contains(&error.kind())
}

/// Returns when it becomes true, or nobody can make it true any more.
async fn is_true(stop: &mut watch::Receiver<bool>) {
    // An error means that its other end is gone: that is the end, too.
    _ = stop.wait_for(|stop| *stop).await;
}

async fn begin(
    stream: TcpStream,
    acceptor: Option<TlsAcceptor>,
    peer: Peer,
    routes: Router,
    limits: Limits,
    stop: watch::Receiver<bool>,
) {
    let Some(acceptor) = acceptor else {
        return talk(TokioIo::new(stream), peer, routes, limits, stop).await;
    };
    let shaken = tokio::time::timeout(limits.handshake, acceptor.accept(stream)).await;
    if let Ok(Ok(stream)) = shaken {
        talk(TokioIo::new(stream), peer, routes, limits, stop).await;
    }
}

async fn talk<I>(io: I, peer: Peer, routes: Router, limits: Limits, mut stop: watch::Receiver<bool>)
where
    I: hyper::rt::Read + hyper::rt::Write + Unpin,
{
    let inner = TowerToHyperService::new(routes);
    let service = service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
        request.extensions_mut().insert(peer);
        inner.call(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_buf_size(limits.head_bytes)
        .serve_connection(io, service);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        // Whatever went wrong with it, it is over.
        _ = connection.as_mut() => return,
        () = tokio::time::sleep(limits.life) => {}
        () = is_true(&mut stop) => {}
    }
    connection.as_mut().graceful_shutdown();
    _ = tokio::time::timeout(limits.grace, connection).await;
}
