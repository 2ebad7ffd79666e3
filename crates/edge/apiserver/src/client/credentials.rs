//! Commands that the kubeconfig has run for credentials: what went wrong with one, without what it
//! printed. Its output is the credentials.

use std::error::Error;
use std::process::Output;

use kube::client::AuthError;
use thiserror::Error;

/// So much is shown of what a command printed to stderr, which is for people.
const MOST_SHOWN: usize = 300;

/// Why credentials cannot be used; nothing of what a command printed to stdout is in it.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct NoCredentials(pub(super) String);

/// What is wrong with credentials, where that is what an error is about.
pub(super) fn problem(error: &(dyn Error + 'static)) -> Option<String> {
    let mut cause = Some(error);
    while let Some(one) = cause {
        if let Some(auth) = one.downcast_ref::<AuthError>() {
            return Some(words(auth));
        }
        cause = one.source();
    }
    None
}

fn words(error: &AuthError) -> String {
    match error {
        AuthError::AuthExecStart(source) => format!("it cannot be run: {source}"),
        AuthError::AuthExecRun { out, .. } => failed(out),
        // Each of these may quote what was printed.
        AuthError::AuthExecParse(_) | AuthError::ParseTokenKey(_) | AuthError::AuthExec(_) => {
            "it printed no credentials that can be read: run it by hand".to_owned()
        }
        other => other.to_string(),
    }
}

fn failed(out: &Output) -> String {
    let said = String::from_utf8_lossy(&out.stderr);
    match said.trim() {
        "" => format!("it failed ({}) and printed nothing to stderr", out.status),
        said => {
            let shown: String = said.chars().filter(|c| !c.is_control()).take(MOST_SHOWN).collect();
            format!("it failed ({}): {shown}", out.status)
        }
    }
}
