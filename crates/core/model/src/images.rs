//! Container images that a node has.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Name of an image, shared among the nodes that have it.
pub type ImageName = Arc<str>;

/// Images of one node by name, with their sizes. Copies share one list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Images(Arc<[(ImageName, i64)]>);

impl Images {
    /// Images by name and size in bytes. Of two with one name the larger counts, a size below zero
    /// as zero.
    pub fn new(named: impl IntoIterator<Item = (ImageName, i64)>) -> Self {
        let mut sizes: BTreeMap<ImageName, i64> = BTreeMap::new();
        for (name, size_bytes) in named {
            let size = sizes.entry(name).or_default();
            *size = size_bytes.max(*size);
        }
        Self(sizes.into_iter().collect())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Size of an image in bytes; `None` if it is not there.
    pub fn size_bytes(&self, name: &str) -> Option<i64> {
        let place = self.0.binary_search_by(|(have, _)| (**have).cmp(name)).ok()?;
        Some(self.0[place].1)
    }

    /// Names and sizes in bytes, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&ImageName, i64)> {
        self.0.iter().map(|(name, size_bytes)| (name, *size_bytes))
    }

    /// Whether both are one list in memory; if not, they may still be equal.
    pub fn is_same_list(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Serialize for Images {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, size_bytes)| (&**name, size_bytes)))
    }
}

impl<'d> Deserialize<'d> for Images {
    fn deserialize<D: Deserializer<'d>>(deserializer: D) -> Result<Self, D::Error> {
        let sizes = BTreeMap::<String, i64>::deserialize(deserializer)?;
        Ok(Self::new(sizes.into_iter().map(|(name, size_bytes)| (name.into(), size_bytes))))
    }
}
