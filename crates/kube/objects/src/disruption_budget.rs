//! Pod disruption budgets.

use serde::{Deserialize, Deserializer};

use super::json::nullable;
use super::label_selector::LabelSelector;
use super::meta::Meta;

/// How many pods of a selection may be disrupted now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DisruptionBudget {
    pub meta: Meta,
    /// Which pods of the namespace; absent is none.
    pub selector: LabelSelector,
    /// How many of them may be disrupted now.
    pub disruptions_allowed: i32,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct BudgetJson {
    metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    spec: SpecJson,
    #[serde(deserialize_with = "nullable")]
    status: StatusJson,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SpecJson {
    selector: LabelSelector,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct StatusJson {
    #[serde(deserialize_with = "nullable")]
    disruptions_allowed: i32,
}

impl<'de> Deserialize<'de> for DisruptionBudget {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let BudgetJson { metadata, spec, status } = BudgetJson::deserialize(input)?;
        let disruptions_allowed = status.disruptions_allowed;
        Ok(Self { meta: metadata, selector: spec.selector, disruptions_allowed })
    }
}
