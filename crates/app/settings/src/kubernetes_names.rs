//! What can be a name, a label or a resource in Kubernetes: what cannot is refused before a cluster
//! is asked about it.
//!
//! The rules are those of `k8s.io/apimachinery/pkg/util/validation`. Each answers with what is
//! expected.

/// Longest name of a namespace, of a label without its prefix, and of a label's value.
const LABEL_LIMIT: usize = 63;
/// Longest name of an object, and prefix of a label.
const SUBDOMAIN_LIMIT: usize = 253;

/// Namespace and name of a Lease.
pub fn split_lease(text: &str) -> Result<(&str, &str), &'static str> {
    let expected = "a namespace and a name of lowercase letters, digits, `-` and (in the name) `.`, \
                    such as kube-system/dovetail";
    let (namespace, name) = text.split_once('/').ok_or(expected)?;
    let is_one =
        is_subdomain(namespace) && !namespace.contains('.') && namespace.len() <= LABEL_LIMIT;
    if is_one && is_subdomain(name) { Ok((namespace, name)) } else { Err(expected) }
}

/// What a pod can name in `spec.schedulerName` and a person can read.
pub fn scheduler_name(text: &str) -> Result<(), &'static str> {
    match is_subdomain(text) {
        true => Ok(()),
        false => Err("a name of lowercase letters, digits, `-` and `.`, such as dovetail"),
    }
}

/// A host and a port.
pub fn address(text: &str) -> Result<(), &'static str> {
    let port = text.rsplit_once(':').filter(|(host, _)| !host.is_empty());
    match port.is_some_and(|(_, port)| port.parse::<u16>().is_ok()) {
        true => Ok(()),
        false => Err("an address and a port, such as 127.0.0.1:10251"),
    }
}

pub(crate) fn extended_resource(text: &str) -> Result<(), &'static str> {
    match text.contains('/') && label_key(text).is_ok() {
        true => Ok(()),
        false => Err(
            "the name of an extended resource: a domain, `/` and a name, such as nvidia.com/gpu",
        ),
    }
}

pub(crate) fn label_key(text: &str) -> Result<(), &'static str> {
    let (prefix, name) =
        text.split_once('/').map_or((None, text), |(prefix, name)| (Some(prefix), name));
    match prefix.is_none_or(is_subdomain) && is_label_name(name) {
        true => Ok(()),
        false => Err(
            "the key of a label: letters, digits, `-`, `_` and `.`, at most 63, with or without a domain and \
                      `/` before it, such as example.com/pool",
        ),
    }
}

pub(crate) fn label_value(text: &str) -> Result<(), &'static str> {
    match text.is_empty() || is_label_name(text) {
        true => Ok(()),
        false => {
            Err("the value of a label: letters, digits, `-`, `_` and `.`, at most 63, such as gpu")
        }
    }
}

/// Small letters, digits, `-` and `.`; each part begins and ends with one of the first two.
fn is_subdomain(text: &str) -> bool {
    let is_part = |part: &str| {
        let has = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
        part.starts_with(has)
            && part.ends_with(has)
            && part.chars().all(|letter| has(letter) || letter == '-')
    };
    text.len() <= SUBDOMAIN_LIMIT && text.split('.').all(is_part)
}

/// Letters, digits, `-`, `_` and `.`; it begins and ends with one of the first two.
fn is_label_name(text: &str) -> bool {
    let has = |letter: char| letter.is_ascii_alphanumeric();
    text.len() <= LABEL_LIMIT
        && text.starts_with(has)
        && text.ends_with(has)
        && text.chars().all(|letter| has(letter) || matches!(letter, '-' | '_' | '.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What takes a text, what it takes, and what not.
    type Case<'t> = (fn(&str) -> bool, &'t [&'t str], &'t [&'t str]);

    #[test]
    fn what_kubernetes_takes_is_taken_and_nothing_else() {
        let long = "x".repeat(64);
        let cases: [Case<'_>; 5] = [
            (
                |text| split_lease(text).is_ok(),
                &["kube-system/dovetail", "a/b.c-d"],
                &["dovetail", "/dovetail", "a/", "a/b/c", "Bad_NS/UPPER", "a.b/c", "a/B", &long],
            ),
            (
                |text| extended_resource(text).is_ok(),
                &["nvidia.com/gpu", "amd.com/GPU_1"],
                &["not a resource!", "cpu", "/gpu", "a b/gpu", "example.com/", "a/b/c", ""],
            ),
            (
                |text| label_key(text).is_ok(),
                &["pool", "topology.kubernetes.io/zone", "A_b.c"],
                &["a b", "", "-a", "a-", "Up.com/x", &long],
            ),
            (|text| label_value(text).is_ok(), &["", "gpu", "A.b_c"], &["a b", ".a", "a/b", &long]),
            (
                |text| address(text).is_ok(),
                &["127.0.0.1:10251", "[::1]:0", "localhost:80"],
                &["", "10251", ":80", "x:99999", "host:"],
            ),
        ];
        for (takes, good, bad) in cases {
            assert!(good.iter().all(|text| takes(text)), "{good:?}");
            assert!(!bad.iter().any(|text| takes(text)), "{bad:?}");
        }
        assert!(scheduler_name("").is_err() && scheduler_name("my-scheduler").is_ok());
    }
}
