//! Whatever answers Prometheus' query API: Prometheus itself, Thanos, Mimir, VictoriaMetrics.
//!
//! | module | what |
//! |---|---|
//! | `transport` | how a query reaches the server |
//! | `direct` | by its own address, with TLS and a bearer token |
//! | `client` | queries: retried, in chunks that the server accepts |
//! | `answer` | the JSON of answers, as numbers |

//!
//! Without the feature `client` there are answers alone.

mod answer;
#[cfg(feature = "client")]
mod client;
#[cfg(feature = "client")]
mod direct;
#[cfg(feature = "client")]
mod transport;

pub(crate) use answer::own_label;
pub use answer::{AnswerError, Labels, QueryResult, Series, SeriesSample, read};
#[cfg(feature = "client")]
pub use client::{Limits, Notes, PrometheusClient, QueryError, RangeQuery};
#[cfg(feature = "client")]
pub use direct::{Direct, DirectError, DirectOptions};
#[cfg(feature = "client")]
pub use transport::{HttpReply, Transport, TransportError};
