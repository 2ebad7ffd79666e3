//! Models that are served.

use super::{Check, FixKind, Layer, Reach, Severity, Worth};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "MOD-01",
        severity: Severity::Info,
        title: "busy model is served with weights of 16 bits or more",
        explanation: "It answers more than `many_requests_per_day`, and neither its name nor an argument says that its weights \
                      are quantized. With 8 bits each token moves half the memory, and the same GPUs answer more requests. What \
                      that does to the answers has to be measured on the model's own requests first: serve both, compare, \
                      then switch. No dollars are claimed: the gain depends on model, GPU and load.",
        evidence: "requests a day, bits of a weight, weights where the name says how many",
        fix: FixKind::OwnerTemplate,
        fix_example: "args: [--quantization=fp8]  # on a copy with a part of the requests first",
        layer: Layer::RightSize,
        worth: Worth::Risk,
        is_inferred: true,
        reach: Reach::Nothing,
    },
    Check {
        id: "MOD-02",
        severity: Severity::Info,
        title: "small model runs alone on large GPUs",
        explanation: "By its name its weights fill `small_model_percent` of the memory of its GPUs at most, and nothing else runs on them: a \
                      smaller GPU, a slice or sharing would do. Servers fill the rest of the memory with a cache on their \
                      own, so memory in use does not show it. Where GPUs were measured and active for \
                      `busy_model_percent` of the time or more, the model needs their speed and there is no finding. No dollars are claimed: what a smaller \
                      GPU can serve in time has to be tested.",
        evidence: "weights with their bytes, memory of the GPUs of a pod, active part of the time where it was measured",
        fix: FixKind::OwnerTemplate,
        fix_example: "nodeSelector: {nvidia.com/gpu.product: NVIDIA-L4}  # or limits: {nvidia.com/mig-2g.20gb: 1}",
        layer: Layer::RightSize,
        worth: Worth::Risk,
        is_inferred: true,
        reach: Reach::Nothing,
    },
];
