//! The kinds of objects the server knows, and how each behaves where kinds differ.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

/// One kind of objects in one version of its group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceKind {
    /// API group, empty for the core group.
    pub group: String,
    /// Version within the group, such as `v1`.
    pub version: String,
    /// Name of the kind, such as `Pod`.
    pub kind: String,
    /// Name in paths, such as `pods`.
    pub plural: String,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// Whether `status` is written through a path of its own.
    pub has_status: bool,
    /// Whether a `PUT` without `resourceVersion` overwrites.
    pub(crate) updates_blindly: bool,
    /// Whether a deletion answers with the object instead of a `Status`.
    pub(crate) returns_deleted: bool,
    /// Whether `metadata.generation` counts changes of anything but metadata and status.
    pub(crate) counts_generations: bool,
    /// Whether it was registered as a custom resource: items of its lists name their kind.
    pub(crate) custom: bool,
}

impl ResourceKind {
    /// A custom resource: in namespaces, with a status path.
    pub fn custom(group: &str, version: &str, kind: &str, plural: &str) -> Self {
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
            namespaced: true,
            has_status: true,
            updates_blindly: false,
            returns_deleted: false,
            counts_generations: true,
            custom: true,
        }
    }

    /// The same kind outside namespaces.
    pub fn cluster_scoped(mut self) -> Self {
        self.namespaced = false;
        self
    }

    /// `v1`, or group and version.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// `pods`, or `leases.coordination.k8s.io`: how messages name the resource.
    pub(crate) fn qualified(&self) -> String {
        qualified(&self.plural, &self.group)
    }

    /// Where objects of all versions of this kind are kept.
    pub fn collection(&self) -> CollectionName {
        (self.group.clone(), self.plural.clone())
    }

    fn built_in(group: &str, version: &str, kind: &str, plural: &str) -> Self {
        Self { custom: false, ..Self::custom(group, version, kind, plural) }
    }
}

/// Group and plural: what names a collection of objects, whatever the version.
pub type CollectionName = (String, String);

fn qualified(name: &str, group: &str) -> String {
    if group.is_empty() { name.to_owned() } else { format!("{name}.{group}") }
}

/// All kinds of a server, by group, version and plural.
#[derive(Debug)]
pub(crate) struct Kinds {
    by_path: BTreeMap<(String, String, String), Arc<ResourceKind>>,
}

impl Kinds {
    /// What a server of Kubernetes 1.`minor` serves, as far as a scheduler looks.
    pub(crate) fn of_minor(minor: u32) -> Self {
        let mut kinds = Self { by_path: BTreeMap::new() };
        for line in BUILT_IN.lines() {
            if let Some((since, kind)) = built_in(line)
                && since <= minor
            {
                kinds.register(kind);
            }
        }
        kinds
    }

    pub(crate) fn register(&mut self, kind: ResourceKind) {
        let path = (kind.group.clone(), kind.version.clone(), kind.plural.clone());
        self.by_path.insert(path, Arc::new(kind));
    }

    /// Registers every served version of a CustomResourceDefinition.
    pub(crate) fn register_definition(&mut self, definition: &Value) {
        let spec = &definition["spec"];
        let names = &spec["names"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        for version in spec["versions"].as_array().into_iter().flatten() {
            if version["served"] != Value::Bool(true) {
                continue;
            }
            let mut kind = ResourceKind::custom(
                &text(&spec["group"]),
                &text(&version["name"]),
                &text(&names["kind"]),
                &text(&names["plural"]),
            );
            kind.namespaced = spec["scope"] == "Namespaced";
            kind.has_status = version["subresources"]["status"].is_object();
            self.register(kind);
        }
    }

    pub(crate) fn remove(&mut self, group: &str, version: &str) {
        self.by_path
            .retain(|(of_group, of_version, _), _| of_group != group || of_version != version);
    }

    pub(crate) fn find(
        &self,
        group: &str,
        version: &str,
        plural: &str,
    ) -> Option<Arc<ResourceKind>> {
        self.by_path.get(&(group.to_owned(), version.to_owned(), plural.to_owned())).cloned()
    }

    /// The kind with this plural, in the first group and version that has it.
    pub(crate) fn find_plural(&self, plural: &str) -> Option<Arc<ResourceKind>> {
        self.iter().find(|kind| kind.plural == plural).cloned()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<ResourceKind>> {
        self.by_path.values()
    }
}

/// Since which minor version; group (`-` for core); version; kind; plural; flags:
/// `c` outside namespaces, `s` status path, `u` blind updates, `d` returns what it deleted,
/// `g` counts generations.
const BUILT_IN: &str = "\
0 - v1 Namespace namespaces csud
0 - v1 Node nodes csu
0 - v1 Pod pods sudg
0 - v1 Event events u
0 - v1 ConfigMap configmaps u
0 - v1 Service services sud
0 - v1 ServiceAccount serviceaccounts ud
0 - v1 ReplicationController replicationcontrollers sug
0 - v1 ResourceQuota resourcequotas sud
0 - v1 PersistentVolume persistentvolumes csud
0 - v1 PersistentVolumeClaim persistentvolumeclaims sud
0 apiextensions.k8s.io v1 CustomResourceDefinition customresourcedefinitions csg
0 apps v1 DaemonSet daemonsets sug
0 apps v1 Deployment deployments sug
0 apps v1 ReplicaSet replicasets sug
0 apps v1 StatefulSet statefulsets sug
0 batch v1 Job jobs sug
0 coordination.k8s.io v1 Lease leases -
0 events.k8s.io v1 Event events u
0 flowcontrol.apiserver.k8s.io v1 FlowSchema flowschemas csg
0 flowcontrol.apiserver.k8s.io v1 PriorityLevelConfiguration prioritylevelconfigurations csg
0 policy v1 PodDisruptionBudget poddisruptionbudgets sg
0 scheduling.k8s.io v1 PriorityClass priorityclasses cu
0 storage.k8s.io v1 CSIDriver csidrivers cd
0 storage.k8s.io v1 CSINode csinodes cd
0 storage.k8s.io v1 CSIStorageCapacity csistoragecapacities u
0 storage.k8s.io v1 StorageClass storageclasses cud
0 storage.k8s.io v1 VolumeAttachment volumeattachments csd
34 resource.k8s.io v1 DeviceClass deviceclasses cdug
34 resource.k8s.io v1 ResourceClaim resourceclaims sdu
34 resource.k8s.io v1 ResourceSlice resourceslices cdug
37 scheduling.k8s.io v1beta1 PodGroup podgroups s
37 scheduling.k8s.io v1beta1 Workload workloads -
";

fn built_in(line: &str) -> Option<(u32, ResourceKind)> {
    let mut words = line.split(' ');
    let since = words.next()?.parse().ok()?;
    let group = words.next()?;
    let group = if group == "-" { "" } else { group };
    let mut kind = ResourceKind::built_in(group, words.next()?, words.next()?, words.next()?);
    let flags = words.next()?;
    kind.namespaced = !flags.contains('c');
    kind.has_status = flags.contains('s');
    kind.updates_blindly = flags.contains('u');
    kind.returns_deleted = flags.contains('d');
    kind.counts_generations = flags.contains('g');
    Some((since, kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_a_kind() {
        let count = |minor| Kinds::of_minor(minor).iter().count();
        assert_eq!(count(37), BUILT_IN.lines().count());
        assert_eq!(count(33), BUILT_IN.lines().count() - 5);
    }

    #[test]
    fn an_older_server_lacks_the_newer_groups() {
        let old = Kinds::of_minor(33);
        assert!(old.find("resource.k8s.io", "v1", "resourceclaims").is_none());
        assert!(old.find("", "v1", "pods").is_some_and(|kind| kind.has_status));
        let node = Kinds::of_minor(37).find("", "v1", "nodes");
        assert!(node.is_some_and(|kind| !kind.namespaced && !kind.counts_generations));
    }
}
