//! Small pieces that the types are read with.

use std::borrow::{Borrow, Cow};
use std::fmt;
use std::num::NonZeroU64;
use std::ops::Deref;

use dovetail_model::Quantity;
use dovetail_model::quantity::MOST_OF_DEVICES;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de};

/// `null` is the same as absent: the API writes empty lists both ways.
pub fn nullable<'de, D, T>(input: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::<T>::deserialize(input)?.unwrap_or_default())
}

/// A time in milliseconds since 1970; the end of time if there is something that cannot be read as
/// one.
pub(super) fn time_or_never<'de, D: Deserializer<'de>>(
    input: D,
) -> Result<Option<NonZeroU64>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Time {
        Text(String),
        Other(de::IgnoredAny),
    }
    let time = Option::<Time>::deserialize(input)?;
    Ok(time.map(|time| {
        let read = match time {
            Time::Text(text) => text.parse::<jiff::Timestamp>().ok(),
            Time::Other(_) => None,
        };
        let time_ms = read.map(|time| time.as_millisecond().max(1).cast_unsigned());
        time_ms.and_then(NonZeroU64::new).unwrap_or(NonZeroU64::MAX)
    }))
}

/// A time in milliseconds since 1970; 0 if there is none, or one that cannot be read.
pub(super) fn time_ms<'de, D: Deserializer<'de>>(input: D) -> Result<u64, D::Error> {
    let text = Option::<JsonText<'de>>::deserialize(input)?;
    let time = text.and_then(|text| text.parse::<jiff::Timestamp>().ok());
    Ok(time.map_or(0, |time| time.as_millisecond().max(0).cast_unsigned()))
}

/// A text: a part of the JSON if nothing in it is escaped, else a copy. A `Cow` is always read as a
/// copy where it stands in an `Option` or in a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct JsonText<'a>(Cow<'a, str>);

impl Deref for JsonText<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for JsonText<'_> {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl PartialEq<str> for JsonText<'_> {
    fn eq(&self, other: &str) -> bool {
        *self.0 == *other
    }
}

impl PartialEq<&str> for JsonText<'_> {
    fn eq(&self, other: &&str) -> bool {
        *self.0 == **other
    }
}

impl fmt::Display for JsonText<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for JsonText<'a> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Cow<'de, str>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a string")
            }

            fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Cow::Borrowed(text))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Cow::Owned(text.to_owned()))
            }

            fn visit_string<E: de::Error>(self, text: String) -> Result<Self::Value, E> {
                Ok(Cow::Owned(text))
            }
        }
        input.deserialize_str(Visitor).map(Self)
    }
}

/// A moment in ms since 1970 as the API writes it, to the second; what no time can be is 1970.
pub fn timestamp(at_ms: u64) -> String {
    let at = i64::try_from(at_ms).ok().and_then(|at| jiff::Timestamp::from_millisecond(at).ok());
    format!("{:.0}", at.unwrap_or_default())
}

/// A quantity, written as text or as a plain number.
#[derive(Clone, Copy, Debug)]
pub struct JsonQuantity(pub Quantity);

/// The same of a capacity or a counter of devices, which may be larger.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeviceQuantity(pub(super) Quantity);

/// Reads quantities of at most so many units.
struct QuantityVisitor(i128);

impl de::Visitor<'_> for QuantityVisitor {
    type Value = Quantity;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a quantity such as 500m, 1.5 or 64Gi")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Quantity, E> {
        Quantity::read(text.trim(), self.0).map_err(E::custom)
    }

    fn visit_u64<E: de::Error>(self, units: u64) -> Result<Quantity, E> {
        self.visit_str(&units.to_string())
    }

    fn visit_i64<E: de::Error>(self, units: i64) -> Result<Quantity, E> {
        self.visit_str(&units.to_string())
    }

    fn visit_f64<E: de::Error>(self, units: f64) -> Result<Quantity, E> {
        self.visit_str(&units.to_string())
    }
}

impl<'de> Deserialize<'de> for JsonQuantity {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        input.deserialize_any(QuantityVisitor(i128::from(i64::MAX))).map(Self)
    }
}

impl<'de> Deserialize<'de> for DeviceQuantity {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        input.deserialize_any(QuantityVisitor(MOST_OF_DEVICES)).map(Self)
    }
}

impl JsonSchema for JsonQuantity {
    fn schema_name() -> Cow<'static, str> {
        "Amount".into()
    }

    /// Quantities of Kubernetes, without a sign.
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "x-kubernetes-int-or-string": true,
            "pattern": r"^([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE](\+|-)?[0-9]+)?$",
            "maxLength": 32,
        })
    }
}

/// A quantity in whole units, rounded up.
pub(super) fn units<'de, D: Deserializer<'de>>(input: D) -> Result<Option<i64>, D::Error> {
    Ok(Option::<JsonQuantity>::deserialize(input)?.map(|amount| amount.0.to_units()))
}

/// Seconds until something is ended. The API server takes no negative ones.
pub(crate) fn deadline_s(seconds: Option<i64>) -> Option<u32> {
    seconds.map(|seconds| u32::try_from(seconds.max(0)).unwrap_or(u32::MAX))
}
