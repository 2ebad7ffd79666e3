//! Policies that look at objects before they are let in: which kinds they are of, and whether one
//! is about GPUs.

use dovetail_objects::labels;

/// Kinds of policies that look at objects before they are let in.
const POLICIES: [&str; 6] = [
    "ClusterPolicy",
    "ConstraintTemplate",
    "Policy",
    "ValidatingAdmissionPolicy",
    "ValidatingPolicy",
    "ValidatingWebhookConfiguration",
];

/// Groups of policies whose kinds are made up by their users.
const POLICY_GROUPS: [&str; 2] = ["constraints.gatekeeper.sh/", "kyverno.io/"];

/// Whoever writes a rule about GPUs names one of these.
const GPU_WORDS: [&str; 5] =
    ["nvidia.com/", labels::AMD_GPU, "gpu.intel.com", labels::GOOGLE_TPU, "gpu"];

/// Whether objects of a kind are policies that look at others before they are let in.
pub(crate) fn is_policy(kind: &str, api_version: &str) -> bool {
    // The GPU operator has a ClusterPolicy of its own, which lets nothing in or out.
    let is_operators = api_version.starts_with("nvidia.com/");
    let in_group = POLICY_GROUPS.iter().any(|group| api_version.starts_with(group));
    in_group || POLICIES.contains(&kind) && !is_operators
}

/// Whether a policy has anything to do with GPUs.
pub(crate) fn speaks_of_gpus(policy: &str) -> bool {
    let text = policy.to_lowercase();
    GPU_WORDS.iter().any(|word| text.contains(word))
}
