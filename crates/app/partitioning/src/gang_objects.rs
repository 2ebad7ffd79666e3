//! The objects that describe gangs: how many of their pods start together, and the labels that hold
//! for all of them.

use std::collections::BTreeMap;

use dovetail_inventory::dump::{RawObject, Skipped};
use dovetail_objects::{Kind, Labels, Object, Pod, PodGroup, WorkloadKind, WorkloadObject};
use dovetail_translate::gang::{GangName, GangObjects, GangSource, GangTerms, terms};
use dovetail_translate::levels::{KnownLevels, Rivals, TopologyLevels};

/// Groups of pods, and workloads whose pods start together.
#[derive(Default)]
pub(crate) struct GangDescriptions {
    groups: BTreeMap<GangName, PodGroup>,
    workloads: BTreeMap<(WorkloadKind, Box<str>, Box<str>), WorkloadObject>,
}

impl GangDescriptions {
    /// Takes an object that describes a gang; others are ignored.
    pub(crate) fn take(&mut self, raw: &RawObject<'_>) -> Result<(), Skipped> {
        let Some(kind) = kind_of(raw) else { return Ok(()) };
        match Object::read(kind, raw.json.as_bytes()) {
            Object::PodGroup(kind, group) => {
                let name = GangSource::of(kind).map(|source| GangName {
                    namespace: raw.namespace.into(),
                    source,
                    name: raw.name.into(),
                    part: Box::default(),
                });
                self.groups.extend(name.map(|name| (name, *group)));
            }
            Object::Workload(kind, workload) => {
                let key = (kind, raw.namespace.into(), raw.name.into());
                self.workloads.insert(key, *workload);
            }
            Object::Strange(_, strange) => {
                return Err(raw.skipped(&strange.field, &strange.problem));
            }
            _ => {}
        }
        Ok(())
    }

    /// On what terms a gang starts that has these pods; `None` if that is not known.
    pub(crate) fn terms(&self, gang: &GangName, pods: &[&Pod]) -> Option<GangTerms> {
        let (group, workload) = (self.groups.get(gang), self.workload_of(gang));
        let (levels, rivals) = (TopologyLevels::default(), Rivals::new());
        let known = KnownLevels { levels: &levels, carried: u32::MAX, rivals: &rivals };
        terms(gang, GangObjects { group, workload }, pods, known).ok()
    }

    /// Labels of the object of a gang.
    pub(crate) fn labels_of(&self, gang: &GangName) -> Option<&Labels> {
        let group = self.groups.get(gang).map(|group| &group.meta.labels);
        group.or_else(|| Some(&self.workload_of(gang)?.meta.labels))
    }

    fn workload_of(&self, gang: &GangName) -> Option<&WorkloadObject> {
        let GangSource::Workload(kind) = gang.source else { return None };
        self.workloads.get(&(kind, gang.namespace.clone(), gang.name.clone()))
    }
}

/// The kinds that describe gangs.
pub(crate) fn kinds() -> impl Iterator<Item = Kind> {
    Kind::ALL.into_iter().filter(|kind| GangSource::of(*kind).is_some())
}

/// The kind of an object if it is one of these: several operators have kinds of one name, and
/// versions of a kind come and go.
fn kind_of(raw: &RawObject<'_>) -> Option<Kind> {
    let (group, version) = raw.api_version.split_once('/').unwrap_or(("", raw.api_version));
    let of_group = || kinds().filter(|kind| kind.bare_name() == raw.kind && kind.group() == group);
    of_group().find(|kind| kind.version() == version).or_else(|| of_group().next())
}
