//! How a query reaches a server.

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use thiserror::Error;

/// A way to a server: by its own address, or through something else that knows it.
pub trait Transport: Send + Sync {
    /// The server as messages name it, without credentials.
    fn name(&self) -> &str;

    /// Asks for a path, which begins with `/` (of a query API `/api/v1/`) and may have a query.
    /// Bodies of more than `most_bytes` are an error.
    fn get<'a>(
        &'a self,
        path: &'a str,
        most_bytes: usize,
    ) -> BoxFuture<'a, Result<HttpReply, TransportError>>;
}

impl<T: Transport + ?Sized> Transport for Box<T> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn get<'a>(
        &'a self,
        path: &'a str,
        most_bytes: usize,
    ) -> BoxFuture<'a, Result<HttpReply, TransportError>> {
        (**self).get(path, most_bytes)
    }
}

/// What a server answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpReply {
    pub status: u16,
    /// How long it asks to be left alone, if it does.
    pub retry_after: Option<Duration>,
    pub body: Bytes,
}

/// No answer came.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TransportError {
    /// Nothing listens, or the connection broke, or it took too long. Another try may help.
    #[error("no response from {server}: {problem}")]
    NoAnswer { server: String, problem: String },
    /// The body is larger than allowed.
    #[error("the response of {server} is larger than {most_bytes} bytes")]
    TooLarge { server: String, most_bytes: usize },
}
