//! What the pods of a job say of how long it runs, and which jobs are like it.

use dovetail_model::{Estimate, HowEnded, InterruptionCost, Job, RunProfile};
use dovetail_objects::{Pod, PodPhase};

use super::Rules;
use super::checkpoints::said_interruption;
use super::gang::made_by;
use super::run_time::said_run_time;

/// What is known of how a job runs, besides what it needs.
#[derive(Clone, Debug, Default)]
pub struct JobDeclaration {
    estimate: Option<Estimate>,
    interruption: InterruptionCost,
    profile: RunProfile,
}

impl JobDeclaration {
    /// What these pods of one job say, as far as the rules believe it.
    pub fn of<'p>(pods: impl IntoIterator<Item = &'p Pod, IntoIter: Clone>, rules: &Rules) -> Self {
        let pods = pods.into_iter();
        let estimate = said_run_time(pods.clone());
        let profile = pods.clone().next().map(profile).unwrap_or_default();
        Self {
            estimate,
            interruption: believed(said_interruption(pods), rules.max_declared_loss_ms),
            profile: RunProfile { stated_ms: estimate.map(|said| said.p50_ms), ..profile },
        }
    }

    /// The same of a job that is ended once it has run for so long.
    #[must_use]
    pub fn within(self, limit_ms: Option<u64>) -> Self {
        let profile = RunProfile { limit_ms, ..self.profile };
        Self { estimate: profile.within_limit(self.estimate), profile, ..self }
    }

    /// The job with that.
    pub fn told(self, job: Job) -> Job {
        let Self { estimate, interruption, profile } = self;
        Job { estimate, interruption, profile, ..job }
    }
}

/// Declared costs, none of them above a limit.
fn believed(declared: InterruptionCost, max_ms: Option<u64>) -> InterruptionCost {
    let at_most = |cost_ms: Option<u64>| cost_ms.map(|ms| ms.min(max_ms.unwrap_or(u64::MAX)));
    InterruptionCost {
        checkpoint_cost_ms: at_most(declared.checkpoint_cost_ms),
        restart_cost_ms: at_most(declared.restart_cost_ms),
        ..declared
    }
}

/// Jobs of one namespace whose pods are made by objects of similar names from the same images are
/// alike.
fn profile(pod: &Pod) -> RunProfile {
    let namespace = &pod.meta.namespace;
    let images: Vec<&str> = pod.images.iter().map(|image| without_tag(image)).collect();
    let maker = made_by(pod).next().map(|(_, name)| format!("{namespace}/{name}"));
    RunProfile {
        owner: namespace.to_string(),
        image: images.join(","),
        work: maker.unwrap_or_default(),
        ..RunProfile::default()
    }
}

/// The name of an image without its tag or digest.
fn without_tag(image: &str) -> &str {
    let image = image.split_once('@').map_or(image, |(name, _)| name);
    match image.rsplit_once(':') {
        // A port of the registry comes before the path.
        Some((name, tag)) if !tag.contains('/') => name,
        _ => image,
    }
}

/// How a job ended whose last pod this is. One that was deleted while it ran had more to do.
pub fn how_ended(pod: &Pod) -> HowEnded {
    match pod.phase {
        PodPhase::Succeeded => HowEnded::Completed,
        _ => HowEnded::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_alike_by_what_made_them_and_their_images() {
        let pod: Pod = serde_json::from_value(serde_json::json!({
            "metadata": {"name": "nightly-7-bcdfg", "namespace": "ml",
                "labels": {"batch.kubernetes.io/job-name": "nightly-7"}},
            "spec": {"containers": [
                {"name": "a", "image": "registry:5000/train:v7"},
                {"name": "b", "image": "registry:5000/side@sha256:0123"}]},
        }))
        .expect("a pod");
        let said = JobDeclaration::of([&pod], &Rules::default()).profile;
        assert_eq!((&*said.owner, &*said.work), ("ml", "ml/nightly-7"));
        assert_eq!(without_tag("registry:5000/train"), "registry:5000/train");
        if !pod.images.is_empty() {
            assert_eq!(said.image, "registry:5000/side,registry:5000/train");
        }
    }

    #[test]
    fn declared_costs_count_up_to_a_limit_and_a_time_limit_bounds_the_run() {
        let pod: Pod = serde_json::from_value(serde_json::json!({"metadata": {"annotations": {
            "dovetail.dev/checkpoint-interval": "10h",
            "dovetail.dev/checkpoint-cost": "30m",
            "dovetail.dev/restart-cost": "48h"}}}))
        .expect("a pod");
        let rules = |max_declared_loss_ms| Rules { max_declared_loss_ms, ..Rules::default() };
        let minutes = |rules: &Rules| {
            let said = JobDeclaration::of([&pod], rules).interruption;
            let all = [said.checkpoint_interval_ms, said.checkpoint_cost_ms, said.restart_cost_ms];
            all.map(|ms| ms.map(|ms| ms / 60_000))
        };
        assert_eq!(minutes(&rules(None)), [Some(600), Some(30), Some(2_880)]);
        // How often a job saves is no cost: without it, it would lose all that it did.
        assert_eq!(minutes(&rules(Some(3_600_000))), [Some(600), Some(30), Some(60)]);
        let limited = JobDeclaration::of([&pod], &rules(None)).within(Some(7));
        assert_eq!(limited.profile.limit_ms, Some(7));
    }
}
