//! The objects that remember preemptions of their pods, and what they do not say yet; and what is
//! known of runs, of which one object may be gone when the next one comes.

use std::collections::BTreeMap;

use dovetail_model::Job;
use dovetail_objects::{Kind, Meta, labels};

use super::Objects;
use super::pods::Slot;
use dovetail_translate::Receipt;

/// An object that outlives its pods.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LastingOwner {
    pub kind: Kind,
    pub namespace: Box<str>,
    pub name: Box<str>,
    /// Another object of the name has another one.
    pub uid: Box<str>,
}

/// A piece of work, whatever objects try it: the label `dovetail.dev/run` in a namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunName {
    pub namespace: Box<str>,
    pub name: Box<str>,
}

impl RunName {
    fn of(meta: &Meta) -> Option<Self> {
        let name = meta.labels.get(labels::RUN).filter(|name| !name.is_empty())?;
        Some(Self { namespace: meta.namespace.clone(), name: name.into() })
    }
}

/// What is remembered of a run that was not preempted for so long is forgotten: a week.
const KEPT_MS: u64 = 7 * 24 * 3_600_000;

/// What remembers preemptions of a pod: an object that is there, and a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RememberedBy {
    pub account: Option<LastingOwner>,
    pub run: Option<RunName>,
}

/// Receipts that were noted in this leadership: their objects may not say so yet.
#[derive(Debug, Default)]
pub(crate) struct Receipts {
    noted: BTreeMap<LastingOwner, Receipt>,
    /// The newest receipt of each run. It counts all attempts before it.
    runs: BTreeMap<RunName, Receipt>,
}

impl Receipts {
    /// What an object says, what is noted of it, and what is known of the run: the newest of it.
    fn of(&self, remembered: &Remembered<'_>) -> Receipt {
        let of_object = remembered.object.as_ref().map(|(account, meta)| {
            let noted = self.noted.get(account).copied().unwrap_or_default();
            newer(noted, Receipt::of(&meta.annotations))
        });
        let of_run = remembered.run.as_ref().and_then(|run| self.runs.get(run)).copied();
        newer(of_object.unwrap_or_default(), of_run.unwrap_or_default())
    }

    fn note(&mut self, remembered: &Remembered<'_>, one: Receipt) -> Receipt {
        let sum = self.of(remembered).and(one);
        if sum.last_ms == 0 {
            return sum;
        }
        self.noted.extend(remembered.object.iter().map(|(account, _)| (account.clone(), sum)));
        if let Some(run) = &remembered.run {
            self.note_run(run.clone(), sum);
        }
        sum
    }

    /// An object that is there says what its pods cost; its run is known by that, too.
    pub(crate) fn take(&mut self, meta: &Meta) {
        if let Some(run) = RunName::of(meta) {
            self.note_run(run, Receipt::of(&meta.annotations));
        }
    }

    fn note_run(&mut self, run: RunName, receipt: Receipt) {
        if receipt.last_ms == 0 {
            return;
        }
        let known = self.runs.entry(run).or_default();
        *known = newer(*known, receipt);
        self.runs.retain(|_, of| of.last_ms.saturating_add(KEPT_MS) >= receipt.last_ms);
    }

    /// An object is gone.
    pub(crate) fn forget(&mut self, kind: Kind, namespace: &str, name: &str) {
        self.noted
            .retain(|of, _| of.kind != kind || *of.namespace != *namespace || *of.name != *name);
    }
}

fn newer(one: Receipt, other: Receipt) -> Receipt {
    if one.last_ms >= other.last_ms { one } else { other }
}

/// What remembers preemptions of a pod.
#[derive(Debug)]
struct Remembered<'o> {
    /// The object that describes its gang, else the outer one of the workloads that made it.
    object: Option<(LastingOwner, &'o Meta)>,
    run: Option<RunName>,
    /// Whether that stands for the job that the pod is of.
    is_of_one_job: bool,
}

/// What remembers preemptions of a pod: an object, and the run that its label names, or that of the
/// object.
fn remembered(objects: &Objects, slot: Slot) -> Remembered<'_> {
    let entry = objects.pods.get(slot);
    let of_object = object_of(objects, slot);
    let run = RunName::of(&entry.pod.meta);
    let run = run.or_else(|| RunName::of(of_object.as_ref()?.1));
    let is_of_one_job = match &of_object {
        Some((.., is_of_one_job)) => *is_of_one_job,
        None => run.is_some(),
    };
    Remembered { object: of_object.map(|(account, meta, _)| (account, meta)), run, is_of_one_job }
}

fn object_of(objects: &Objects, slot: Slot) -> Option<(LastingOwner, &Meta, bool)> {
    let entry = objects.pods.get(slot);
    let descriptions = &objects.descriptions;
    let account = |kind: Kind, meta: &Meta| LastingOwner {
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

/// The same by name.
pub(crate) fn remembered_by(objects: &Objects, slot: Slot) -> RememberedBy {
    let Remembered { object, run, .. } = remembered(objects, slot);
    RememberedBy { account: object.map(|(account, _)| account), run }
}

/// What is remembered of preemptions of pods of the same object or run.
pub(crate) fn receipt(objects: &Objects, slot: Slot) -> Receipt {
    objects.receipts.of(&remembered(objects, slot))
}

/// Notes one more preemption, or none: what the object is to say, all of them together; `None` if
/// there is nothing to say, or no object to say it.
pub(crate) fn note(by: &RememberedBy, one: Receipt, objects: &mut Objects) -> Option<Receipt> {
    let Objects { descriptions, receipts, .. } = objects;
    let object = by.account.as_ref().and_then(|account| {
        let LastingOwner { kind, namespace, name, uid } = account;
        let meta = descriptions.meta(*kind, namespace, name).filter(|meta| meta.uid == *uid)?;
        Some((account.clone(), meta))
    });
    let remembered = Remembered { object, run: by.run.clone(), is_of_one_job: false };
    let sum = receipts.note(&remembered, one);
    let (_, meta) = remembered.object?;
    (Receipt::of(&meta.annotations).last_ms < sum.last_ms).then_some(sum)
}

/// A job with what is remembered of earlier attempts at it: it is as old as the first of them.
pub(crate) fn remember(objects: &Objects, slot: Slot, mut job: Job) -> Job {
    let remembered = remembered(objects, slot);
    if remembered.is_of_one_job {
        let receipt = objects.receipts.of(&remembered);
        job.history = receipt.history(&job);
        if receipt.preemptions > 0 && receipt.first_ms > 0 {
            job.submit_ms = job.submit_ms.min(receipt.first_ms);
        }
    }
    job
}
