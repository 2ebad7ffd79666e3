//! The objects that remember preemptions of their pods, and what they do not say yet.

use std::collections::BTreeMap;

use dovetail_model::History;
use dovetail_objects::{Kind, Meta};

use super::Objects;
use super::pods::Slot;
use dovetail_translate::Receipt;

/// An object that outlives its pods.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Account {
    pub kind: Kind,
    pub namespace: Box<str>,
    pub name: Box<str>,
    /// Another object of the name has another one.
    pub uid: Box<str>,
}

/// Receipts that were noted in this leadership: their objects may not say so yet.
#[derive(Debug, Default)]
pub(crate) struct Receipts {
    noted: BTreeMap<Account, Receipt>,
}

impl Receipts {
    /// What an object says, and what is noted of it: the newer one.
    fn of(&self, account: &Account, meta: &Meta) -> Receipt {
        let says = Receipt::of(&meta.annotations);
        let noted = self.noted.get(account).copied().unwrap_or_default();
        if noted.last_ms >= says.last_ms { noted } else { says }
    }

    /// Notes one more preemption; all of them together.
    pub(crate) fn note(&mut self, account: &Account, meta: &Meta, one: Receipt) -> Receipt {
        let sum = self.of(account, meta).and(one);
        self.noted.insert(account.clone(), sum);
        sum
    }

    /// An object is gone.
    pub(crate) fn forget(&mut self, kind: Kind, namespace: &str, name: &str) {
        self.noted
            .retain(|of, _| of.kind != kind || *of.namespace != *namespace || *of.name != *name);
    }
}

/// The object that remembers preemptions of a pod: the one that describes its gang, else the outer
/// one of the workloads that made it; and whether it stands for the job that the pod is of.
pub(crate) fn account_of(objects: &Objects, slot: Slot) -> Option<(Account, &Meta, bool)> {
    let entry = objects.pods.get(slot);
    let descriptions = &objects.descriptions;
    let account = |kind: Kind, meta: &Meta| Account {
        kind,
        namespace: meta.namespace.clone(),
        name: meta.name.clone(),
        uid: meta.uid.clone(),
    };
    let of_gang = entry.gang.as_deref().and_then(|gang| {
        let (kind, meta) = descriptions.object_of(gang)?;
        let is_apart = match kind {
            Kind::Workload(kind) => descriptions
                .workload(kind, &meta.namespace, &meta.name)
                .is_some_and(|workload| !workload.apart.is_empty() && !workload.is_of_one_pod),
            _ => false,
        };
        Some((account(kind, meta), meta, gang.part.is_empty() && !is_apart))
    });
    of_gang.or_else(|| {
        let (kind, workload) = descriptions.maker_of(&entry.pod)?;
        let is_of_one_job = workload.is_of_one_pod && entry.gang.is_none();
        Some((account(kind, &workload.meta), &workload.meta, is_of_one_job))
    })
}

/// Earlier attempts of the job of a pod, as far as its object remembers them.
pub(crate) fn history_of(objects: &Objects, slot: Slot) -> History {
    match account_of(objects, slot) {
        Some((account, meta, true)) => objects.receipts.of(&account, meta).history(),
        _ => History::default(),
    }
}
