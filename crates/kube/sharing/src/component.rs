//! The components of NVIDIA's GPU Operator that change a node when one of its labels changes.

use dovetail_model::labels::NVIDIA_MIG_CONFIG;
use serde::{Deserialize, Serialize};

use crate::names::{MIG_CONFIG_MAP, PLUGIN_CONFIG, SHARING_CONFIG_MAP};

/// A component that reads named settings from a ConfigMap, and which of them from a label.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Component {
    /// Cuts GPUs into MIG instances, and reports in a label how far it is.
    #[default]
    MigManager,
    /// Offers GPUs, or replicas of them. It reports nothing but what it offers.
    DevicePlugin,
}

impl Component {
    /// The label of a node that names its settings.
    pub fn label(self) -> &'static str {
        match self {
            Self::MigManager => NVIDIA_MIG_CONFIG,
            Self::DevicePlugin => PLUGIN_CONFIG,
        }
    }

    /// The ConfigMap with the settings, once `partition setup` is applied.
    pub fn config_map(self) -> &'static str {
        match self {
            Self::MigManager => MIG_CONFIG_MAP,
            Self::DevicePlugin => SHARING_CONFIG_MAP,
        }
    }

    /// The component in a sentence.
    pub fn words(self) -> &'static str {
        match self {
            Self::MigManager => "mig-manager",
            Self::DevicePlugin => "the device plugin",
        }
    }
}
