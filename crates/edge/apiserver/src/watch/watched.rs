//! An object as it comes over the wire: its text, read once its kind is known.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::core::DynamicResourceScope;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use dovetail_objects::{Kind, Object, ReadFields};

/// The text of an object, with as much of its metadata as a watch needs to go on.
///
/// In an event of a watch its type must come before the object, as API servers write it: what had
/// to be put aside until the type is known has no text any more.
#[derive(Clone, Debug)]
pub(super) struct Watched {
    meta: ObjectMeta,
    text: Box<RawValue>,
}

impl Watched {
    /// The object, with the JSON of what is read of it if that is to be kept. What cannot be read
    /// of it concerns it alone.
    pub(super) fn object(
        &self,
        kind: Kind,
        fields: Option<&mut ReadFields>,
    ) -> (Object, Option<Box<str>>) {
        let json = self.text.get().as_bytes();
        match fields {
            None => (Object::read(kind, json), None),
            Some(fields) => {
                let (object, json) = fields.read(kind, json);
                (object, Some(json))
            }
        }
    }
}

impl<'de> Deserialize<'de> for Watched {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Head {
            metadata: Version,
        }
        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        struct Version {
            resource_version: Option<String>,
        }
        let text = Box::<RawValue>::deserialize(input)?;
        let head: Head = serde_json::from_str(text.get()).unwrap_or_default();
        let resource_version = head.metadata.resource_version;
        Ok(Self { meta: ObjectMeta { resource_version, ..ObjectMeta::default() }, text })
    }
}

impl Resource for Watched {
    type DynamicType = (Kind, &'static str);
    type Scope = DynamicResourceScope;

    fn kind((kind, _): &Self::DynamicType) -> Cow<'_, str> {
        kind.name().into()
    }

    fn group((kind, _): &Self::DynamicType) -> Cow<'_, str> {
        kind.group().into()
    }

    fn version((_, version): &Self::DynamicType) -> Cow<'_, str> {
        (*version).into()
    }

    fn plural((kind, _): &Self::DynamicType) -> Cow<'_, str> {
        kind.plural().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.meta
    }
}
