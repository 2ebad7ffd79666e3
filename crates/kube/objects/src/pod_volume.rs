//! The volumes of a pod that matter for placing it.

use serde::Deserialize;

use super::in_tree::{DiskJson, InTreePlugin, VolumeSource};
use super::json::nullable;

/// One volume of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PodVolume {
    /// A claim of the pod's namespace, by name.
    Claim(Box<str>),
    /// A claim made for this pod alone, by the name it gets.
    Ephemeral(Box<str>),
    /// A disk named in the pod itself.
    Disk(Box<Disk>),
}

/// A disk named in a pod itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Disk {
    /// What two pods of one node must not both use: a name for each way to reach the disk.
    pub conflicts: Box<[Box<str>]>,
    /// Whether two pods may use it all the same if both only read.
    pub readers_share: bool,
    /// Whether this pod only reads it.
    pub read_only: bool,
    /// What it is for the CSI driver that has taken over from the in-tree plugin.
    pub migrated: Option<VolumeSource>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct PodVolumeJson {
    #[serde(deserialize_with = "nullable")]
    name: Box<str>,
    persistent_volume_claim: Option<ClaimJson>,
    ephemeral: Option<serde::de::IgnoredAny>,
    #[serde(deserialize_with = "nullable")]
    image: ImageVolumeJson,
    aws_elastic_block_store: Option<DiskJson>,
    azure_disk: Option<DiskJson>,
    cinder: Option<DiskJson>,
    gce_persistent_disk: Option<DiskJson>,
    portworx_volume: Option<DiskJson>,
    iscsi: Option<IscsiJson>,
    rbd: Option<RbdJson>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ImageVolumeJson {
    #[serde(deserialize_with = "nullable")]
    reference: Box<str>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ClaimJson {
    #[serde(deserialize_with = "nullable")]
    claim_name: Box<str>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct IscsiJson {
    #[serde(deserialize_with = "nullable")]
    iqn: Box<str>,
    #[serde(deserialize_with = "nullable")]
    read_only: bool,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RbdJson {
    #[serde(deserialize_with = "nullable")]
    monitors: Vec<Box<str>>,
    #[serde(deserialize_with = "nullable")]
    pool: Box<str>,
    #[serde(deserialize_with = "nullable")]
    image: Box<str>,
    #[serde(deserialize_with = "nullable")]
    read_only: bool,
}

impl PodVolumeJson {
    /// The image that it is made from; empty if from none.
    pub(super) fn image(&self) -> &str {
        &self.image.reference
    }

    /// The volume of a pod of this name, if it matters.
    pub(super) fn read(self, pod: &str) -> Option<PodVolume> {
        if let Some(claim) = self.persistent_volume_claim {
            return Some(PodVolume::Claim(claim.claim_name));
        }
        if self.ephemeral.is_some() {
            return Some(PodVolume::Ephemeral(format!("{pod}-{}", self.name).into()));
        }
        self.disk().map(|disk| PodVolume::Disk(Box::new(disk)))
    }

    /// Disks, with the rules of kube-scheduler's `VolumeRestrictions`.
    fn disk(self) -> Option<Disk> {
        use InTreePlugin::{AwsEbs, AzureDisk, Cinder, GcePd, Portworx};
        let migrated = |disk: &DiskJson, plugin| Some(disk.source(plugin));
        if let Some(disk) = &self.gce_persistent_disk {
            return Some(Disk {
                conflicts: [format!("gce/{}", disk.pd_name).into()].into(),
                readers_share: true,
                read_only: disk.read_only,
                migrated: migrated(disk, GcePd),
            });
        }
        if let Some(disk) = &self.aws_elastic_block_store {
            let conflicts = [format!("ebs/{}", disk.volume_id).into()].into();
            return Some(Disk { conflicts, migrated: migrated(disk, AwsEbs), ..Disk::default() });
        }
        if let Some(iscsi) = self.iscsi {
            let conflicts = [format!("iscsi/{}", iscsi.iqn).into()].into();
            let read_only = iscsi.read_only;
            return Some(Disk { conflicts, readers_share: true, read_only, migrated: None });
        }
        if let Some(rbd) = self.rbd {
            let name = |monitor| format!("rbd/{monitor}/{}/{}", rbd.pool, rbd.image).into();
            let conflicts = rbd.monitors.iter().map(name).collect();
            let read_only = rbd.read_only;
            return Some(Disk { conflicts, readers_share: true, read_only, migrated: None });
        }
        let others = [
            (&self.azure_disk, AzureDisk),
            (&self.cinder, Cinder),
            (&self.portworx_volume, Portworx),
        ];
        let (disk, plugin) = others.into_iter().find_map(|(d, p)| Some((d.as_ref()?, p)))?;
        Some(Disk { migrated: migrated(disk, plugin), ..Disk::default() })
    }
}
