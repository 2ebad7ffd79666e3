//! Which nodes are machines of one's own.

use std::collections::BTreeMap;

use crate::asked::PriceQuery;

/// Labels that a node must all have, as `KEY=VALUE`, several joined by commas; `*` stands for any
/// value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LabelPairs(Vec<(String, String)>);

impl LabelPairs {
    /// Reads them; `None` for a part without a key or a value.
    pub fn read(text: &str) -> Option<Self> {
        let pair = |part: &str| {
            let (key, value) = part.split_once('=')?;
            let (key, value) = (key.trim(), value.trim());
            (!key.is_empty() && !value.is_empty()).then(|| (key.to_owned(), value.to_owned()))
        };
        text.split(',').map(pair).collect::<Option<Vec<_>>>().map(Self)
    }

    /// Whether a node with these labels has all of them.
    pub fn hold(&self, labels: &BTreeMap<String, String>) -> bool {
        let holds = |key: &String, value: &String| {
            labels.get(key).is_some_and(|is| value == "*" || is == value)
        };
        self.0.iter().all(|(key, value)| holds(key, value))
    }

    /// The labels that are looked at.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(key, _)| key.as_str())
    }
}

/// Nodes that are machines of one kind that was bought. Where nothing is named, these are the nodes
/// of no cloud that [`crate::node_place`] knows: whoever rents a machine pays rent for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnedNodes {
    /// Provider by its name in the book, or what stands before `://` in `spec.providerID`.
    pub provider: Option<String>,
    /// Labels, any of these; none is any node.
    pub labels: Vec<LabelPairs>,
}

impl OwnedNodes {
    /// Whether nothing is named.
    pub(crate) fn is_open(&self) -> bool {
        self.provider.is_none() && self.labels.is_empty()
    }

    /// Whether a node is one of them.
    pub(crate) fn have(&self, asked: &PriceQuery<'_>) -> bool {
        if self.is_open() {
            return asked.provider.is_none();
        }
        let scheme = asked.provider_id.split_once("://").map(|(scheme, _)| scheme);
        let is_theirs = |name: &String| [asked.provider, scheme].contains(&Some(name.as_str()));
        let has = |pairs: &LabelPairs| asked.labels.is_some_and(|labels| pairs.hold(labels));
        self.provider.as_ref().is_none_or(is_theirs)
            && (self.labels.is_empty() || self.labels.iter().any(has))
    }
}
