//! Labels and annotations: few, short, read often.

use std::fmt;
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

/// Texts by key, ascending by key, in one piece of memory. Copies share it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Labels(Arc<[(Box<str>, Box<str>)]>);

impl Labels {
    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        let place = self.0.binary_search_by(|(have, _)| (**have).cmp(key)).ok()?;
        Some(&self.0[place].1)
    }

    /// All pairs, by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (&**key, &**value))
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<K: Into<Box<str>>, V: Into<Box<str>>> FromIterator<(K, V)> for Labels {
    /// Of pairs with the same key the last one stays.
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        let mut pairs: Vec<(Box<str>, Box<str>)> =
            pairs.into_iter().map(|(key, value)| (key.into(), value.into())).collect();
        pairs.reverse();
        pairs.sort_by(|a, b| a.0.cmp(&b.0));
        pairs.dedup_by(|later, first| later.0 == first.0);
        Self(pairs.into())
    }
}

impl<'de> Deserialize<'de> for Labels {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        read_where(input, |_| true)
    }
}

/// Reads a map and keeps only the keys that `wanted` accepts.
pub(super) fn read_where<'de, D: Deserializer<'de>>(
    input: D,
    wanted: fn(&str) -> bool,
) -> Result<Labels, D::Error> {
    struct Pairs(fn(&str) -> bool);
    impl<'de> Visitor<'de> for Pairs {
        type Value = Labels;

        fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            out.write_str("a map from text to text")
        }

        fn visit_unit<E>(self) -> Result<Labels, E> {
            Ok(Labels::default())
        }

        fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Labels, M::Error> {
            let mut pairs: Vec<(Box<str>, Box<str>)> = Vec::new();
            while let Some(key) = map.next_key::<std::borrow::Cow<'_, str>>()? {
                if (self.0)(&key) {
                    let value: Option<Box<str>> = map.next_value()?;
                    pairs.push((key.into(), value.unwrap_or_default()));
                } else {
                    map.next_value::<serde::de::IgnoredAny>()?;
                }
            }
            Ok(pairs.into_iter().collect())
        }
    }
    input.deserialize_any(Pairs(wanted))
}
