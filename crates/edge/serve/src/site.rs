//! Paths and what they answer.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bytes::Bytes;
use dovetail_exposition::ExpositionFormat;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::allocation::{AllocationRefusal, Ask};
use crate::connections::Peer;
use crate::guard::{AccessGuard, Review};
use crate::ledger_questions::{BooksError, LedgerBooks};
use crate::metrics::Metrics;
use crate::rate::Rates;

/// An answer must begin within this time.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);
/// Long answers that are being sent at a time.
const MOST_LONG_ANSWERS: usize = 8;
/// So much of a long answer is handed over at a time.
const PIECE_BYTES: usize = 32 << 10;

/// Answers requests.
pub struct Site {
    books: LedgerBooks,
    metrics: Arc<Metrics>,
    guard: AccessGuard,
    now_ms: fn() -> u64,
    rates: Mutex<Rates>,
    long_answers: Arc<Semaphore>,
}

impl Site {
    /// Answers out of a ledger, to whom the guard admits; `now_ms` reads the time in milliseconds
    /// since 1970.
    pub fn new(
        books: LedgerBooks,
        metrics: Arc<Metrics>,
        guard: AccessGuard,
        now_ms: fn() -> u64,
    ) -> Self {
        let long_answers = Arc::new(Semaphore::new(MOST_LONG_ANSWERS));
        Self { books, metrics, guard, now_ms, rates: Mutex::default(), long_answers }
    }

    /// All paths. Probes are answered to anybody, and tell nothing but that.
    pub fn routes(self) -> Router {
        let site = Arc::new(self);
        let guarded = Router::new()
            .route("/metrics", get(metrics))
            .route("/allocation", get(allocation))
            .route("/allocation/compute", get(allocation))
            .route("/model/allocation", get(allocation))
            .route("/model/allocation/compute", get(allocation))
            .route_layer(from_fn_with_state(Arc::clone(&site), admitted));
        let probes = Router::new()
            .route("/healthz", get(alive))
            .route("/livez", get(alive))
            .route("/readyz", get(ready));
        let all = guarded.merge(probes).fallback(nowhere);
        all.layer(from_fn_with_state(Arc::clone(&site), bounded)).with_state(site)
    }
}

/// Counts, and refuses what costs more than a question.
async fn bounded(State(site): State<Arc<Site>>, request: Request, next: Next) -> Response {
    let path = known_path(request.uri().path());
    let answer = if has_body(request.headers()) {
        told(StatusCode::PAYLOAD_TOO_LARGE, "requests must not have a body; omit it")
    } else {
        let answer = tokio::time::timeout(ANSWER_WITHIN, next.run(request)).await;
        let late = || {
            told(StatusCode::SERVICE_UNAVAILABLE, "the request took too long: request less data")
        };
        answer.unwrap_or_else(|_| late())
    };
    site.metrics.asked(path, answer.status().as_u16());
    answer
}

fn has_body(headers: &HeaderMap) -> bool {
    let length = headers.get(header::CONTENT_LENGTH);
    length.is_some_and(|length| length.as_bytes() != b"0")
        || headers.contains_key(header::TRANSFER_ENCODING)
}

/// Admits whom the guard knows, not too often.
async fn admitted(State(site): State<Arc<Site>>, request: Request, next: Next) -> Response {
    let Peer(address) = request
        .extensions()
        .get::<Peer>()
        .copied()
        .unwrap_or(Peer(IpAddr::V4(Ipv4Addr::LOCALHOST)));
    let taken =
        site.rates.lock().unwrap_or_else(PoisonError::into_inner).take(address, Instant::now());
    if let Err(wait) = taken {
        let mut answer =
            told(StatusCode::TOO_MANY_REQUESTS, "too many requests: send them more slowly");
        let seconds = HeaderValue::from(wait.as_millis().div_ceil(1000) as u64);
        answer.headers_mut().insert(header::RETRY_AFTER, seconds);
        return answer;
    }
    let authorization = request.headers().get(header::AUTHORIZATION);
    let authorization = authorization.and_then(|value| value.to_str().ok());
    match site.guard.admits(authorization, request.uri().path()).await {
        Ok(Review::Allowed) => next.run(request).await,
        Ok(Review::Forbidden) => told(
            StatusCode::FORBIDDEN,
            "the token's user is not allowed to read this path: grant `get` on it",
        ),
        Ok(Review::Unknown) => {
            let mut answer = told(StatusCode::UNAUTHORIZED, "a bearer token is required");
            let scheme = HeaderValue::from_static("Bearer");
            answer.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
            answer
        }
        Err(problem) => told(
            StatusCode::SERVICE_UNAVAILABLE,
            &format!("the cluster cannot authenticate the token: {problem}"),
        ),
    }
}

async fn alive() -> Response {
    (StatusCode::OK, "ok\n").into_response()
}

async fn ready(State(site): State<Arc<Site>>) -> Response {
    match site.books.check().await {
        Ok(()) => (StatusCode::OK, "ok\n").into_response(),
        // Why is in the log; a probe may be anybody's.
        Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "the ledger cannot be read\n").into_response(),
    }
}

async fn metrics(State(site): State<Arc<Site>>, headers: HeaderMap) -> Response {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    let format = ExpositionFormat::accepted(accept);
    let text = site.metrics.text(format, (site.now_ms)());
    ([(header::CONTENT_TYPE, format.content_type())], text).into_response()
}

async fn allocation(State(site): State<Arc<Site>>, request: Request) -> Response {
    let now_ms = (site.now_ms)();
    let ask = match Ask::read(request.uri().query().unwrap_or_default(), now_ms) {
        Ok(ask) => ask,
        Err(AllocationRefusal(problem)) => return told(StatusCode::BAD_REQUEST, &problem),
    };
    let Ok(permit) = Arc::clone(&site.long_answers).acquire_owned().await else {
        return told(StatusCode::SERVICE_UNAVAILABLE, "the server is shutting down");
    };
    let answer = match site.books.allocation(&ask, now_ms).await {
        Ok(answer) => answer,
        Err(error) => return told(status(&error), &error.to_string()),
    };
    let json = [(header::CONTENT_TYPE, "application/json")];
    match serde_json::to_vec(&answer) {
        Ok(body) => (json, in_pieces(Bytes::from(body), permit)).into_response(),
        Err(error) => told(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    }
}

async fn nowhere() -> Response {
    told(StatusCode::NOT_FOUND, "not found: use /allocation, /metrics, /healthz or /readyz")
}

/// The permit is given back when the last piece is on its way: however slowly people read, only so
/// many long answers are in memory.
fn in_pieces(mut rest: Bytes, permit: OwnedSemaphorePermit) -> Body {
    let pieces = std::iter::from_fn(move || {
        let _held = &permit;
        (!rest.is_empty()).then(|| Ok::<_, Infallible>(rest.split_to(rest.len().min(PIECE_BYTES))))
    });
    Body::from_stream(futures_util::stream::iter(pieces))
}

fn status(error: &BooksError) -> StatusCode {
    use dovetail_store::StoreError;
    match error {
        BooksError::TooLong(_) | BooksError::Store(StoreError::NoLongerKept { .. }) => {
            StatusCode::BAD_REQUEST
        }
        BooksError::Busy => StatusCode::SERVICE_UNAVAILABLE,
        BooksError::Store(error) if error.is_passing() => StatusCode::SERVICE_UNAVAILABLE,
        BooksError::Store(_) => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// A refusal in OpenCost's envelope.
fn told(status: StatusCode, message: &str) -> Response {
    let text: String =
        message.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    let body = serde_json::json!({ "code": status.as_u16(), "message": text });
    (status, [(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

/// What is counted by path has a bound.
fn known_path(path: &str) -> &'static str {
    const KNOWN: [&str; 8] = [
        "/metrics",
        "/allocation",
        "/allocation/compute",
        "/model/allocation",
        "/model/allocation/compute",
        "/healthz",
        "/livez",
        "/readyz",
    ];
    KNOWN.into_iter().find(|known| *known == path).unwrap_or("other")
}
