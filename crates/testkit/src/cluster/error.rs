//! Why a control plane does not run.

use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::binaries::BuildError;

/// Why a control plane could not be started, or stopped working.
#[derive(Debug, Error)]
pub enum StartError {
    /// A program could not be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A program could not be started, a file not be written.
    #[error("{path}: {source}")]
    File {
        /// The file or program.
        path: PathBuf,
        /// What the system answered.
        source: std::io::Error,
    },
    /// A program ended by itself.
    #[error("{program} ended by itself; its log is {log} and ends with:\n{tail}")]
    Ended {
        program: &'static str,
        log: PathBuf,
        /// The end of the log.
        tail: String,
    },
    /// A program runs, but did not become ready in time.
    #[error(
        "{program} was not ready in time: is the machine out of memory or very busy? Its log is {log} and ends with:\n{tail}"
    )]
    NotReady {
        program: &'static str,
        log: PathBuf,
        /// The end of the log.
        tail: String,
    },
    /// No key or certificate could be made.
    #[error("the certificate of the API server: {0}")]
    Certificate(#[from] rcgen::Error),
    /// No connection to the API server could be prepared.
    #[error("TLS to the API server: {0}")]
    Tls(#[from] rustls::Error),
    /// The API server refused to create something.
    #[error("POST {path}: {answer}")]
    Refused {
        path: String,
        /// Status line and body of the answer, or what broke the connection.
        answer: String,
    },
    /// Every port that was tried is taken.
    #[error("no free port on 127.0.0.1 between {from} and {to}: stop what listens there")]
    NoPort {
        /// The first port that was tried.
        from: u16,
        /// The last port that was tried.
        to: u16,
    },
    /// A folder that holds something else.
    #[error(
        "{0}: a control plane removes its folder when it ends, and this one holds other files: name a new one"
    )]
    Occupied(PathBuf),
    /// A name that would break the token file.
    #[error("user or group `{0}`: use ASCII letters, digits, `-`, `.` and `:`")]
    UserName(String),
}

impl StartError {
    pub(super) fn file(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { path, source }
    }

    /// Whether other ports would help.
    pub(super) fn is_port_taken(&self) -> bool {
        matches!(self, Self::Ended { tail, .. } if tail.contains("address already in use"))
    }
}
