//! The releases of Kubernetes that a control plane can have.

use std::str::FromStr;

use thiserror::Error;

use super::module::{KUBERNETES, KUBERNETES_1_35, Module, ORACLE, ORACLE_1_35};

/// A release of Kubernetes. The patch level stands in its `go.mod`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Release {
    /// The one that the project follows, with Kubernetes' own gangs on.
    #[default]
    V1_37,
    /// The oldest one that the project is run on. It has no gangs of its own in a version that is
    /// read.
    V1_35,
}

/// The variable that chooses the release of control planes whose options do not.
const VARIABLE: &str = "DOVETAIL_KUBERNETES";

impl Release {
    /// What `DOVETAIL_KUBERNETES` says; without it the release that the project follows.
    ///
    /// # Errors
    /// When it says something else than a release that is kept here.
    pub fn chosen() -> Result<Self, UnknownRelease> {
        match std::env::var(VARIABLE) {
            Ok(name) if !name.is_empty() => name.parse::<Self>(),
            _ => Ok(Self::default()),
        }
    }

    /// Whether its API server has the PodGroups of `scheduling.k8s.io/v1beta1`.
    #[must_use]
    pub fn has_gangs(self) -> bool {
        self == Self::V1_37
    }

    /// Whether its API server keeps counters that devices of ResourceSlices share.
    #[must_use]
    pub fn has_shared_counters(self) -> bool {
        self == Self::V1_37
    }

    pub(super) fn control_plane(self) -> &'static Module {
        match self {
            Self::V1_37 => &KUBERNETES,
            Self::V1_35 => &KUBERNETES_1_35,
        }
    }

    pub(super) fn oracle(self) -> &'static Module {
        match self {
            Self::V1_37 => &ORACLE,
            Self::V1_35 => &ORACLE_1_35,
        }
    }
}

impl FromStr for Release {
    type Err = UnknownRelease;

    fn from_str(name: &str) -> Result<Self, UnknownRelease> {
        match name {
            "1.37" => Ok(Self::V1_37),
            "1.35" => Ok(Self::V1_35),
            _ => Err(UnknownRelease(name.to_owned())),
        }
    }
}

/// A name that is no release that is kept here.
#[derive(Debug, Error)]
#[error(
    "`{0}` is no release of Kubernetes that can be built here: use 1.37 or 1.35 (in `--kubernetes`, or in DOVETAIL_KUBERNETES)"
)]
pub struct UnknownRelease(String);
