//! What keeps a process from its lease, for people: the cause, the lease, and what to do.

use super::LeaseName;

/// Why a request about the lease did not do what it was for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    Refused {
        code: u16,
        message: String,
    },
    /// The namespace of the lease does not exist.
    NoNamespace,
    /// No answer came; why, with its causes.
    NoAnswer(String),
    /// No answer came in time.
    Late {
        /// For how long was waited.
        limit_ms: u64,
    },
    /// The answer is no Lease.
    Unreadable,
}

/// What servers in Go answer who speaks HTTP where they speak HTTPS.
const NO_TLS: &str = "HTTP request to an HTTPS server";

impl Trouble {
    /// What to say when the lease could not be read or written (`what`) on this server.
    pub fn told(&self, what: &str, place: &LeaseName, server: &str) -> String {
        let LeaseName { namespace, name } = place;
        let (cause, advice) = match self {
            Self::Refused { code: 401, message } => (
                format!("the API server {server} does not accept the credentials (401: {message})"),
                "check the token or the client certificate".to_owned(),
            ),
            Self::Refused { code: 403, message } => (
                format!("the API server {server} denied access to the Lease (403: {message})"),
                format!(
                    "grant the user the verbs get, create and update on leases of \
                     coordination.k8s.io in namespace \
                     {namespace}"
                ),
            ),
            Self::Refused { code: 400, message } if message.contains(NO_TLS) => (
                format!("the API server {server} speaks TLS (400: {message})"),
                "write https:// before its address in the kubeconfig".to_owned(),
            ),
            Self::Refused { code: code @ (400 | 422), message } => (
                format!("the API server {server} rejected the Lease ({code}: {message})"),
                "name another lease with --lease".to_owned(),
            ),
            Self::Refused { code, message } => (
                format!("the API server {server} returned {code}: {message}"),
                "dovetail retries".to_owned(),
            ),
            Self::NoNamespace => (
                format!("namespace {namespace} does not exist"),
                "create it, or choose a lease in another namespace with --lease".to_owned(),
            ),
            Self::NoAnswer(error) => (
                format!("the API server {server} does not answer: {error}"),
                "check its address and the network; dovetail retries".to_owned(),
            ),
            Self::Late { limit_ms } => (
                format!("the API server {server} has not answered within {limit_ms} ms"),
                "dovetail retries".to_owned(),
            ),
            Self::Unreadable => (
                format!("the response of the API server {server} is not a Lease"),
                "check its address".to_owned(),
            ),
        };
        format!("cannot {what} the lease {namespace}/{name}: {cause}: {advice}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_lease_helps_nobody_who_does_not_speak_tls() {
        let place = LeaseName { namespace: "n".to_owned(), name: "l".to_owned() };
        let told = |message: &str| {
            let trouble = Trouble::Refused { code: 400, message: message.to_owned() };
            trouble.told("read", &place, "http://a:1/")
        };
        let no_tls = told("Client sent an HTTP request to an HTTPS server.\n");
        assert!(
            no_tls.ends_with(": write https:// before its address in the kubeconfig"),
            "{no_tls}"
        );
        assert!(!no_tls.contains("--lease"), "{no_tls}");
        assert!(told("no such name").ends_with(": name another lease with --lease"));
    }
}
