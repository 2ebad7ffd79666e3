//! HyperNodes of Volcano (`topology.volcano.sh/v1alpha1`): nodes that share a switch, and
//! HyperNodes of those.

use serde::{Deserialize, Deserializer};

use super::json::nullable;
use super::label_selector::LabelSelector;
use super::meta::Meta;

/// A part of the network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HyperNode {
    pub meta: Meta,
    /// 1 is nearest to the nodes.
    pub tier: u32,
    /// What belongs to it.
    pub members: Box<[HyperNodeMember]>,
}

/// Nodes, or HyperNodes of a lower tier, that belong to a HyperNode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HyperNodeMember {
    /// Whether HyperNodes are meant, and not nodes.
    pub is_hyper_node: bool,
    pub selector: HyperNodeSelector,
}

/// Which nodes or HyperNodes are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HyperNodeSelector {
    Name(Box<str>),
    /// Those whose name has a match of this regular expression.
    Pattern(Box<str>),
    /// Those with these labels.
    Labels(LabelSelector),
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct HyperNodeJson {
    metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    spec: SpecJson,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SpecJson {
    #[serde(deserialize_with = "nullable")]
    tier: u32,
    #[serde(deserialize_with = "nullable")]
    members: Vec<MemberJson>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct MemberJson {
    #[serde(rename = "type", deserialize_with = "nullable")]
    kind: Box<str>,
    #[serde(deserialize_with = "nullable")]
    selector: SelectorJson,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SelectorJson {
    exact_match: Option<NameJson>,
    regex_match: Option<PatternJson>,
    label_match: LabelSelector,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NameJson {
    #[serde(deserialize_with = "nullable")]
    name: Box<str>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PatternJson {
    #[serde(deserialize_with = "nullable")]
    pattern: Box<str>,
}

impl<'de> Deserialize<'de> for HyperNode {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let HyperNodeJson { metadata, spec } = HyperNodeJson::deserialize(input)?;
        let member = |member: MemberJson| HyperNodeMember {
            is_hyper_node: &*member.kind == "HyperNode",
            selector: match (member.selector.exact_match, member.selector.regex_match) {
                (Some(exact), _) => HyperNodeSelector::Name(exact.name),
                (None, Some(regex)) => HyperNodeSelector::Pattern(regex.pattern),
                (None, None) => HyperNodeSelector::Labels(member.selector.label_match),
            },
        };
        let members = spec.members.into_iter().map(member).collect();
        Ok(Self { meta: metadata, tier: spec.tier, members })
    }
}
