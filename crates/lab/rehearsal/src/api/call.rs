//! A request, understood: what is to be done, to which kind, where, with which options.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::failure::{ApiFailure, FieldCause, FieldFault};
use super::kind::{Kinds, ResourceKind};

/// What a request wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    /// `GET` of one object.
    Get,
    /// `GET` of a collection.
    List,
    /// `GET` with `watch`.
    Watch,
    /// `POST`, also to a subresource such as `binding`.
    Create,
    /// `PUT`.
    Update,
    Patch,
    /// `DELETE` of one object.
    Delete,
    DeleteCollection,
}

/// A request to a resource.
#[derive(Clone, Debug)]
pub struct Call {
    /// What is to be done.
    pub verb: Verb,
    /// To objects of this kind.
    pub kind: Arc<ResourceKind>,
    /// Namespace of the object or the collection, if the path names one.
    pub namespace: Option<String>,
    /// Empty for collections.
    pub name: String,
    /// Empty for the object itself.
    pub subresource: String,
    /// Options in the address.
    pub query: Query,
}

/// Where a path leads.
#[derive(Clone, Debug)]
pub enum Route {
    /// To objects.
    Call(Box<Call>),
    /// To the version of the server.
    Version,
    /// To the versions of the core group.
    CoreVersions,
    /// To all other groups.
    Groups,
    /// To the kinds of a version.
    Resources {
        /// Group; empty for the core group.
        group: String,
        /// Version within the group.
        version: String,
    },
    /// To the versions of a group.
    Group(String),
    /// To a health check.
    Healthy,
}

impl Route {
    /// `None`: there is nothing at this path.
    pub(crate) fn find(
        kinds: &Kinds,
        method: &str,
        path: &str,
        query: &str,
    ) -> Option<Result<Self, ApiFailure>> {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let (group, version, rest) = match parts.as_slice() {
            ["version"] => return Some(Ok(Self::Version)),
            ["healthz" | "readyz" | "livez"] => return Some(Ok(Self::Healthy)),
            ["api"] => return Some(Ok(Self::CoreVersions)),
            ["apis"] => return Some(Ok(Self::Groups)),
            ["apis", group] => return Some(Ok(Self::Group((*group).to_owned()))),
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => return None,
        };
        if rest.is_empty() {
            let (group, version) = (group.to_owned(), version.to_owned());
            return Some(Ok(Self::Resources { group, version }));
        }
        let (namespace, rest) = match rest {
            // `/namespaces/NAME` and its subresources are the namespace itself.
            ["namespaces", namespace, rest @ ..]
                if !rest.is_empty() && !matches!(rest, ["status" | "finalize"]) =>
            {
                (Some((*namespace).to_owned()), rest)
            }
            rest => (None, rest),
        };
        let (plural, name, subresource) = match rest {
            [plural] => (plural, "", ""),
            [plural, name] => (plural, *name, ""),
            [plural, name, subresource] => (plural, *name, *subresource),
            _ => return None,
        };
        let kind = kinds.find(group, version, plural)?;
        // An object in a namespace is only reached through it.
        if kind.namespaced != namespace.is_some() && !(name.is_empty() && namespace.is_none()) {
            return None;
        }
        let query = Query::parse(query);
        let call = verb(method, name, &query).map(|verb| {
            let (name, subresource) = (decoded(name), subresource.to_owned());
            Self::Call(Box::new(Call { verb, kind, namespace, name, subresource, query }))
        });
        Some(call)
    }
}

fn verb(method: &str, name: &str, query: &Query) -> Result<Verb, ApiFailure> {
    Ok(match method {
        "GET" if query.flag("watch") => Verb::Watch,
        "GET" if name.is_empty() => Verb::List,
        "GET" => Verb::Get,
        "POST" => Verb::Create,
        "PUT" if !name.is_empty() => Verb::Update,
        "PATCH" if !name.is_empty() => Verb::Patch,
        "DELETE" if name.is_empty() => Verb::DeleteCollection,
        "DELETE" => Verb::Delete,
        _ => return Err(ApiFailure::method_not_allowed()),
    })
}

/// Options in the address.
#[derive(Clone, Debug, Default)]
pub struct Query {
    values: BTreeMap<String, String>,
}

impl Query {
    pub(crate) fn parse(text: &str) -> Self {
        let pairs = text.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(key), decoded(&value.replace('+', " ")))
        });
        Self { values: pairs.collect() }
    }

    pub(crate) fn text(&self, key: &str) -> &str {
        self.values.get(key).map_or("", String::as_str)
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.values.contains_key(key)
    }

    pub(crate) fn flag(&self, key: &str) -> bool {
        matches!(self.text(key), "true" | "1")
    }

    /// A duration such as `4s` or `250ms`; what is none is not there.
    pub fn duration(&self, key: &str) -> Option<Duration> {
        let text = self.text(key);
        let number = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
        let count: u64 = number.parse().ok()?;
        match &text[number.len()..] {
            "ms" => Some(Duration::from_millis(count)),
            "s" => Some(Duration::from_secs(count)),
            "m" => Some(Duration::from_secs(count.checked_mul(60)?)),
            _ => None,
        }
    }

    pub(crate) fn number(&self, key: &str) -> Result<Option<u64>, ApiFailure> {
        let text = self.text(key);
        if text.is_empty() {
            return Ok(None);
        }
        text.parse().map(Some).map_err(|_| {
            let message = format!("strconv.ParseUint: parsing {text:?}: invalid syntax");
            let value = FieldFault::Invalid(format!("{text:?}"));
            match key {
                "resourceVersion" => {
                    ApiFailure::invalid("", "", "", &[FieldCause::new(key, value, &message)])
                }
                _ => ApiFailure::bad_request(message),
            }
        })
    }
}

/// Undoes percent encoding. What is no encoding stays as it is.
fn decoded(text: &str) -> String {
    if !text.contains('%') {
        return text.to_owned();
    }
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let code = text.get(at + 1..at + 3).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match (bytes[at], code) {
            (b'%', Some(code)) => {
                out.push(code);
                at += 3;
            }
            (byte, _) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(method: &str, path: &str, query: &str) -> Option<Call> {
        match Route::find(&Kinds::of_minor(37), method, path, query)? {
            Ok(Route::Call(call)) => Some(*call),
            _ => None,
        }
    }

    #[test]
    fn paths_name_kind_namespace_name_and_subresource() {
        let bind = call("POST", "/api/v1/namespaces/n/pods/p/binding", "").unwrap();
        assert_eq!((bind.verb, bind.kind.kind.as_str()), (Verb::Create, "Pod"));
        assert_eq!(bind.namespace.as_deref(), Some("n"));
        assert_eq!((bind.name.as_str(), bind.subresource.as_str()), ("p", "binding"));

        let all = call("GET", "/api/v1/pods", "watch=1&labelSelector=a%20in%20(b%2Cc)").unwrap();
        assert_eq!((all.verb, all.namespace), (Verb::Watch, None));
        assert_eq!(all.query.text("labelSelector"), "a in (b,c)");

        let own = call("PATCH", "/api/v1/namespaces/n/status", "").unwrap();
        assert_eq!((own.kind.kind.as_str(), own.name.as_str()), ("Namespace", "n"));
    }

    #[test]
    fn durations_have_units() {
        let duration = |text: &str| Query::parse(&format!("timeout={text}")).duration("timeout");
        assert_eq!(duration("250ms"), Some(Duration::from_millis(250)));
        assert_eq!(duration("4s"), Some(Duration::from_secs(4)));
        assert_eq!((duration("4"), duration(""), duration("s")), (None, None, None));
    }

    #[test]
    fn what_is_not_there_has_no_route() {
        assert!(call("GET", "/api/v1/pods/p", "").is_none());
        assert!(call("GET", "/api/v1/namespaces/n/nodes/x", "").is_none());
        assert!(call("GET", "/apis/nobody.example/v1/things", "").is_none());
        assert!(call("PUT", "/api/v1/namespaces/n/pods", "").is_none());
    }
}
