//! Queries that are retried, and cut into chunks that the server accepts.

use std::time::Duration;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use thiserror::Error;

use super::answer::{self, AnswerError, QueryResult, Series};
use super::transport::{HttpReply, Transport, TransportError};

/// What one query may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Points of each series in one answer. Prometheus refuses more than 11,000.
    pub points: u32,
    pub answer_bytes: usize,
    /// Tries of one request, the first included.
    pub tries: u32,
    /// Pause after the first failure; each further one doubles it. What the server asks for wins if
    /// it is longer, up to [`Limits::longest_pause`].
    pub first_pause: Duration,
    /// No pause is longer.
    pub longest_pause: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            points: 10_000,
            answer_bytes: 256 << 20,
            tries: 5,
            first_pause: Duration::from_millis(250),
            longest_pause: Duration::from_secs(30),
        }
    }
}

/// A query over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeQuery {
    /// PromQL.
    pub query: String,
    /// First moment, in ms since 1970.
    pub from_ms: i64,
    /// No moment is later than this.
    pub to_ms: i64,
    /// Distance of two moments, in ms; at least 1.
    pub step_ms: i64,
}

impl RangeQuery {
    fn points(&self) -> i64 {
        if self.to_ms < self.from_ms { 0 } else { (self.to_ms - self.from_ms) / self.step_ms + 1 }
    }
}

/// What servers said beside their answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// Their warnings, each once: data may be missing.
    pub warnings: Vec<String>,
    /// Requests that were sent again.
    pub retries: u32,
}

/// A query without an answer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum QueryError {
    /// No answer came, however often.
    #[error("{source} (attempts: {tries})")]
    Transport {
        /// The last failure.
        source: TransportError,
        tries: u32,
    },
    /// The server answers with an error of HTTP.
    #[error("{server} returned status {status} (attempts: {tries}): {text}{}", hint(*status))]
    Status {
        server: String,
        status: u16,
        /// Begin of the body.
        text: String,
        tries: u32,
    },
    /// The answer cannot be used.
    #[error("{server}: {source}; the query was `{query}`")]
    Answer {
        server: String,
        query: String,
        /// What is wrong.
        source: AnswerError,
    },
    /// A range without an end, or in steps of nothing.
    #[error("a range query needs a step of at least 1 ms, not {step_ms}")]
    Step { step_ms: i64 },
}

fn hint(status: u16) -> &'static str {
    match status {
        401 | 403 => "; pass a token that may read metrics",
        404 => "; use the address under which /api/v1/query is served",
        _ => "",
    }
}

/// Asks one server.
pub struct PrometheusClient<T> {
    transport: T,
    limits: Limits,
    notes: Notes,
}

impl<T: Transport> PrometheusClient<T> {
    /// A client of the server that a transport leads to.
    pub fn new(transport: T, limits: Limits) -> Self {
        Self { transport, limits, notes: Notes::default() }
    }

    /// The way to the server, for another client.
    pub fn into_transport(self) -> T {
        self.transport
    }

    /// What the servers said beside their answers so far.
    pub fn notes(&self) -> &Notes {
        &self.notes
    }

    /// The server as messages name it.
    pub fn server(&self) -> &str {
        self.transport.name()
    }

    /// The value of each series of a query at one moment (ms since 1970).
    ///
    /// # Errors
    /// See [`QueryError`].
    pub async fn instant(&mut self, query: &str, at_ms: i64) -> Result<Vec<Series>, QueryError> {
        let path = format!("/api/v1/query?query={}&time={}", encoded(query), seconds(at_ms));
        Ok(self.answer(query, &path).await?.series)
    }

    /// The values of each series of a query over time, chunk by chunk in ascending time. A series
    /// appears in each chunk in which it has values. A chunk that the server finds too much for one
    /// query is cut in two.
    ///
    /// # Errors
    /// See [`QueryError`]. What was handed to `take` before stays there.
    pub async fn range(
        &mut self,
        range: &RangeQuery,
        mut take: impl FnMut(Vec<Series>),
    ) -> Result<(), QueryError> {
        if range.step_ms < 1 {
            return Err(QueryError::Step { step_ms: range.step_ms });
        }
        let mut chunk = i64::from(self.limits.points.max(1));
        let (mut next, points) = (0, range.points());
        while next < points {
            let count = chunk.min(points - next);
            let from_ms = range.from_ms + next * range.step_ms;
            let to_ms = from_ms + (count - 1) * range.step_ms;
            let path = format!(
                "/api/v1/query_range?query={}&start={}&end={}&step={}",
                encoded(&range.query),
                seconds(from_ms),
                seconds(to_ms),
                seconds(range.step_ms)
            );
            match self.answer(&range.query, &path).await {
                Ok(answer) => {
                    take(answer.series);
                    next += count;
                }
                Err(error) if count > 1 && is_too_much(&error) => chunk = count / 2,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// A good answer, after as many tries as it takes.
    async fn answer(&mut self, query: &str, path: &str) -> Result<QueryResult, QueryError> {
        let mut tries = 0;
        loop {
            tries += 1;
            let replied = self.transport.get(path, self.limits.answer_bytes).await;
            let (error, asked) = match replied {
                Ok(reply) => match self.judge(query, reply, tries) {
                    Ok(answer) => {
                        self.note(&answer.warnings);
                        return Ok(answer);
                    }
                    Err((error, asked)) => (error, asked),
                },
                Err(source) => (QueryError::Transport { source, tries }, None),
            };
            if tries >= self.limits.tries || !may_pass(&error) {
                return Err(error);
            }
            self.notes.retries += 1;
            let own = self.limits.first_pause.saturating_mul(1 << (tries - 1).min(16));
            let pause = own.max(asked.unwrap_or_default()).min(self.limits.longest_pause);
            tokio::time::sleep(pause).await;
        }
    }

    fn judge(
        &self,
        query: &str,
        reply: HttpReply,
        tries: u32,
    ) -> Result<QueryResult, (QueryError, Option<Duration>)> {
        let server = self.transport.name().to_owned();
        match answer::read(&reply.body) {
            Ok(answer) if reply.status == 200 => Ok(answer),
            // Prometheus says what is wrong in JSON with a status to match; what stands between may
            // answer in its own words.
            Err(source @ AnswerError::Refused { .. }) if !is_busy(reply.status) => {
                Err((QueryError::Answer { server, query: query.to_owned(), source }, None))
            }
            Err(source) if reply.status == 200 => {
                Err((QueryError::Answer { server, query: query.to_owned(), source }, None))
            }
            _ => {
                let text: String = String::from_utf8_lossy(&reply.body)
                    .chars()
                    .take(200)
                    .map(|letter| if letter.is_control() { ' ' } else { letter })
                    .collect();
                let status = reply.status;
                Err((QueryError::Status { server, status, text, tries }, reply.retry_after))
            }
        }
    }

    fn note(&mut self, warnings: &[String]) {
        for warning in warnings {
            if !self.notes.warnings.contains(warning) {
                self.notes.warnings.push(warning.clone());
            }
        }
    }
}

/// Whether the server has too much to do, or something before it has no server just now.
fn is_busy(status: u16) -> bool {
    matches!(status, 408 | 429 | 500 | 502 | 503 | 504)
}

/// Whether another try may help.
fn may_pass(error: &QueryError) -> bool {
    match error {
        QueryError::Transport { source, .. } => matches!(source, TransportError::NoAnswer { .. }),
        QueryError::Status { status, .. } => is_busy(*status),
        _ => false,
    }
}

/// Whether a smaller question may be answered: too many points or samples, too long, too large.
fn is_too_much(error: &QueryError) -> bool {
    match error {
        QueryError::Transport { source, .. } => matches!(source, TransportError::TooLarge { .. }),
        QueryError::Status { status, .. } => matches!(status, 413 | 503 | 504),
        QueryError::Answer { source: AnswerError::Refused { kind, message }, .. } => {
            let words = ["too many samples", "maximum resolution", "too many points", "timed out"];
            kind == "timeout" || words.iter().any(|word| message.contains(word))
        }
        _ => false,
    }
}

fn encoded(text: &str) -> impl std::fmt::Display {
    utf8_percent_encode(text, NON_ALPHANUMERIC)
}

/// Milliseconds as seconds with three decimals.
fn seconds(ms: i64) -> String {
    format!("{}.{:03}", ms / 1000, ms % 1000)
}

#[cfg(test)]
mod tests;
