//! Which groups of alike jobs a job belongs to.

use dovetail_model::{Job, RunTimeGroup};

/// The groups of a job, the widest first: all, its size, its owner, both, and the same work.
pub(super) fn of(job: &Job) -> [RunTimeGroup; 5] {
    let owner = Some(owner(job));
    let gpus = Some(size(job));
    let name = match job.profile.work.is_empty() {
        true => &job.name,
        false => &job.profile.work,
    };
    let work = Some((pattern(name), job.profile.image.clone(), models(job)));
    [
        RunTimeGroup::default(),
        RunTimeGroup { gpus, ..RunTimeGroup::default() },
        RunTimeGroup { owner: owner.clone(), ..RunTimeGroup::default() },
        of_owner_and_size(job),
        RunTimeGroup { owner, gpus, work, stated: false },
    ]
}

/// The jobs of the same owner and size.
pub(super) fn of_owner_and_size(job: &Job) -> RunTimeGroup {
    RunTimeGroup { owner: Some(owner(job)), gpus: Some(size(job)), ..RunTimeGroup::default() }
}

/// The groups of a job that states its run time, the widest first: all such jobs, and those of its
/// owner.
pub(super) fn of_stated(job: &Job) -> [RunTimeGroup; 2] {
    let all = RunTimeGroup { stated: true, ..RunTimeGroup::default() };
    [all.clone(), RunTimeGroup { owner: Some(owner(job)), ..all }]
}

fn owner(job: &Job) -> String {
    match job.profile.owner.is_empty() {
        true => job.queue.clone(),
        false => job.profile.owner.clone(),
    }
}

/// GPUs of the whole job, rounded up to a power of two; 0 without any.
fn size(job: &Job) -> u32 {
    let gpus = u32::try_from((job.min_gpu_milli().max(0) + 999) / 1_000).unwrap_or(u32::MAX);
    if gpus == 0 { 0 } else { gpus.checked_next_power_of_two().unwrap_or(u32::MAX) }
}

/// The GPU models that the job may use.
fn models(job: &Job) -> String {
    let models = job.pod_sets.first().map(|set| &set.requirement.gpu_models);
    models.map(|models| models.iter().cloned().collect::<Vec<_>>().join(",")).unwrap_or_default()
}

/// A name without what differs from one submission to the next: numbers, and parts in which a
/// letter follows a digit, as in generated suffixes.
fn pattern(name: &str) -> String {
    let part = |part: &str| {
        let mut pairs = part.as_bytes().windows(2);
        let is_generated =
            pairs.any(|pair| pair[0].is_ascii_digit() && pair[1].is_ascii_lowercase());
        if is_generated { "#".to_owned() } else { without_numbers(part) }
    };
    let mut parts: Vec<String> = name.split('-').map(part).collect();
    parts.dedup();
    parts.join("-")
}

fn without_numbers(part: &str) -> String {
    let mut pattern = String::new();
    for c in part.chars() {
        match c.is_ascii_digit() {
            true if pattern.ends_with('#') => {}
            true => pattern.push('#'),
            false => pattern.push(c),
        }
    }
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_one_work_have_one_pattern() {
        for (name, expected) in [
            ("team/bert-17", "team/bert-#"),
            ("team/bert-18", "team/bert-#"),
            ("team/bert-7f9c4d-x2k9q", "team/bert-#"),
            ("team/resnet50-nightly-20261126", "team/resnet#-nightly-#"),
            ("81234", "#"),
        ] {
            assert_eq!(pattern(name), expected);
        }
    }
}
