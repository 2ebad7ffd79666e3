//! Names of objects in commands and sentences.

use dovetail_facts::ObjectRef;
use dovetail_model::Job;

/// Longer names are on no server.
const LONGEST_NAME: usize = 253;

/// Whether a server takes the names of an object: letters, digits and a few signs, so none can be
/// taken for a flag or for anything else.
pub fn is_name(object: &ObjectRef) -> bool {
    let is_plain = |text: &str| {
        text.starts_with(|letter: char| letter.is_ascii_alphanumeric())
            && text.len() <= LONGEST_NAME
            && text.chars().all(|letter| letter.is_ascii_alphanumeric() || "-._:".contains(letter))
    };
    let is_kind = object.kind.chars().all(|letter| letter.is_ascii_alphanumeric());
    let has_namespace = object.namespace.is_empty() || is_plain(&object.namespace);
    let is_cluster = object.kind == "Cluster" && object.name.is_empty();
    is_kind && has_namespace && (is_cluster || is_plain(&object.name))
}

/// The first of these names, and how many more there are.
pub fn first_of<'n>(mut names: impl ExactSizeIterator<Item = &'n String>, most: usize) -> String {
    let first: Vec<&str> = names.by_ref().take(most).map(String::as_str).collect();
    match names.len() {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

/// Namespace and name of a pending job. Gangs say before it what they are (`jobset ml/run`), and
/// after it which of several (`ml/run group 0`); pods that do not exist yet say in brackets why.
pub(crate) fn place_of(job: &Job) -> (&str, &str) {
    let name = job.name.split(" (").next().unwrap_or(&job.name);
    let Some((before, name)) = name.split_once('/') else { return ("", name) };
    let namespace = before.rsplit(' ').next().unwrap_or(before);
    (namespace, name.split(" group ").next().unwrap_or(name))
}
