//! What an object is, before anybody knows what to read of it.

use dovetail_objects::json::JsonText;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny};
use serde_json::value::RawValue;

use super::RawObject;

/// Kind, version and name of an object.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ObjectHeader<'a> {
    #[serde(borrow, default)]
    kind: Option<JsonText<'a>>,
    #[serde(borrow, default)]
    api_version: Option<JsonText<'a>>,
    #[serde(borrow, default)]
    metadata: Option<HeadMeta<'a>>,
    /// Whether it has the field `items`, whatever that holds.
    #[serde(rename = "items", default, deserialize_with = "is_there")]
    pub(super) is_list: bool,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct HeadMeta<'a> {
    #[serde(borrow, default)]
    namespace: Option<JsonText<'a>>,
    #[serde(borrow, default)]
    name: Option<JsonText<'a>>,
    #[serde(borrow, default)]
    resource_version: Option<&'a RawValue>,
}

fn is_there<'de, D: Deserializer<'de>>(input: D) -> Result<bool, D::Error> {
    IgnoredAny::deserialize(input).map(|_| true)
}

impl ObjectHeader<'_> {
    /// Kind and version of the objects of a list, each empty if the list does not say it; `None` if
    /// it is no list.
    pub(super) fn listed(&self) -> Option<(&str, &str)> {
        let kind = self.kind.as_deref().unwrap_or("List").strip_suffix("List")?;
        self.is_list.then(|| (kind, self.api_version.as_deref().unwrap_or_default()))
    }

    /// The object whose head it is; `kind` and `api_version` are those of its list, where it says
    /// none itself. `None` if nobody says the kind.
    pub(super) fn object<'h>(
        &'h self,
        json: &'h str,
        file: &'h str,
        (kind, api_version): (&'h str, &'h str),
    ) -> Option<RawObject<'h>> {
        let metadata = self.metadata.as_ref();
        let namespace = metadata.and_then(|metadata| metadata.namespace.as_deref());
        let name = metadata.and_then(|metadata| metadata.name.as_deref());
        let version = metadata.and_then(|metadata| metadata.resource_version);
        let kind = self.kind.as_deref().unwrap_or(kind);
        (!kind.is_empty()).then(|| RawObject {
            kind,
            api_version: self.api_version.as_deref().unwrap_or(api_version),
            namespace: namespace.unwrap_or_default(),
            name: name.unwrap_or_default(),
            version: version.and_then(|version| version.get().trim_matches('"').parse().ok()),
            json,
            file,
        })
    }
}
