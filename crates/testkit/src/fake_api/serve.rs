//! Connections: from bytes to a call, through the faults, to an answer.

use std::convert::Infallible;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use dovetail_rehearsal::api::{ApiFailure, ApiFault, ApiReply, Call, Route, Verb};
use futures_util::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{CONTENT_TYPE, RETRY_AFTER};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use tokio::sync::watch;
use tokio::time::Instant;

use super::shared::Shared;
use super::stream::WatchStream;

/// The server's end of a connection is closed without an answer.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the fake server closed the connection on purpose")]
pub(super) struct ClosedConnection;

type Body = UnsyncBoxBody<Bytes, ClosedConnection>;

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

async fn answer(
    shared: Arc<Shared>,
    request: Request<Incoming>,
) -> Result<Response<Body>, ClosedConnection> {
    let arrived = Instant::now();
    let (parts, body) = request.into_parts();
    if let Some(reply) = shared.backends.answer(parts.uri.path(), parts.uri.query()).await {
        return Ok(respond(reply));
    }
    let route = {
        let (path, query) = (parts.uri.path(), parts.uri.query().unwrap_or_default());
        shared.change(|server| server.route(parts.method.as_str(), path, query))
    };
    let call = match route {
        Some(Ok(Route::Call(call))) => call,
        Some(Ok(other)) => {
            return Ok(respond(shared.change(|server| server.describe(&other))));
        }
        Some(Err(failure)) => return Ok(respond(ApiReply::failure(&failure))),
        None => return Ok(respond(ApiReply::text(404, "404 page not found\n"))),
    };
    let struck = shared.faults().strike(&call);
    let fault = struck.map(|(fault, _)| fault);
    if let Some(failure) = before_effect(&shared, &call, fault).await? {
        return Ok(respond(ApiReply::failure(&failure)));
    }
    if call.verb == Verb::Watch {
        return Ok(match WatchStream::open(&shared, &call, struck) {
            Ok(stream) => body_of(stream),
            Err(failure) => respond(ApiReply::failure(&failure)),
        });
    }
    let content_type = parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let content_type = content_type.unwrap_or("application/json").to_owned();
    let body = body.collect().await.map_err(|_| ClosedConnection)?.to_bytes();
    if call.query.duration("timeout").is_some_and(|limit| arrived.elapsed() >= limit) {
        return Ok(respond(ApiReply::failure(&ApiFailure::of_code(504))));
    }
    let reply = shared.change(|server| server.perform(&call, &content_type, &body));
    let reply = reply.unwrap_or_else(|failure| ApiReply::failure(&failure));
    match fault {
        Some(ApiFault::ReplyLost) => return Err(ClosedConnection),
        Some(ApiFault::HoldReply) => shared.hold().await,
        _ => {}
    }
    Ok(respond(reply))
}

/// What a fault does to a request before it takes effect.
async fn before_effect(
    shared: &Shared,
    call: &Call,
    fault: Option<ApiFault>,
) -> Result<Option<ApiFailure>, ClosedConnection> {
    Ok(match fault {
        Some(ApiFault::Conflict) => Some(ApiFailure::modified(&call.kind, &call.name)),
        Some(ApiFault::Gone) => Some(ApiFailure::expired("too old resource version: 1 (2)")),
        Some(ApiFault::TooManyRequests { retry_after_s }) => {
            let message = "too many requests, please try again later";
            Some(ApiFailure::too_many_requests(message, retry_after_s))
        }
        Some(ApiFault::ServerError { code }) => Some(ApiFailure::of_code(code)),
        Some(ApiFault::Cut) => return Err(ClosedConnection),
        Some(ApiFault::Slow { delay_ms }) => {
            tokio::time::sleep(Duration::from_millis(delay_ms)).await;
            None
        }
        Some(ApiFault::Hold) => {
            shared.hold().await;
            None
        }
        _ => None,
    })
}

fn respond(reply: ApiReply) -> Response<Body> {
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

fn body_of(stream: WatchStream) -> Response<Body> {
    let pieces = stream::unfold(stream, |mut stream| async move {
        let piece = stream.next().await?;
        Some((piece.map(Frame::data), stream))
    });
    let mut response = Response::new(StreamBody::new(pieces).boxed_unsync());
    let kind = hyper::header::HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}
