//! Connections: from bytes to a call, through the faults, to an answer.

use std::convert::Infallible;
use std::net::TcpListener;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{CONTENT_TYPE, RETRY_AFTER};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;

use super::binding::bind;
use super::call::{Call, Route, Verb};
use super::create::create;
use super::delete::{DeleteOptions, delete, delete_object};
use super::discovery;
use super::eviction::evict;
use super::failure::{Failure, MODIFIED};
use super::fault::{Fault, Faults};
use super::list::{list, selected};
use super::patch::patch;
use super::proxy::Backends;
use super::reply::Reply;
use super::state::State;
use super::update::update;
use super::watch::{self as watching, Watch};

/// The server's end of a connection is closed without an answer.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the fake server closed the connection on purpose")]
pub(super) struct Cut;

type Body = UnsyncBoxBody<Bytes, Cut>;

/// What all connections share.
#[derive(Debug)]
pub(super) struct Shared {
    state: Mutex<State>,
    pub(super) faults: Mutex<Faults>,
    pub(super) backends: Backends,
    pub(super) bookmark_orders: watch::Sender<u64>,
    /// How many requests are held.
    pub(super) held: watch::Sender<usize>,
    /// Counts the releases.
    pub(super) released: watch::Sender<u64>,
}

impl Shared {
    pub(super) fn new(state: State) -> Self {
        Self {
            state: Mutex::new(state),
            faults: Mutex::new(Faults::default()),
            backends: Backends::default(),
            bookmark_orders: watch::Sender::new(0),
            held: watch::Sender::new(0),
            released: watch::Sender::new(0),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn faults(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn hold(&self) {
        let mut released = self.released.subscribe();
        self.held.send_modify(|held| *held += 1);
        // The client may hang up while it waits.
        let _held = Held(self);
        // The sender lives in `self`.
        _ = released.changed().await;
    }
}

/// Counts a held request until it goes on or goes away.
struct Held<'a>(&'a Shared);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.held.send_modify(|held| *held -= 1);
    }
}

/// Serves until told to stop. Every open connection ends with it.
pub(super) async fn serve(
    shared: Arc<Shared>,
    listener: TcpListener,
    mut stop: watch::Receiver<bool>,
) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.changed() => return,
        };
        let Ok((connection, _)) = accepted else { continue };
        _ = connection.set_nodelay(true);
        let shared = shared.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request| answer(shared.clone(), request));
            // An error here is the client's hanging up, or a fault on demand.
            _ = Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(connection), service)
                .await;
        });
    }
}

async fn answer(shared: Arc<Shared>, request: Request<Incoming>) -> Result<Response<Body>, Cut> {
    let arrived = Instant::now();
    let (parts, body) = request.into_parts();
    if let Some(reply) = shared.backends.answer(parts.uri.path(), parts.uri.query()).await {
        return Ok(respond(reply));
    }
    let route = {
        let state = shared.lock();
        let (path, query) = (parts.uri.path(), parts.uri.query().unwrap_or_default());
        Route::find(&state.kinds, &parts.method, path, query)
    };
    let call = match route {
        Some(Ok(Route::Call(call))) => call,
        Some(Ok(other)) => return Ok(respond(describe(&shared, other))),
        Some(Err(failure)) => return Ok(respond(Reply::failure(&failure))),
        None => return Ok(respond(Reply::text(404, "404 page not found\n"))),
    };
    let struck = shared.faults().strike(&call);
    let fault = struck.map(|(fault, _)| fault);
    if let Some(failure) = before_effect(&shared, &call, fault).await? {
        return Ok(respond(Reply::failure(&failure)));
    }
    if call.verb == Verb::Watch {
        let opened = watching::open(&shared, &mut shared.lock(), &call, struck);
        return Ok(match opened {
            Ok(watch) => stream_of(watch),
            Err(failure) => respond(Reply::failure(&failure)),
        });
    }
    let content_type = parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let content_type = content_type.unwrap_or("application/json").to_owned();
    let body = body.collect().await.map_err(|_| Cut)?.to_bytes();
    if call.query.duration("timeout").is_some_and(|limit| arrived.elapsed() >= limit) {
        return Ok(respond(Reply::failure(&Failure::of_code(504))));
    }
    let reply = perform(&mut shared.lock(), &call, &content_type, &body);
    let reply = reply.unwrap_or_else(|failure| Reply::failure(&failure));
    match fault {
        Some(Fault::ReplyLost) => return Err(Cut),
        Some(Fault::HoldReply) => shared.hold().await,
        _ => {}
    }
    Ok(respond(reply))
}

/// What a fault does to a request before it takes effect.
async fn before_effect(
    shared: &Shared,
    call: &Call,
    fault: Option<Fault>,
) -> Result<Option<Failure>, Cut> {
    Ok(match fault {
        Some(Fault::Conflict) => Some(Failure::conflict(&call.kind, &call.name, MODIFIED)),
        Some(Fault::Gone) => Some(Failure::expired("too old resource version: 1 (2)")),
        Some(Fault::TooManyRequests { retry_after_s }) => {
            let message = "too many requests, please try again later";
            Some(Failure::too_many_requests(message, retry_after_s))
        }
        Some(Fault::ServerError { code }) => Some(Failure::of_code(code)),
        Some(Fault::Cut) => return Err(Cut),
        Some(Fault::Slow { delay_ms }) => {
            tokio::time::sleep(Duration::from_millis(delay_ms)).await;
            None
        }
        Some(Fault::Hold) => {
            shared.hold().await;
            None
        }
        _ => None,
    })
}

/// Does what a call asks for, or in a dry run answers as if it were done.
pub(super) fn perform(
    state: &mut State,
    call: &Call,
    content_type: &str,
    body: &[u8],
) -> Result<Reply, Failure> {
    state.store.is_trial = is_trial(call, body)?;
    let reply = carry_out(state, call, content_type, body);
    state.store.is_trial = false;
    reply
}

/// Whether a call is a dry run.
fn is_trial(call: &Call, body: &[u8]) -> Result<bool, Failure> {
    match call.verb {
        Verb::Delete => Ok(DeleteOptions::read(call, body)?.is_trial),
        Verb::Patch => Ok(call.query.has("dryRun")),
        _ if call.query.has("dryRun") => {
            Err(Failure::bad_request("the fake server knows dryRun for DELETE and PATCH only"))
        }
        _ => Ok(false),
    }
}

fn carry_out(
    state: &mut State,
    call: &Call,
    content_type: &str,
    body: &[u8],
) -> Result<Reply, Failure> {
    let kind = &call.kind;
    let is_pod = kind.group.is_empty() && kind.plural == "pods";
    match (call.verb, call.subresource.as_str()) {
        (Verb::Create, "") => {
            let object = create(state, kind, call.namespace.as_deref(), parse(body)?)?;
            Ok(Reply::object(201, kind, &object))
        }
        (Verb::Create, "binding") if is_pod => bind(state, call, &parse(body)?),
        (Verb::Create, "eviction") if is_pod => evict(state, call, &parse(body)?),
        (Verb::Get, "" | "status") => Ok(Reply::object(200, kind, &*state.named(call)?)),
        (Verb::List, "") => list(state, call),
        (Verb::Update, "" | "status") => {
            let object = update(state, call, parse(body)?)?;
            Ok(Reply::object(200, kind, &object))
        }
        (Verb::Patch, "" | "status") => {
            let object = patch(state, call, content_type, body)?;
            Ok(Reply::object(200, kind, &object))
        }
        (Verb::Delete, "") => delete(state, call, &DeleteOptions::read(call, body)?),
        (Verb::DeleteCollection, "") => {
            let options = DeleteOptions::read(call, body)?;
            let listed = list(state, call)?;
            for object in selected(state, call)? {
                delete_object(state, kind, &object, &options)?;
            }
            Ok(listed)
        }
        _ => Err(Failure::new(404, "NotFound", "the server could not find the requested resource")),
    }
}

fn parse(body: &[u8]) -> Result<Value, Failure> {
    serde_json::from_slice(body).map_err(|error| {
        Failure::bad_request(format!("the object provided is unrecognized: {error}"))
    })
}

fn describe(shared: &Shared, route: Route) -> Reply {
    let state = shared.lock();
    let found = match &route {
        Route::Version => Some(discovery::version(state.settings.minor)),
        Route::CoreVersions => Some(discovery::core_versions()),
        Route::Groups => Some(discovery::groups(&state.kinds)),
        Route::Group(group) => discovery::group(&state.kinds, group),
        Route::Resources { group, version } => discovery::resources(&state.kinds, group, version),
        Route::Healthy => return Reply::text(200, "ok"),
        Route::Call(_) => None,
    };
    found.map_or_else(|| Reply::text(404, "404 page not found\n"), |body| Reply::json(200, &body))
}

fn respond(reply: Reply) -> Response<Body> {
    let full = Full::new(reply.body).map_err(|never: Infallible| match never {});
    let mut response = Response::new(full.boxed_unsync());
    *response.status_mut() =
        hyper::StatusCode::from_u16(reply.code).unwrap_or(hyper::StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static(reply.content_type));
    if let Some(pause) = reply.retry_after {
        headers.insert(RETRY_AFTER, hyper::header::HeaderValue::from(pause.as_secs()));
    }
    response
}

fn stream_of(watch: Watch) -> Response<Body> {
    let pieces = stream::unfold(watch, |mut watch| async move {
        let piece = watch.next().await?;
        Some((piece.map(Frame::data), watch))
    });
    let mut response = Response::new(StreamBody::new(pieces).boxed_unsync());
    let kind = hyper::header::HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}
