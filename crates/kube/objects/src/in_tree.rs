//! Volumes that once were built into Kubernetes and that CSI drivers have taken over.
//!
//! Names and handles follow `k8s.io/csi-translation-lib` 0.37.

use serde::Deserialize;

use super::json::nullable;

/// A volume as a CSI driver knows it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VolumeSource {
    pub driver: Box<str>,
    /// The driver's name for the volume.
    pub handle: Box<str>,
}

/// A plugin that a CSI driver has taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InTreePlugin {
    /// Disks of AWS.
    AwsEbs,
    AzureDisk,
    /// Disks of OpenStack.
    Cinder,
    /// Disks of Google Cloud.
    GcePd,
    /// Portworx volumes.
    Portworx,
}

impl InTreePlugin {
    /// The plugin of this name, as storage classes name it as their provisioner.
    pub fn named(name: &str) -> Option<Self> {
        [Self::AwsEbs, Self::AzureDisk, Self::Cinder, Self::GcePd, Self::Portworx]
            .into_iter()
            .find(|plugin| plugin.name() == name)
    }

    /// The name of the plugin.
    pub fn name(self) -> &'static str {
        match self {
            Self::AwsEbs => "kubernetes.io/aws-ebs",
            Self::AzureDisk => "kubernetes.io/azure-disk",
            Self::Cinder => "kubernetes.io/cinder",
            Self::GcePd => "kubernetes.io/gce-pd",
            Self::Portworx => "kubernetes.io/portworx-volume",
        }
    }

    /// The CSI driver that has taken over.
    pub fn driver(self) -> &'static str {
        match self {
            Self::AwsEbs => "ebs.csi.aws.com",
            Self::AzureDisk => "disk.csi.azure.com",
            Self::Cinder => "cinder.csi.openstack.org",
            Self::GcePd => "pd.csi.storage.gke.io",
            Self::Portworx => "pxd.portworx.com",
        }
    }
}

/// The sources that are read, as pods and volumes both write them.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct DiskJson {
    #[serde(rename = "pdName", deserialize_with = "nullable")]
    pub(super) pd_name: Box<str>,
    #[serde(rename = "volumeID", deserialize_with = "nullable")]
    pub(super) volume_id: Box<str>,
    #[serde(rename = "diskURI", deserialize_with = "nullable")]
    pub(super) disk_uri: Box<str>,
    #[serde(rename = "readOnly", deserialize_with = "nullable")]
    pub(super) read_only: bool,
}

impl DiskJson {
    /// What the CSI driver calls the volume.
    pub(super) fn source(&self, plugin: InTreePlugin) -> VolumeSource {
        let handle = match plugin {
            InTreePlugin::AwsEbs => match self.volume_id.strip_prefix("aws://") {
                Some(path) => path.rsplit('/').find(|part| !part.is_empty()).unwrap_or("").into(),
                None => self.volume_id.clone(),
            },
            InTreePlugin::AzureDisk => self.disk_uri.clone(),
            InTreePlugin::Cinder | InTreePlugin::Portworx => self.volume_id.clone(),
            InTreePlugin::GcePd => {
                format!("projects/UNSPECIFIED/zones/UNSPECIFIED/disks/{}", self.pd_name).into()
            }
        };
        VolumeSource { driver: plugin.driver().into(), handle }
    }
}
