//! Which nodes have devices for claims, kept until something that a node's answer rests on changes.
//!
//! To the engine, a node that has devices for claims has a label which says so. Pods whose claims
//! ask for the same have the same condition then, however many nodes there are, and a node whose
//! devices are taken is one node that changes. What kinds of pods get together is no condition of
//! any pod, and labels no node.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use dovetail_objects::ResourceClaim;
use dovetail_translate::devices_label;
use sha2::{Digest, Sha256};

/// More different claims than are asked about at a time: then nothing is kept.
const MOST_KEPT: usize = 256;

/// What nodes answer to some claims together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClaimSurvey {
    /// Of the nodes with devices, by name.
    answers: BTreeMap<Box<str>, ClaimFit>,
    /// How many of them have devices for the claims.
    fitting: usize,
}

/// Why no node has devices for claims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClaimRefusal {
    /// Nodes with devices.
    pub(crate) looked_at: usize,
    /// The node that says it best: the first that does not understand them, else the one with most
    /// of what is wanted.
    pub(crate) telling: Option<Box<str>>,
}

/// What a node answers to claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClaimFit {
    /// Pods that are alike get devices for so many units, one after the other; pods of several
    /// kinds so many devices together; 1 where only one pod is asked for.
    Fits(u32),
    Undecided,
    /// The claims are not understood.
    Error,
    /// They do not fit; so many of the devices that are wanted are left.
    No(usize),
}

/// Claims, and the pods of a gang that are counted where they fit.
#[derive(Clone, Debug, Default)]
pub(crate) struct SurveyedClaims {
    pub(crate) claims: Vec<ResourceClaim>,
    pub(crate) counted: Option<CountedPods>,
}

/// Pods of a gang that are counted on each node.
#[derive(Clone, Debug)]
pub(crate) enum CountedPods {
    /// Those that are like the one whose claims are at hand.
    Alike(AlikePods),
    /// Those of several kinds, by themselves: there are no claims at hand.
    Together(Vec<PodKind>),
}

/// Pods of a gang that are alike, beside others that are not.
#[derive(Clone, Debug)]
pub(crate) struct PodKind {
    /// Claims that ask for one unit.
    pub(crate) unit: Vec<ResourceClaim>,
    /// Devices that a unit counts as.
    pub(crate) devices: u32,
    /// Units that the gang needs at most.
    pub(crate) most: u32,
}

/// Pods of a gang that are alike.
#[derive(Clone, Debug)]
pub(crate) struct AlikePods {
    /// Units that the claims at hand are of.
    pub(crate) has: u32,
    /// Claims that ask for one.
    pub(crate) unit: Vec<ResourceClaim>,
}

/// A survey, and the label of the nodes that have devices by it, if it is kept and has one.
pub(crate) struct FoundSurvey {
    pub(crate) survey: Arc<ClaimSurvey>,
    pub(crate) label: Option<Arc<str>>,
}

/// Surveys by what is asked. They only save time.
#[derive(Debug, Default)]
pub(crate) struct Surveys(Mutex<SurveyCache>);

#[derive(Debug, Default)]
struct SurveyCache {
    by_asked: BTreeMap<String, KeptSurvey>,
    forgotten: Forgotten,
    /// Whether any survey was made that is not kept.
    has_others: bool,
    /// Nodes whose labels are others than those that were last asked for.
    to_label: BTreeSet<Box<str>>,
}

#[derive(Debug)]
struct KeptSurvey {
    asked: SurveyedClaims,
    /// That of the nodes which have devices by it; `None` where no pod asks for one.
    label: Option<Arc<str>>,
    survey: Arc<ClaimSurvey>,
    /// Why no node has devices by it; `None` where one has. Finding that out takes a look at the
    /// answers of all nodes.
    refusal: Option<ClaimRefusal>,
}

/// Nodes whose answers are to be asked for again.
#[derive(Debug)]
enum Forgotten {
    Nodes(BTreeSet<Box<str>>),
    All,
}

impl ClaimSurvey {
    /// Notes the answer of a node; `None` where it has no devices, or is not there. Its answer
    /// before.
    pub(crate) fn note(&mut self, node: &str, answer: Option<ClaimFit>) -> Option<ClaimFit> {
        let before = match answer {
            Some(answer) => self.answers.insert(node.into(), answer),
            None => self.answers.remove(node),
        };
        let fits =
            |answer: Option<ClaimFit>| usize::from(matches!(answer, Some(ClaimFit::Fits(_))));
        self.fitting = self.fitting + fits(answer) - fits(before);
        before
    }

    /// Whether a node has.
    fn is_fitting(&self, node: &str) -> bool {
        matches!(self.answers.get(node), Some(ClaimFit::Fits(_)))
    }

    /// Nodes that have, and for how many units.
    pub(crate) fn fitting(&self) -> impl Iterator<Item = (&str, u32)> {
        self.answers.iter().filter_map(|(node, answer)| match answer {
            ClaimFit::Fits(units) => Some((&**node, *units)),
            _ => None,
        })
    }

    fn fitting_nodes(&self) -> impl Iterator<Item = Box<str>> {
        self.fitting().map(|(node, _)| node.into())
    }

    /// Why no node has devices for the claims; `None` where one has.
    pub(crate) fn refusal(&self) -> Option<ClaimRefusal> {
        if self.fitting > 0 {
            return None;
        }
        let failed = self.answers.iter().find(|(_, answer)| matches!(answer, ClaimFit::Error));
        let left = |answer: &ClaimFit| match answer {
            ClaimFit::No(left) => Some(*left),
            _ => None,
        };
        let all = self.answers.iter().filter_map(|(node, answer)| Some((node, left(answer)?)));
        // The first of those with the most.
        let nearest = all.rev().max_by_key(|(_, left)| *left).map(|(node, _)| node);
        let telling = failed.map(|(node, _)| node).or(nearest).cloned();
        Some(ClaimRefusal { looked_at: self.answers.len(), telling })
    }
}

impl Forgotten {
    fn has(&self, node: Option<&str>) -> bool {
        match self {
            Self::All => true,
            Self::Nodes(names) => node.is_some_and(|node| names.contains(node)),
        }
    }

    fn is_none(&self) -> bool {
        matches!(self, Self::Nodes(names) if names.is_empty())
    }
}

impl Default for Forgotten {
    fn default() -> Self {
        Self::Nodes(BTreeSet::new())
    }
}

fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl KeptSurvey {
    fn found(&self) -> FoundSurvey {
        FoundSurvey { survey: Arc::clone(&self.survey), label: self.label.clone() }
    }

    /// Nodes that have its label.
    fn labelled(&self) -> impl Iterator<Item = Box<str>> {
        let is_labelled = self.label.is_some();
        self.survey.fitting_nodes().filter(move |_| is_labelled)
    }
}

impl SurveyedClaims {
    /// Whether a pod may have the condition that its node has devices by the survey.
    fn is_condition(&self) -> bool {
        !matches!(self.counted, Some(CountedPods::Together(_)))
    }

    /// The same for claims that ask for the same.
    fn key(claims: &[&ResourceClaim], counted: Option<&CountedPods>) -> String {
        let asked: Vec<_> = claims.iter().map(|claim| &claim.asked).collect();
        let units = |unit: &[ResourceClaim]| {
            let asked: Vec<_> = unit.iter().map(|claim| &claim.asked).collect();
            format!("{asked:?}")
        };
        let counted = match counted {
            None => String::new(),
            Some(CountedPods::Alike(alike)) => format!("{}:{}", alike.has, units(&alike.unit)),
            Some(CountedPods::Together(kinds)) => {
                let of = |kind: &PodKind| {
                    format!("{}x{}:{}", kind.most, kind.devices, units(&kind.unit))
                };
                format!("together {:?}", kinds.iter().map(of).collect::<Vec<_>>())
            }
        };
        format!("{asked:?}{counted}")
    }
}

impl Surveys {
    /// The survey of claims, made by `make` where it is not kept. Of claims that have devices none
    /// is.
    pub(crate) fn get(
        &self,
        (claims, counted): (&[&ResourceClaim], Option<&CountedPods>),
        make: impl FnOnce() -> ClaimSurvey,
    ) -> FoundSurvey {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = kept.by_asked.len() >= MOST_KEPT;
        let is_open = claims.iter().all(|claim| claim.allocation.is_none());
        if !kept.forgotten.is_none() || is_full || !is_open {
            kept.has_others = true;
            drop(kept);
            return FoundSurvey { survey: Arc::new(make()), label: None };
        }
        let key = SurveyedClaims::key(claims, counted);
        if let Some(known) = kept.by_asked.get(&key) {
            return known.found();
        }
        let survey = Arc::new(make());
        let claims = claims.iter().map(|&one| one.clone()).collect();
        let asked = SurveyedClaims { claims, counted: counted.cloned() };
        // Users who may create claims must not be able to make two that share a label.
        let digest = || hex(&Sha256::digest(key.as_bytes()));
        let label: Option<Arc<str>> = asked.is_condition().then(|| devices_label(&digest()).into());
        let new = KeptSurvey { asked, label, refusal: survey.refusal(), survey };
        kept.to_label.extend(new.labelled());
        let found = new.found();
        kept.by_asked.insert(key, new);
        found
    }

    /// What the answers of these nodes rest on has changed; of all nodes for `None`.
    pub(crate) fn forget(&mut self, nodes: Option<&mut dyn Iterator<Item = &str>>) {
        let kept = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        match (nodes, &mut kept.forgotten) {
            (None, forgotten) => *forgotten = Forgotten::All,
            (Some(_), Forgotten::All) => {}
            (Some(nodes), Forgotten::Nodes(names)) => names.extend(nodes.map(Box::from)),
        }
    }

    /// Asks the nodes again whose answers were forgotten, one after the other; `all` are those that
    /// are there. Whether any pod that asked has to ask again: why claims fit nowhere, it does each
    /// time that the node which says so was asked.
    pub(crate) fn renew(
        &self,
        all: impl FnOnce() -> BTreeSet<Box<str>>,
        mut ask: impl FnMut(&SurveyedClaims, &str) -> Option<ClaimFit>,
    ) -> bool {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let forgotten = match std::mem::take(&mut kept.forgotten) {
            Forgotten::Nodes(names) if names.is_empty() => return false,
            forgotten => forgotten,
        };
        let SurveyCache { by_asked, has_others, to_label, .. } = &mut *kept;
        let mut differs = std::mem::take(has_others);
        if by_asked.len() >= MOST_KEPT {
            differs = true;
            let gone = std::mem::take(by_asked).into_values();
            gone.for_each(|gone| to_label.extend(gone.labelled()));
        }
        let mut changed = vec![false; by_asked.len()];
        let known = || by_asked.values().flat_map(|one| one.survey.answers.keys()).cloned();
        let names: BTreeSet<Box<str>> = match &forgotten {
            Forgotten::All => known().chain(all()).collect(),
            Forgotten::Nodes(names) => names.clone(),
        };
        for node in names {
            for (KeptSurvey { asked, label, survey, .. }, is_changed) in
                by_asked.values_mut().zip(&mut changed)
            {
                let survey = Arc::make_mut(survey);
                let was_fitting = survey.is_fitting(&node);
                let answer = ask(asked, &node);
                *is_changed |= survey.note(&node, answer) != answer;
                if label.is_some() && survey.is_fitting(&node) != was_fitting {
                    to_label.insert(node.clone());
                }
            }
        }
        for (KeptSurvey { asked, survey, refusal, .. }, is_changed) in
            by_asked.values_mut().zip(changed)
        {
            // It follows from the answers alone.
            if is_changed {
                let before = std::mem::replace(refusal, survey.refusal());
                differs |= asked.counted.is_some() || *refusal != before;
            }
            let telling = refusal.as_ref().map(|now| now.telling.as_deref());
            differs |= telling.is_some_and(|node| forgotten.has(node));
        }
        differs
    }

    /// Nodes whose labels differ since they were last asked for.
    pub(crate) fn take_to_label(&mut self) -> BTreeSet<Box<str>> {
        let kept = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut kept.to_label)
    }

    /// What a node has devices for, as labels.
    pub(crate) fn labels_of(&self, node: &str) -> Vec<String> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fitting = kept.by_asked.values().filter(|one| one.survey.is_fitting(node));
        fitting.filter_map(|one| Some(one.label.as_ref()?.to_string())).collect()
    }
}

#[cfg(test)]
mod tests {
    use dovetail_objects::{ClaimContents as ClaimAsked, ClaimRequest};

    use super::*;

    fn fits_on_n0() -> ClaimSurvey {
        let mut survey = ClaimSurvey::default();
        survey.note("n0", Some(ClaimFit::Fits(1)));
        survey
    }

    #[test]
    fn what_kinds_of_pods_get_together_labels_no_node() {
        let mut surveys = Surveys::default();
        let counted = CountedPods::Together(Vec::new());
        assert!(surveys.get((&[], Some(&counted)), fits_on_n0).label.is_none());
        surveys.forget(Some(&mut ["n0"].into_iter()));
        assert!(surveys.renew(BTreeSet::new, |_, _| None), "pods ask again");
        assert!(surveys.take_to_label().is_empty());
        assert!(surveys.get((&[], None), fits_on_n0).label.is_some());
        assert_eq!(surveys.take_to_label(), BTreeSet::from(["n0".into()]));
    }

    #[test]
    fn pods_ask_again_and_labels_go_when_all_surveys_are_dropped() {
        let mut surveys = Surveys::default();
        for number in 0..MOST_KEPT {
            let name = format!("r{number}").into();
            let request = ClaimRequest { name, ..ClaimRequest::default() };
            let asked = ClaimAsked { requests: vec![request], ..ClaimAsked::default() };
            let claim = ResourceClaim { asked, ..ResourceClaim::default() };
            assert!(surveys.get((&[&claim], None), fits_on_n0).label.is_some());
        }
        assert_eq!(surveys.labels_of("n0").len(), MOST_KEPT);
        surveys.take_to_label();
        surveys.forget(Some(&mut ["n1"].into_iter()));
        assert!(surveys.renew(BTreeSet::new, |_, _| None), "pods ask again");
        assert_eq!(surveys.take_to_label(), BTreeSet::from(["n0".into()]));
        assert!(surveys.labels_of("n0").is_empty());
    }
}
