//! Patches that harm no pod.
//!
//! Every patch is applied to the objects that were read, translated, and the engine is asked: a
//! patch that takes from a pod, running or pending, the last node that it could use is not written.
//! What is written instead is the list of those pods and a safe order. Each patch is judged after
//! all patches before it, so that any prefix of the list is harmless too.

mod admission;
mod apart;
mod company;
mod displaced;
mod jams;
mod moves;
mod order;
mod platform;
mod reach;
mod rolling_update;
mod rollout;
mod room;
mod template;
mod trial;
mod trial_nodes;

use std::collections::BTreeMap;

use dovetail_audit::{Facts, FactsByOwner, Finding, Form, ObjectRef, Patch, SourceObject, patches};

use displaced::Displacements;
pub use reach::PatchReach;
use trial::Trial;

/// A patch with the findings that it fixes, by their place in the list that was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SafePatch {
    pub patch: Patch,
    /// The findings, ascending.
    pub findings: Vec<usize>,
}

/// A change that would take from pods the last node that they could use, or preempt others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Withheld {
    /// The finding whose change it is.
    pub finding: usize,
    /// The pods that would become unschedulable.
    pub pods: Vec<ObjectRef>,
    /// What to do first.
    pub order: String,
}

/// What is written, and what is not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SafePatches {
    /// In the order in which they are to be applied.
    pub written: Vec<SafePatch>,
    /// Changes for which no patch is written.
    pub withheld: Vec<Withheld>,
}

impl SafePatches {
    /// Adds a patch. An object that several findings need is created once.
    fn write(&mut self, patch: Patch, findings: Vec<usize>) {
        let is_same = |safe: &&mut SafePatch| {
            matches!(patch.form, Form::Create(_)) && safe.patch.form == patch.form
        };
        match self.written.iter_mut().find(is_same) {
            Some(safe) => {
                safe.findings.extend(findings);
                safe.findings.sort_unstable();
                let known = safe.patch.checks.clone();
                let more = patch.checks.into_iter().filter(|check| !known.contains(check));
                safe.patch.checks.extend(more);
            }
            None => self.written.push(SafePatch { patch, findings }),
        }
    }
}

/// The patches of all findings: one for each object, with every change that is harmless.
pub fn safe_patches(
    facts: &Facts,
    reach: &PatchReach,
    findings: &[&Finding],
    source_of: &dyn Fn(&ObjectRef) -> Option<SourceObject>,
) -> SafePatches {
    let mut by_object: BTreeMap<&ObjectRef, Vec<usize>> = BTreeMap::new();
    let mut objects: Vec<&ObjectRef> = Vec::new();
    for (place, finding) in findings.iter().enumerate() {
        let places = by_object.entry(&finding.object).or_default();
        if places.is_empty() {
            objects.push(&finding.object);
        }
        places.push(place);
    }
    let mut found = SafePatches::default();
    let (mut trial, mut displacements) = (Trial::new(reach), Displacements::new(reach));
    let (facts, mut later) = (&FactsByOwner::of(facts), Vec::new());
    for object in objects {
        let source = source_of(object);
        let places = &by_object[object];
        let writer = Writer { facts, findings, source: source.as_ref() };
        // Tolerations come before taints, so nodes are changed last.
        let edits_nodes = writer.patches(places).iter().any(|patch| patch.nodes.is_some());
        if edits_nodes {
            later.push((source, places));
            continue;
        }
        writer.write(places, (&mut trial, &mut displacements), &mut found);
    }
    for (source, places) in later {
        let writer = Writer { facts, findings, source: source.as_ref() };
        writer.write(places, (&mut trial, &mut displacements), &mut found);
    }
    found.written.sort_by_key(|safe| order::rank(&safe.patch));
    found
}

/// Writes the patches of one object.
struct Writer<'w> {
    facts: &'w FactsByOwner<'w>,
    findings: &'w [&'w Finding],
    source: Option<&'w SourceObject>,
}

impl Writer<'_> {
    fn patches(&self, places: &[usize]) -> Vec<Patch> {
        let of: Vec<&Finding> = places.iter().map(|place| self.findings[*place]).collect();
        patches(self.facts, &of, self.source)
    }

    /// Takes the changes of one finding after the other, as long as they harm no pod.
    fn write(
        &self,
        places: &[usize],
        (trial, displacements): (&mut Trial<'_>, &mut Displacements),
        found: &mut SafePatches,
    ) {
        let mut kept: Vec<usize> = Vec::new();
        for place in places {
            let with: Vec<usize> = kept.iter().copied().chain([*place]).collect();
            let edits = |patches: Vec<Patch>| patches.into_iter().find(|p| p.edited.is_some());
            let Some(patch) = edits(self.patches(&with)) else {
                kept = with;
                continue;
            };
            let rejected = order::of_unknown_pods(&patch, trial.nodes.reach)
                .or_else(|| admission::rejected(trial, &patch));
            if let Some((order, pods)) = rejected {
                found.withheld.push(Withheld { finding: *place, pods, order });
                continue;
            }
            let harmed = trial.harmed_by(&patch);
            match (harmed.is_empty(), trial.roll_out(&patch).safe_order(&patch)) {
                (true, None) => kept = with,
                (true, Some((order, pods))) => {
                    found.withheld.push(Withheld { finding: *place, pods, order });
                }
                (false, _) => self.withhold(*place, &patch, harmed, trial, found),
            }
        }
        for mut patch in self.patches(&kept) {
            let fixes = |place: &&usize| patch.checks.contains(&self.findings[**place].check.id);
            let findings: Vec<usize> = kept.iter().filter(fixes).copied().collect();
            if let (Some(first), Some(withheld)) =
                (findings.first(), order::of_unknown_pods(&patch, trial.nodes.reach))
            {
                let (order, pods) = withheld;
                found.withheld.push(Withheld { finding: *first, pods, order });
                continue;
            }
            // The object itself was judged above.
            let mut harmed = match patch.edited {
                Some(_) => Vec::new(),
                None => trial.harmed_by(&patch),
            };
            if harmed.is_empty() {
                harmed = displacements.harmed_by(trial, &patch);
            }
            match (harmed.is_empty(), findings.first()) {
                (true, _) => {
                    let warning = trial.roll_out(&patch).warning();
                    patch.warnings.extend(warning.map(str::to_owned));
                    trial.charge(&patch);
                    displacements.apply(trial, &patch);
                    found.write(patch, findings);
                }
                (false, Some(first)) => self.withhold(*first, &patch, harmed, trial, found),
                (false, None) => {}
            }
        }
    }

    fn withhold(
        &self,
        finding: usize,
        patch: &Patch,
        harmed: Vec<trial::Harmed>,
        trial: &Trial<'_>,
        found: &mut SafePatches,
    ) {
        let order = order::safe_order(patch, &harmed, trial);
        let pods = harmed.into_iter().flat_map(|harmed| harmed.pods).collect();
        found.withheld.push(Withheld { finding, pods, order });
    }
}
