//! The components of GPU operators that change a node when one of its labels changes.

use dovetail_model::labels::{NVIDIA_MIG_CONFIG, NVIDIA_MIG_STATE};
use dovetail_model::{Taint, TaintEffect};
use serde::{Deserialize, Serialize};

use crate::names::{
    AMD_CONFIG_MAP, AMD_PROFILE, AMD_PROFILE_STATE, AMD_TAINT, AMD_TAINT_VALUE, MIG_CONFIG_MAP,
    PLUGIN_CONFIG, SHARING_CONFIG_MAP,
};

/// A component that reads named settings from a ConfigMap, and which of them from a label.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Component {
    /// Cuts NVIDIA's GPUs into MIG instances, and reports in a label how far it is.
    #[default]
    MigManager,
    /// Offers NVIDIA's GPUs, or replicas of them. It reports nothing but what it offers.
    DevicePlugin,
    /// Partitions AMD's GPUs, and reports in a label what came of it.
    DeviceConfigManager,
}

impl Component {
    pub(crate) const ALL: [Self; 3] =
        [Self::MigManager, Self::DevicePlugin, Self::DeviceConfigManager];

    /// The label of a node that names its settings.
    pub fn label(self) -> &'static str {
        match self {
            Self::MigManager => NVIDIA_MIG_CONFIG,
            Self::DevicePlugin => PLUGIN_CONFIG,
            Self::DeviceConfigManager => AMD_PROFILE,
        }
    }

    /// The label in which it reports what came of them; `None` if it reports nothing.
    pub fn state_label(self) -> Option<&'static str> {
        match self {
            Self::MigManager => Some(NVIDIA_MIG_STATE),
            Self::DevicePlugin => None,
            Self::DeviceConfigManager => Some(AMD_PROFILE_STATE),
        }
    }

    /// What it reports when it has failed.
    pub(crate) fn failure(self) -> &'static str {
        match self {
            Self::DeviceConfigManager => "failure",
            _ => "failed",
        }
    }

    /// The taint that makes the pods of its operator leave the GPUs before it can change them, and
    /// start again afterwards; `None` if it sees to that itself.
    pub fn clearing_taint(self) -> Option<Taint> {
        (self == Self::DeviceConfigManager).then(|| Taint {
            key: AMD_TAINT.to_owned(),
            value: AMD_TAINT_VALUE.to_owned(),
            effect: TaintEffect::NoExecute,
        })
    }

    /// The ConfigMap with the settings, once `partition setup` is applied.
    pub fn config_map(self) -> &'static str {
        match self {
            Self::MigManager => MIG_CONFIG_MAP,
            Self::DevicePlugin => SHARING_CONFIG_MAP,
            Self::DeviceConfigManager => AMD_CONFIG_MAP,
        }
    }

    /// The component in a sentence.
    pub fn words(self) -> &'static str {
        match self {
            Self::MigManager => "mig-manager",
            Self::DevicePlugin => "the device plugin",
            Self::DeviceConfigManager => "Device Config Manager",
        }
    }
}
