//! Slices and claims, put into nodes and pods.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dovetail_facts::{Gpus, NodeGpus};
use dovetail_gpus::{discovered_gpus, model_label, model_of_product};
use dovetail_model::GpuParts;
use dovetail_objects::Node;

use super::offer::{ClaimOffer, Hold, Offered};
use super::share::{Users, UsersOf, shares};
use super::slice::{ClaimableDevice, DeviceKey, newest};
use super::waiting::Cuttable;
use super::{ClaimOf, DeviceObjects, Key, UntoldPod};
use crate::facts::life::note_claimed;
use crate::facts::node::ReadNode;
use crate::facts::pods::{PodRecord, Pods};
use crate::facts::unmade::UnmadeWork;

/// What cannot be told of GPUs by claims.
#[derive(Default)]
pub(in crate::facts) struct Doubts {
    /// In words.
    pub(in crate::facts) told: Vec<String>,
    /// Pods that wait for nobody knows which of them.
    pub(in crate::facts) untold: Vec<UntoldPod>,
}

/// What a pod holds of one resource.
#[derive(Default)]
struct ResourceHolding {
    units: i64,
    /// How much of GPUs that is, where units do not say it.
    gpu_milli: Option<i64>,
}

/// By number of the pod, resource, and whether the pod asks for the same by an extended resource.
type Holdings = BTreeMap<(usize, String, bool), ResourceHolding>;

/// Nodes and pods as they were read, into which it is put what slices offer and claims hold.
pub(in crate::facts) struct Claimed<'i> {
    pub(in crate::facts) nodes: &'i mut BTreeMap<String, Node>,
    pub(in crate::facts) read_nodes: &'i mut BTreeMap<String, ReadNode>,
    pub(in crate::facts) pods: &'i mut Pods,
    pub(in crate::facts) waiting: &'i mut UnmadeWork,
}

impl Claimed<'_> {
    /// Puts the GPUs that slices offer into nodes, and what claims hold and want of them into pods.
    pub(in crate::facts) fn count(mut self, mut objects: DeviceObjects) -> Doubts {
        let slices = std::mem::take(&mut objects.slices);
        let (devices, mut told) = newest(slices.into_values());
        told.extend(objects.unread_in_words());
        let mut doubts = Doubts { told, untold: Vec::new() };
        self.rename_what_classes_serve(&objects, &mut doubts.untold);
        let users = users(&objects, self.pods, &devices, &mut doubts.told);
        let (holds, holdings) = holdings(&devices, &self.milli_of(&devices), &users);
        let counted_by_plugin = self.offer(&objects, &devices, &holds, &mut doubts.told);
        for ((number, resource, is_also_asked), holding) in holdings {
            let Pods { list, groups, lives, lives_by_claims, .. } = &mut *self.pods;
            let record = &mut list[number];
            // A device plugin counts whole devices, or what it calls them itself.
            let is_counted = self.read_nodes.get(&*record.pod.node).is_some_and(|read| {
                !counted_by_plugin.contains(&record.pod.node)
                    || read.node.gpus.contains_key(&resource)
            });
            if is_counted {
                note(record, &resource, &holding, is_also_asked);
                if !is_also_asked {
                    note_claimed(lives, lives_by_claims, &record.pod, (&resource, holding.units));
                    let template = &mut groups[record.group].common.template;
                    let of_pod = template.claimed_gpus.entry(resource).or_default();
                    *of_pod = holding.units.max(*of_pod);
                }
            }
        }
        self.want_claimed(&objects, &cuttable(&devices), &mut doubts.untold);
        doubts
    }

    /// How much of a GPU each device is, in milli-GPU.
    fn milli_of<'d>(
        &self,
        devices: &'d BTreeMap<DeviceKey, ClaimableDevice>,
    ) -> BTreeMap<&'d DeviceKey, i64> {
        let of_nodes = by_node(devices).into_iter();
        let of_each = of_nodes.flat_map(|(name, devices)| {
            let label = self.nodes.get(name).and_then(label_of);
            ClaimOffer::milli_of_each(&devices, label.as_deref())
        });
        of_each.collect()
    }

    /// Puts devices into the nodes that they are in. Answers with the nodes whose GPUs a device
    /// plugin counts.
    fn offer(
        &mut self,
        objects: &DeviceObjects,
        devices: &BTreeMap<DeviceKey, ClaimableDevice>,
        holds: &BTreeMap<&DeviceKey, Hold>,
        told: &mut Vec<String>,
    ) -> BTreeSet<Box<str>> {
        let mut counted_by_plugin = BTreeSet::new();
        for (name, devices) in by_node(devices) {
            let Some(object) = self.nodes.get_mut(name) else { continue };
            let Some(read) = self.read_nodes.get_mut(name) else { continue };
            let label = label_of(object);
            let offer = ClaimOffer::of(&devices, holds, label.as_deref());
            if offer.has_other_models {
                let model = offer.model.as_deref().unwrap_or("one of them");
                told.push(format!(
                    "node {name} has GPUs of several models: all of them count as {model}"
                ));
            }
            match twice(read, object, &offer) {
                Some(by_plugin) => {
                    told.push(format!(
                        "node {name} offers {by_plugin} GPUs by device plugin and {} by resource slices: the device \
                         plugin's count is used",
                        offer.gpus
                    ));
                    let counts = |resource: &str| read.node.gpus.contains_key(resource);
                    let apart =
                        ClaimOffer::beside_plugin(&devices, holds, label.as_deref(), counts);
                    let mut names = devices.iter().map(|(_, device)| device.driver.resource);
                    let whole = names.find(|name| read.node.gpus.contains_key(*name));
                    if let Some((apart, whole)) = apart.zip(whole) {
                        set_apart(object, read, &apart, whole);
                    }
                    counted_by_plugin.insert(name.into());
                }
                None => put(object, read, &offer),
            }
            for (resource, gpus) in &mut read.node.gpus {
                gpus.claimable |= offer.units.contains_key(resource);
                // A class that names the resource serves containers that ask for it, too.
                gpus.by_claims &= objects.classes.serving(resource).is_none();
            }
        }
        counted_by_plugin
    }
}

/// What whole GPUs can still be cut into.
fn cuttable(devices: &BTreeMap<DeviceKey, ClaimableDevice>) -> Cuttable {
    by_node(devices).into_values().flat_map(|devices| ClaimOffer::cuttable(&devices)).collect()
}

fn by_node(
    devices: &BTreeMap<DeviceKey, ClaimableDevice>,
) -> BTreeMap<&str, Vec<(&DeviceKey, &ClaimableDevice)>> {
    let mut of_nodes: BTreeMap<&str, Vec<(&DeviceKey, &ClaimableDevice)>> = BTreeMap::new();
    for (key, device) in devices {
        of_nodes.entry(&*device.node).or_default().push((key, device));
    }
    of_nodes
}

/// The model by the label of a node, behind which the label may name a slice.
fn label_of(object: &Node) -> Option<String> {
    model_label(&object.meta.labels).map(|label| model_of_product(label).to_owned())
}

/// Whom each device was given to: the pods that its claim is reserved for, else those that refer to
/// the claim.
fn users<'c>(
    objects: &'c DeviceObjects,
    pods: &Pods,
    devices: &BTreeMap<DeviceKey, ClaimableDevice>,
    told: &mut Vec<String>,
) -> UsersOf<'c> {
    let referring = referring(pods);
    let mut users = UsersOf::new();
    for (key, claim) in &objects.claims {
        let Some(given) = claim.given.as_ref().filter(|given| !given.is_empty()) else { continue };
        let reserved = claim.pods.iter().filter_map(|pod| pods.number_of(&key.0, pod));
        let mut holders: Vec<usize> = reserved.collect();
        if holders.is_empty() {
            holders = referring.get(key).cloned().unwrap_or_default();
        }
        let waits = holders.iter().find(|number| pods.list[**number].pod.node.is_empty());
        let waiting = waits.map(|number| &*pods.list[*number].pod.meta.name);
        holders.retain(|number| !pods.list[*number].pod.node.is_empty());
        let is_kept = waiting.is_some() || !claim.pods.is_empty();
        if holders.is_empty() {
            let why = why_unseen(waiting, claim.pods.first().map(|pod| &**pod));
            let count = given.len();
            told.push(format!(
                "claim {}/{} has allocated devices ({count}), and {why}",
                key.0, key.1
            ));
        }
        for given in given {
            let device = devices.get(&given.device);
            let (driver, pool, name) = &given.device;
            if !devices.is_empty() && device.is_none() {
                told.push(format!(
                    "claim {}/{} has {name} of pool {pool} allocated, which driver {driver} does not offer",
                    key.0, key.1
                ));
            }
            // A pod uses what is in its own node.
            let (here, elsewhere): (Vec<usize>, Vec<usize>) = holders
                .iter()
                .copied()
                .partition(|number| device.is_none_or(|d| d.node == pods.list[*number].pod.node));
            if let Some(first) = elsewhere.first() {
                let pod = &pods.list[*first].pod;
                told.push(format!(
                    "claim {}/{} has {name} of pool {pool} allocated, which is not on node {} of its pod {}: the \
                     device is not counted for the pod",
                    key.0, key.1, pod.node, pod.meta.name
                ));
            }
            let of_device = users.entry(&given.device).or_default();
            let is_also_asked = claim.is_for_extended_resource;
            let is_kept = is_kept || !elsewhere.is_empty();
            of_device.push(Users { given, pods: here, is_also_asked, is_kept });
        }
    }
    users
}

/// Why nobody is seen with devices that were given to a claim: its pod waits, or the one that it is
/// reserved for is gone.
fn why_unseen(waiting: Option<&str>, reserved: Option<&str>) -> String {
    match (waiting, reserved) {
        (Some(pod), _) => {
            format!(
                "its pod {pod} has no node yet: they count as allocated, and their use is unknown"
            )
        }
        (None, Some(pod)) => format!(
            "pod {pod}, for which it is reserved, has finished or was not read: their use is \
             unknown"
        ),
        (None, None) => "no pod uses it: they count as free".to_owned(),
    }
}

/// Numbers of the pods that refer to each claim.
fn referring(pods: &Pods) -> BTreeMap<Key, Vec<usize>> {
    let mut referring: BTreeMap<Key, Vec<usize>> = BTreeMap::new();
    for (number, record) in pods.list.iter().enumerate() {
        for ClaimOf { claim, .. } in record.claims.iter().filter(|of| !of.claim.is_empty()) {
            let key = (record.pod.meta.namespace.clone(), claim.clone());
            referring.entry(key).or_default().push(number);
        }
    }
    referring
}

/// How each device is held, and what each pod holds.
fn holdings<'c>(
    devices: &BTreeMap<DeviceKey, ClaimableDevice>,
    milli_of: &BTreeMap<&DeviceKey, i64>,
    users: &UsersOf<'c>,
) -> (BTreeMap<&'c DeviceKey, Hold>, Holdings) {
    let (mut holds, mut holdings) = (BTreeMap::new(), Holdings::new());
    for (key, users) in users {
        let Some(device) = devices.get(*key) else { continue };
        let Some(shares) = shares(device, users) else { continue };
        holds.insert(*key, shares.hold);
        let is_also_asked = users.iter().all(|user| user.is_also_asked);
        // Shares of a part of a GPU add up to that part.
        let device_milli = milli_of.get(*key).copied().unwrap_or(0);
        let at = |milli: i64| device_milli * milli / 1000;
        let mut taken_milli = 0;
        for (pod, milli) in shares.of_pods {
            let resource = match (shares.hold, &device.part) {
                (Hold::Shared(_), _) => device.driver.shared(),
                (Hold::Alone | Hold::Unseen, Some(profile)) => device.driver.part(profile),
                (Hold::Alone | Hold::Unseen, None) => device.driver.resource.to_owned(),
            };
            let holding: &mut ResourceHolding =
                holdings.entry((pod, resource, is_also_asked)).or_default();
            holding.units += 1;
            if shares.hold != Hold::Alone {
                let share = at(taken_milli + milli) - at(taken_milli);
                *holding.gpu_milli.get_or_insert(0) += share;
            }
            taken_milli += milli;
        }
    }
    (holds, holdings)
}

fn note(record: &mut PodRecord, resource: &str, holding: &ResourceHolding, is_also_asked: bool) {
    let pod = Arc::make_mut(&mut record.pod);
    pod.has_resource_claims = false;
    for holds in pod.held.iter_mut().map(|held| &mut **held).chain([&mut pod.requests]) {
        let units = holds.extended.entry(resource.to_owned()).or_default();
        *units = if is_also_asked {
            holding.units.max(*units)
        } else {
            units.saturating_add(holding.units)
        };
    }
    if let Some(gpu_milli) = holding.gpu_milli {
        *record.claimed_milli.entry(resource.to_owned()).or_default() += gpu_milli;
    }
}

/// How many GPUs a device plugin counts on a node, where these are the same that slices offer:
/// unless its label says that there are as many as both together.
fn twice(read: &ReadNode, object: &Node, offer: &ClaimOffer) -> Option<i64> {
    let counted = read.gpus.iter().flat_map(|gpus| &gpus.units);
    let counted = counted.filter(|units| {
        let vendor = units.resource.split_once('/').map_or("", |(vendor, _)| vendor);
        offer.is_of(vendor)
    });
    // A plugin that is gone offers nothing, and what it once counted is known for a while.
    let counted = counted.filter(|units| units.count > 0);
    let built_in = |resource: &str| read.node.gpus.get(resource).map_or(0, |gpus| gpus.built_in);
    let milli = counted.map(|units| units.parts.cut_off_milli(built_in(&units.resource)));
    let milli: i64 = milli.sum();
    let by_plugin = (milli + 999) / 1000;
    let are_apart = discovered_gpus(&object.meta.labels) == by_plugin + offer.gpus;
    (by_plugin > 0 && !are_apart).then_some(by_plugin)
}

/// Takes GPUs that pods share or hold parts of from those that a device plugin counts as whole
/// ones, and counts them as what they are. `name` is the plugin's for whole ones.
fn set_apart(object: &mut Node, read: &mut ReadNode, apart: &ClaimOffer, name: &str) {
    let Some(gpus) = &mut read.gpus else { return };
    let whole = gpus.units.iter_mut().find(|units| units.resource == name);
    let Some(whole) = whole.filter(|units| units.count > 0) else { return };
    // Of a GPU that the plugin cuts or replicates it counts several.
    let of_each = match &whole.parts {
        GpuParts::Equal(slice) => (slice.of / slice.part.max(1)).max(1),
        GpuParts::Each(_) => 1,
    };
    let taken = apart.gpus.saturating_mul(of_each).min(whole.count);
    whole.count -= taken;
    if let Some(of_node) = read.node.gpus.get_mut(name) {
        of_node.built_in = (of_node.built_in - taken).max(0);
        of_node.allocatable = (of_node.allocatable - taken).max(0);
        of_node.set_apart += taken;
        object.allocatable.extended.insert(name.to_owned(), of_node.allocatable);
        object.capacity.extended.insert(name.to_owned(), of_node.built_in);
    }
    for (resource, of) in &apart.units {
        let Offered { built_in, usable, .. } = *of;
        let model = apart.model.clone();
        let of_node = read.node.gpus.entry(resource.clone()).or_default();
        if *of_node == Gpus::default() {
            *of_node =
                Gpus { model, built_in, allocatable: usable, by_claims: true, ..Gpus::default() };
            object.allocatable.extended.insert(resource.clone(), usable);
            object.capacity.extended.insert(resource.clone(), built_in);
        }
    }
    let known: BTreeSet<String> = gpus.units.iter().map(|units| units.resource.clone()).collect();
    gpus.units.extend(apart.audit_units().filter(|units| !known.contains(&units.resource)));
    gpus.unavailable_milli += apart.unusable_milli();
    gpus.unknown_milli += apart.unseen_milli;
}

/// Puts what slices offer into a node, beside what a plugin counts.
fn put(object: &mut Node, read: &mut ReadNode, offer: &ClaimOffer) {
    let labelled = discovered_gpus(&object.meta.labels);
    for (resource, of) in &offer.units {
        let gpus = read.node.gpus.entry(resource.clone()).or_default();
        if gpus.allocatable == 0 {
            *gpus = Gpus { by_claims: true, ..Gpus::default() };
        }
        gpus.built_in += of.built_in;
        gpus.allocatable += of.usable;
        gpus.set_apart += offer.set_apart.get(resource).copied().unwrap_or(0);
        gpus.model = gpus.model.take().or(offer.model.clone());
        object.allocatable.extended.insert(resource.clone(), gpus.allocatable);
        object.capacity.extended.insert(resource.clone(), gpus.built_in);
    }
    // What only the label counts is not known to be missing before slices are.
    let by_plugin = read.gpus.take().filter(|gpus| gpus.units.iter().any(|units| units.count > 0));
    if by_plugin.is_none() {
        read.other_names.clear();
    }
    let missing_before = if by_plugin.is_some() { read.node.uncounted_gpus } else { 0 };
    let before = by_plugin.unwrap_or_default();
    let offered = before.gpus - missing_before + offer.gpus;
    let missing = (labelled - offered).max(0);
    let mut units = before.units;
    for more in offer.audit_units() {
        match units.iter_mut().find(|of| of.resource == more.resource) {
            Some(of) => of.count += more.count,
            None => units.push(more),
        }
    }
    let unavailable_milli =
        before.unavailable_milli - missing_before * 1000 + offer.unusable_milli();
    read.node.uncounted_gpus = missing;
    read.gpus = Some(NodeGpus {
        node: object.meta.name.to_string(),
        model: before.model.or(offer.model.clone()),
        gpus: offered + missing,
        unavailable_milli: unavailable_milli.max(0) + missing * 1000,
        layout_rest_milli: before.layout_rest_milli,
        unknown_milli: before.unknown_milli + offer.unseen_milli,
        units,
    });
}
