//! Models that are served.

use super::{Check, FixKind, Layer, Reach, Severity, Worth};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "MOD-01",
        severity: Severity::Info,
        title: "busy model is served with weights of 16 bits or more",
        explanation: "It serves more than `many_requests_per_day`, and neither its name nor an argument shows that its \
                      weights are quantized. With 8-bit weights, each token moves half the memory, and the same GPUs \
                      serve more requests. First measure the effect on quality with the model's own requests: serve \
                      both, compare, then switch. The finding has no amount, because the gain depends on model, GPU and \
                      load.",
        evidence: "requests per day, bits per weight, number of weights if the name shows it",
        fix: FixKind::OwnerTemplate,
        fix_example: "args: [--quantization=fp8]  # first on a copy that gets a part of the \
                      requests",
        layer: Layer::RightSize,
        worth: Worth::Risk,
        is_inferred: true,
        reach: Reach::Nothing,
    },
    Check {
        id: "MOD-02",
        severity: Severity::Info,
        title: "small model runs alone on large GPUs",
        explanation: "According to its name, its weights fill at most `small_model_percent` of the memory of its GPUs, \
                      and nothing else runs on them: a smaller GPU, a MIG slice or a shared GPU would be enough. Memory \
                      in use does not show this, because servers fill the remaining memory with a cache. If its GPUs \
                      were active for `busy_model_percent` of the measured time or more, the model needs their speed \
                      and there is no finding. The finding has no amount, because the throughput on a smaller GPU must \
                      be tested.",
        evidence: "weights with their bytes, memory of the GPUs of a pod, active share of the time if it was measured",
        fix: FixKind::OwnerTemplate,
        fix_example: "nodeSelector: {nvidia.com/gpu.product: NVIDIA-L4}  # or limits: {nvidia.com/mig-2g.20gb: 1}",
        layer: Layer::RightSize,
        worth: Worth::Risk,
        is_inferred: true,
        reach: Reach::Nothing,
    },
];
