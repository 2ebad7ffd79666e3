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
    about_credentials(error).map(words)
}

/// How the kubeconfig says to install the command (`installHint`), where that could not be run.
pub(super) fn install_hint(error: &(dyn Error + 'static), hint: Option<&str>) -> Option<String> {
    let is_missing = matches!(about_credentials(error), Some(AuthError::AuthExecStart(_)));
    let hint = shown(hint?);
    (is_missing && !hint.is_empty()).then(|| format!("; install hint of the kubeconfig: {hint}"))
}

/// Whether the client has no credentials because it does not support the auth-provider of the
/// kubeconfig, where that has one.
pub(super) fn is_of_provider(error: &(dyn Error + 'static)) -> bool {
    matches!(about_credentials(error), Some(AuthError::AuthExec(_)))
}

/// Why an auth-provider gives no credentials, and a plugin that gives them instead.
pub(super) fn instead_of_provider(name: &str) -> (&'static str, &'static str) {
    const REMOVED: &str = "is no longer supported by Kubernetes since 1.26";
    match name {
        "gcp" => (REMOVED, "gke-gcloud-auth-plugin"),
        "azure" => (REMOVED, "kubelogin"),
        "oidc" => ("is a legacy method, and it has no ID token", "kubectl oidc-login"),
        _ => ("is a legacy method that dovetail does not support", "kubectl oidc-login"),
    }
}

fn about_credentials<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e AuthError> {
    let mut cause = Some(error);
    while let Some(one) = cause {
        if let Some(auth) = one.downcast_ref::<AuthError>() {
            return Some(auth);
        }
        cause = one.source();
    }
    None
}

/// The beginning of a text of others, on one line.
pub(super) fn shown(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().filter(|c| !c.is_control()).take(MOST_SHOWN).collect()
}

fn words(error: &AuthError) -> String {
    match error {
        AuthError::AuthExecStart(source) => format!("it cannot be run: {source}"),
        AuthError::AuthExecRun { out, .. } => failed(out),
        // Each of these may quote what was printed.
        AuthError::AuthExecParse(_) | AuthError::ParseTokenKey(_) | AuthError::AuthExec(_) => {
            "it printed no valid credentials: run it manually to see its output".to_owned()
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
