//! Everything recomputed from scratch: running sums against what is held, books against a snapshot.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use dovetail_model::{Knowledge, NodeName, Resources, Snapshot};

use crate::node_books::{HeldAmounts, Holder, NodeBooks};
use crate::violation::Violation;
use crate::world::ClusterBooks;

/// Conservation, and whether the running sums are what one gets by adding up.
pub(crate) fn audit(world: &ClusterBooks) -> Vec<Violation> {
    let mut found = world.faults.clone();
    for (name, books) in &world.nodes {
        let again = NodeBooks::new(books.node.clone(), books.held.clone());
        differ(
            &mut found,
            || format!("free resources on node {name}"),
            &tidy(&books.free),
            &tidy(&again.free),
        );
        differ(&mut found, || format!("device use on node {name}"), &books.devices, &again.devices);
    }
    audit_jobs(world, &mut found);
    audit_holders(world, &mut found);
    found
}

fn audit_jobs(world: &ClusterBooks, found: &mut Vec<Violation>) {
    for (job, booked) in &world.jobs {
        for (pod_set, set) in booked.job.pod_sets.iter().enumerate() {
            let pods = booked.pods.keys().filter(|(set, _)| usize::from(*set) == pod_set);
            let held = pods.count();
            let present = if booked.runs() { set.present } else { 0 };
            if held != present as usize {
                found.push(Violation::Present { job: *job, pod_set, present, held });
            }
        }
    }
}

/// Every pod that holds is a pod of its job, at that place; every pod of a job holds.
fn audit_holders(world: &ClusterBooks, found: &mut Vec<Violation>) {
    let mut held = BTreeSet::new();
    let mut counts: BTreeMap<String, BTreeMap<NodeName, i64>> = BTreeMap::new();
    for (node, books) in &world.nodes {
        for (holder, amount) in &books.held {
            if let Holder::Pod(pod) = holder {
                held.insert((*pod, node.clone()));
            }
            for selector in &amount.counts_into {
                let counts = counts.entry(selector.clone()).or_default();
                *counts.entry(node.clone()).or_default() += 1;
            }
        }
    }
    let mut booked = BTreeSet::new();
    for (job, record) in &world.jobs {
        for ((pod_set, ordinal), node) in &record.pods {
            let pod = dovetail_model::PodId { job: *job, pod_set: *pod_set, ordinal: *ordinal };
            booked.insert((pod, node.clone()));
        }
    }
    differ(found, || "pods with allocations".to_owned(), &booked, &held);
    let running: BTreeMap<_, _> =
        world.counts.iter().filter(|(_, nodes)| !nodes.is_empty()).collect();
    let again: BTreeMap<_, _> = counts.iter().collect();
    differ(found, || "counts per selector and node".to_owned(), &running, &again);
}

/// Whether a snapshot tells the same as the books.
pub(crate) fn compare(world: &ClusterBooks, snapshot: &Snapshot) -> Vec<Violation> {
    let other = ClusterBooks::of(snapshot);
    let mut found = audit(&other);
    let names = |world: &ClusterBooks| world.nodes.keys().cloned().collect::<Vec<_>>();
    differ(&mut found, || "the nodes".to_owned(), &names(world), &names(&other));
    for (name, books) in &world.nodes {
        let Some(theirs) = other.nodes.get(name) else { continue };
        differ(&mut found, || format!("node {name}"), &books.node, &theirs.node);
        let what = || format!("allocations on node {name}");
        differ(&mut found, what, &comparable(books), &comparable(theirs));
    }
    let jobs = |world: &ClusterBooks| {
        world
            .jobs
            .iter()
            .map(|(id, b)| (*id, b.runs(), b.job.pod_sets.iter().map(|s| s.present).collect()))
            .collect::<Vec<(_, _, Vec<u32>)>>()
    };
    differ(&mut found, || "jobs as (id, runs, present)".to_owned(), &jobs(world), &jobs(&other));
    differ(&mut found, || "nodes of foreign pods".to_owned(), &world.foreign, &other.foreign);
    differ(&mut found, || "the queues".to_owned(), &world.queues, &other.queues);
    found
}

/// What is held in a form that two accounts can agree in: no amounts of 0, no order among the
/// amounts of one reservation, no device numbers where the kubelet chooses.
fn comparable(books: &NodeBooks) -> Vec<(Holder, HeldAmounts)> {
    let pooled = books.node.knowledge == Knowledge::Counted;
    let mut all: Vec<(Holder, HeldAmounts)> = Vec::new();
    for (holder, held) in &books.held {
        let holder = match holder {
            Holder::Reserved(reservation, _) => Holder::Reserved(*reservation, 0),
            other => other.clone(),
        };
        let mut held = HeldAmounts { resources: tidy(&held.resources), ..held.clone() };
        if pooled {
            held.devices.iter_mut().for_each(|(index, _)| *index = 0);
        }
        all.push((holder, held));
    }
    all.sort_by(|a, b| (&a.0, &a.1.devices).cmp(&(&b.0, &b.1.devices)));
    all
}

fn tidy(resources: &Resources) -> Resources {
    let mut tidy = resources.clone();
    tidy.extended.retain(|_, amount| *amount != 0);
    tidy
}

fn differ<T: PartialEq + Debug>(
    found: &mut Vec<Violation>,
    what: impl FnOnce() -> String,
    books: &T,
    other: &T,
) {
    if books != other {
        let (books, other) = (format!("{books:?}"), format!("{other:?}"));
        found.push(Violation::Differs { what: what(), books, found: other });
    }
}
