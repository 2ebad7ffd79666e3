//! The methods by name and version.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::node::ListPrices;

/// How a node's price becomes a budget for each resource; the module above says how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SplitMethod {
    /// The GPUs carry everything.
    AllIn,
    /// CPU and memory at list prices, the rest is the GPUs'.
    Residual,
    /// The weights of AWS split cost allocation data.
    AwsSplit,
    /// The weights of OpenCost's default prices.
    #[serde(rename = "opencost")]
    OpenCost,
    /// Fixed shares of the node.
    Datadog,
}

impl SplitMethod {
    /// All methods in the order in which messages list them.
    pub const ALL: [Self; 5] =
        [Self::AllIn, Self::Residual, Self::AwsSplit, Self::OpenCost, Self::Datadog];

    /// Name for the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::AllIn => "all-in",
            Self::Residual => "residual",
            Self::AwsSplit => "aws-split",
            Self::OpenCost => "opencost",
            Self::Datadog => "datadog",
        }
    }

    /// Version of the formula: it grows with every change of a figure, so that a number of last
    /// year says what it rests on.
    pub fn version(self) -> u32 {
        1
    }

    /// Name with version, as it stands beside every number: `residual/1`.
    pub fn id(self) -> String {
        format!("{}/{}", self.name(), self.version())
    }

    /// The method nobody asked for: `residual` where CPU and memory have list prices, else
    /// `all-in`.
    pub fn default_with(list_prices: Option<&ListPrices>) -> Self {
        match list_prices {
            Some(_) => Self::Residual,
            None => Self::AllIn,
        }
    }
}

impl fmt::Display for SplitMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for SplitMethod {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.map(Self::name);
        let found = Self::ALL.into_iter().find(|method| method.name() == text);
        found.ok_or_else(|| format!("`{text}` is not a split method: use {}", known.join(", ")))
    }
}
