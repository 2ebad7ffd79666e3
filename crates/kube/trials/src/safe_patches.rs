//! The patches of all findings that harm no pod, and what comes first of the others.

use std::collections::BTreeMap;

use dovetail_audit::Finding;
use dovetail_facts::{Facts, ObjectRef};
use dovetail_inventory::reach::PatchReach;
use dovetail_patches::{FactsByOwner, Form, Patch, SourceObject, patches};
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};

use super::candidate::PatchCandidate;
use super::displaced::Displacements;
use super::group_index::GroupIndex;
use super::trial::{Harmed, Trial};
use super::{admission, order};

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
        let same = match patch.form {
            Form::Create(_) => self.written.iter_mut().find(|safe| safe.patch.form == patch.form),
            _ => None,
        };
        match same {
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

/// Objects whose patches are made side by side, before they are judged one after the other: all
/// patches together would take much memory.
const MADE_AT_ONCE: usize = 256;

/// The patches of all findings: one for each object, with every change that is harmless.
pub fn safe_patches(
    facts: &Facts,
    reach: &PatchReach,
    findings: &[&Finding],
    source_of: &(dyn Fn(&ObjectRef) -> Option<SourceObject> + Sync),
) -> SafePatches {
    let mut by_object: BTreeMap<&ObjectRef, Vec<usize>> = BTreeMap::new();
    let mut objects: Vec<&ObjectRef> = Vec::new();
    for (place, finding) in findings.iter().enumerate() {
        let places = by_object.entry(&finding.object).or_insert_with(|| {
            objects.push(&finding.object);
            Vec::new()
        });
        if !finding.remedies.is_empty() {
            places.push(place);
        }
    }
    let mut found = SafePatches::default();
    let (mut trial, mut displacements) = (Trial::new(reach), Displacements::new(reach));
    let (facts, mut later) = (&FactsByOwner::of(facts), Vec::new());
    for objects in objects.chunks(MADE_AT_ONCE) {
        let writers = objects.par_iter().filter_map(|object| {
            let places = Some(&*by_object[*object]).filter(|places| !places.is_empty())?;
            let (source, made) = (source_of(object), BTreeMap::new());
            let mut writer = Writer { facts, findings, source, places, made };
            writer.candidates(places, &trial.index);
            Some(writer)
        });
        let writers: Vec<Writer<'_>> = writers.collect();
        for mut writer in writers {
            // Tolerations come before taints, so nodes are changed last.
            let candidates = writer.candidates(writer.places, &trial.index);
            if candidates.iter().any(|candidate| candidate.patch.nodes.is_some()) {
                later.push(writer);
                continue;
            }
            writer.write((&mut trial, &mut displacements), &mut found);
        }
    }
    for writer in later {
        writer.write((&mut trial, &mut displacements), &mut found);
    }
    found.written.sort_by_key(|safe| order::rank(&safe.patch));
    found
}

/// Writes the patches of one object.
struct Writer<'w> {
    facts: &'w FactsByOwner<'w>,
    findings: &'w [&'w Finding],
    source: Option<SourceObject>,
    /// Places of the findings about it that say what would fix them.
    places: &'w [usize],
    /// The patches of findings at these places.
    made: BTreeMap<Vec<usize>, Vec<PatchCandidate>>,
}

impl Writer<'_> {
    /// The patches of some of the findings. They are made once.
    fn candidates(&mut self, places: &[usize], index: &GroupIndex<'_>) -> &[PatchCandidate] {
        self.made.entry(places.to_vec()).or_insert_with(|| {
            let of: Vec<&Finding> = places.iter().map(|place| self.findings[*place]).collect();
            let patches = patches(self.facts, &of, self.source.as_ref()).into_iter();
            patches.map(|patch| PatchCandidate::of(patch, index)).collect()
        })
    }

    /// Takes the changes of one finding after the other, as long as they harm no pod.
    fn write(
        mut self,
        (trial, displacements): (&mut Trial<'_>, &mut Displacements),
        found: &mut SafePatches,
    ) {
        let mut kept: Vec<usize> = Vec::new();
        let mut warning = None;
        for place in self.places {
            let with: Vec<usize> = kept.iter().copied().chain([*place]).collect();
            let mut candidates = self.candidates(&with, &trial.index).iter();
            let edited = candidates.find(|candidate| candidate.patch.edited.is_some());
            match edited.map_or(Ok(None), |candidate| judge(candidate, trial)) {
                Ok(of_patch) => (kept, warning) = (with, of_patch),
                Err((order, pods)) => {
                    found.withheld.push(Withheld { finding: *place, pods, order });
                }
            }
        }
        for mut candidate in self.made.remove(&kept).unwrap_or_default() {
            let patch = &candidate.patch;
            let fixes = |place: &&usize| patch.checks.contains(&self.findings[**place].check.id);
            let findings: Vec<usize> = kept.iter().filter(fixes).copied().collect();
            if let (Some(first), Some(withheld)) =
                (findings.first(), order::of_unknown_pods(patch, trial.nodes.reach))
            {
                let (order, pods) = withheld;
                found.withheld.push(Withheld { finding: *first, pods, order });
                continue;
            }
            // The object itself was judged above.
            let mut harmed = match patch.edited {
                Some(_) => Vec::new(),
                None => trial.harmed_by(&candidate),
            };
            if harmed.is_empty() {
                harmed = displacements.harmed_by(trial, patch);
            }
            match (harmed.is_empty(), findings.first()) {
                (true, _) => {
                    if patch.edited.is_some() {
                        candidate.patch.warnings.extend(warning.map(str::to_owned));
                    }
                    trial.charge(&candidate);
                    displacements.apply(trial, &candidate);
                    found.write(candidate.patch, findings);
                }
                (false, Some(first)) => {
                    let (order, pods) = first_steps(patch, harmed, trial);
                    found.withheld.push(Withheld { finding: *first, pods, order });
                }
                (false, None) => {}
            }
        }
    }
}

/// A warning for the patch of an object, if it may be written; else what to do first, and the pods
/// that the patch harms.
fn judge(
    candidate: &PatchCandidate,
    trial: &mut Trial<'_>,
) -> Result<Option<&'static str>, (String, Vec<ObjectRef>)> {
    let patch = &candidate.patch;
    let rejected = order::of_unknown_pods(patch, trial.nodes.reach)
        .or_else(|| admission::rejected(trial, candidate));
    if let Some(rejected) = rejected {
        return Err(rejected);
    }
    let harmed = trial.harmed_by(candidate);
    if !harmed.is_empty() {
        return Err(first_steps(patch, harmed, trial));
    }
    let roll_out = trial.roll_out(candidate);
    let warning = roll_out.warning();
    roll_out.safe_order(patch).map_or(Ok(warning), Err)
}

/// What to do before a patch that harms pods, and these.
fn first_steps(patch: &Patch, harmed: Vec<Harmed>, trial: &Trial<'_>) -> (String, Vec<ObjectRef>) {
    let order = order::safe_order(patch, &harmed, trial);
    (order, harmed.into_iter().flat_map(|harmed| harmed.pods).collect())
}
