//! Which nodes have devices for claims, kept until something that a node's answer rests on changes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use dovetail_objects::ResourceClaim;

/// More different claims than are asked about at a time: then nothing is kept.
const MOST_KEPT: usize = 256;

/// Which nodes have devices for some claims together.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Survey {
    /// Nodes that have devices, and how many pods with such claims get some there, one after the
    /// other; 1 where only one is asked for.
    pub(crate) fits: Vec<(Box<str>, u32)>,
    /// Nodes with devices.
    pub(crate) looked_at: usize,
    /// The node that says best why none does.
    pub(crate) telling: Option<Box<str>>,
}

/// What a node answers to claims.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Answer {
    /// So many pods with such claims get devices.
    Fits(u32),
    Undecided,
    /// The claims are not understood.
    Error,
    /// They do not fit; so many of the devices that are wanted are left.
    No(usize),
}

/// Answers of nodes, by name.
pub(crate) type Answers = BTreeMap<Box<str>, Answer>;

/// Claims, of which pods of a gang have `own` ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    pub(crate) claims: Vec<ResourceClaim>,
    pub(crate) own: Vec<ResourceClaim>,
}

impl Asked {
    /// The same for claims that ask for the same.
    fn key(claims: &[&ResourceClaim], own: &[&ResourceClaim]) -> String {
        let asked = |claims: &[&ResourceClaim]| {
            let asked: Vec<_> = claims.iter().map(|claim| &claim.asked).collect();
            format!("{asked:?}")
        };
        asked(claims) + &asked(own)
    }
}

/// Surveys by what is asked. They only save time.
#[derive(Debug, Default)]
pub(crate) struct Surveys(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    by_asked: BTreeMap<String, (Asked, Answers, Arc<Survey>)>,
    /// Whether answers were forgotten since all surveys were made.
    is_stale: bool,
    /// Whether any survey was made that is not kept.
    has_others: bool,
}

impl Surveys {
    /// The survey of claims, made by `make` where it is not kept. Of claims that have devices none
    /// is.
    pub(crate) fn get(
        &self,
        (claims, own): (&[&ResourceClaim], &[&ResourceClaim]),
        make: impl FnOnce(&mut Answers) -> Survey,
    ) -> Arc<Survey> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = kept.by_asked.len() >= MOST_KEPT;
        if kept.is_stale || is_full || claims.iter().any(|claim| claim.allocation.is_some()) {
            kept.has_others = true;
            drop(kept);
            return Arc::new(make(&mut Answers::new()));
        }
        let (_, _, survey) = kept.by_asked.entry(Asked::key(claims, own)).or_insert_with(|| {
            let cloned = |of: &[&ResourceClaim]| of.iter().map(|&one| one.clone()).collect();
            let mut answers = Answers::new();
            let survey = Arc::new(make(&mut answers));
            (Asked { claims: cloned(claims), own: cloned(own) }, answers, survey)
        });
        Arc::clone(survey)
    }

    /// What the answers of these nodes rest on has changed; of all nodes for `None`.
    pub(crate) fn forget(&mut self, nodes: Option<&mut dyn Iterator<Item = &str>>) {
        let kept = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        kept.is_stale = true;
        match nodes {
            Some(nodes) => {
                for node in nodes {
                    kept.by_asked.values_mut().for_each(|(_, answers, _)| {
                        answers.remove(node);
                    });
                }
            }
            None => kept.by_asked.values_mut().for_each(|(_, answers, _)| answers.clear()),
        }
    }

    /// Makes all surveys again by the answers that were not forgotten; whether any pod that asked
    /// has to ask again. Why claims fit nowhere is asked each time.
    pub(crate) fn renew(&self, make: impl Fn(&Asked, &mut Answers) -> Survey) -> bool {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::take(&mut kept.is_stale) {
            return false;
        }
        let mut differs = std::mem::take(&mut kept.has_others);
        if kept.by_asked.len() >= MOST_KEPT {
            kept.by_asked.clear();
        }
        for (asked, answers, survey) in kept.by_asked.values_mut() {
            let renewed = make(asked, answers);
            if renewed.fits.is_empty() || renewed != **survey {
                differs = true;
                *survey = Arc::new(renewed);
            }
        }
        differs
    }
}
