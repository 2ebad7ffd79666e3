//! Gangs by the objects that say how many of their pods start together, and how many of these have
//! a node.

use std::collections::BTreeMap;

use dovetail_audit::GangCounts;
use dovetail_objects::{Object, Pod, labels};
use dovetail_translate::gang::{GangName, GangSource, gang_of};

use super::inventory::Inventory;

/// The gang of each pod that has not ended, in their order. `None` where a pod names none or two,
/// or nothing says how many start together.
pub(super) fn gangs(inventory: &Inventory) -> Vec<Option<GangCounts>> {
    let groups = inventory.others.values().filter_map(|object| {
        let Object::PodGroup(kind, group) = object else { return None };
        let key = (GangSource::of(*kind)?, &*group.meta.namespace, &*group.meta.name);
        Some((key, group.min_count?))
    });
    let groups: BTreeMap<(GangSource, &str, &str), u32> = groups.collect();
    let min_of = |gang: &GangName, pod: &Pod| match gang.source {
        GangSource::Plain => pod.meta.annotations.get(labels::MIN_MEMBERS)?.parse().ok(),
        source => groups.get(&(source, &*gang.namespace, &*gang.name)).copied(),
    };
    let mut gangs: BTreeMap<GangName, GangCounts> = BTreeMap::new();
    let pods = inventory.pods.list.iter().map(|record| {
        let gang = gang_of(&record.pod).ok().flatten()?;
        let min = min_of(&gang, &record.pod)?;
        let of_gang =
            gangs.entry(gang.clone()).or_insert(GangCounts { min, placed: 0, pending: 0 });
        match record.pod.node.is_empty() {
            true => of_gang.pending += 1,
            false => of_gang.placed += 1,
        }
        Some(gang)
    });
    let names: Vec<Option<GangName>> = pods.collect();
    names.into_iter().map(|name| gangs.get(&name?).copied()).collect()
}
