//! What nobody sees.

use super::{Check, FixKind, Layer, Reach, Severity, Worth};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "VIS-01",
        severity: Severity::Error,
        title: "GPU use of a node is not measured",
        explanation: "No exporter of the GPU vendor runs on the node: NVIDIA's dcgm-exporter, \
                      AMD's device-metrics-exporter, Intel's XPU Manager. Whether its GPUs are \
                      busy is unknown, so idle GPUs cannot be found. Each finding names the \
                      exporter to install. TPUs, Neuron chips and Gaudis have their own tools, \
                      whose series dovetail does not read: the use of such devices is unknown \
                      unless `--usage FILE` contains it, and this check ignores their nodes.",
        evidence: "nodes, with the exporter that is missing",
        fix: FixKind::Exporter,
        fix_example: "install dcgm-exporter (NVIDIA), device-metrics-exporter (AMD) or XPU Manager \
                      (Intel) there  # the exporter of the GPU vendor, with a toleration for these \
                      nodes",
        layer: Layer::Guard,
        worth: Worth::Risk,
        is_inferred: false,
        reach: Reach::Nothing,
    },
    Check {
        id: "VIS-02",
        severity: Severity::Warning,
        title: "GPU counters are stuck at zero while the GPUs are busy",
        explanation: "Profiling counters were zero while kernels ran or power draw was high. Such \
                      counters are known to freeze after weeks of uptime, and then make busy GPUs \
                      appear idle. dovetail counts such time as unmeasured, not as idle.",
        evidence: "GPU and node, minutes in which the signals contradict each other",
        fix: FixKind::Exporter,
        fix_example: "kubectl delete pod -l app=nvidia-dcgm-exporter  # on that node: NVIDIA's exporter restarts with the counters",
        layer: Layer::Guard,
        worth: Worth::Risk,
        is_inferred: false,
        reach: Reach::Nothing,
    },
    Check {
        id: "VIS-03",
        severity: Severity::Info,
        title: "GPU use is measured coarsely",
        explanation: "GPU_UTIL and GR_ENGINE_ACTIVE are 100% as soon as any kernel runs, even one that uses a hundredth \
                      of the GPU or waits for another rank. SM_ACTIVE shows how much of the GPU is busy; dcgm-exporter \
                      does not export it unless configured to.",
        evidence: "best signal",
        fix: FixKind::Exporter,
        fix_example: "DCGM_FI_PROF_SM_ACTIVE, gauge, share of the multiprocessors with work  # in the exporter's list of counters",
        layer: Layer::Guard,
        worth: Worth::Risk,
        is_inferred: false,
        reach: Reach::Nothing,
    },
    Check {
        id: "VIS-04",
        severity: Severity::Info,
        title: "CPU and memory requests of a GPU workload are guesses",
        explanation: "No VerticalPodAutoscaler watches the workload, so its requests are a guess. \
                      A VerticalPodAutoscaler in recommendation mode changes nothing and, after \
                      two weeks, shows which requests are too high or too low.",
        evidence: "VerticalPodAutoscalers that target it",
        fix: FixKind::Namespace,
        fix_example: "updatePolicy: {updateMode: \"Off\"}  # of a VerticalPodAutoscaler",
        layer: Layer::Guard,
        worth: Worth::Risk,
        is_inferred: false,
        reach: Reach::Nothing,
    },
    Check {
        id: "VIS-05",
        severity: Severity::Warning,
        title: "metrics and API server disagree on where pods run",
        explanation: "Samples name a pod on a node where the API server has no such pod, or with more GPUs than are \
                      allocated to it. One of the two is wrong, so dovetail counts the time as unmeasured, not as \
                      idle. Often a label is overwritten in transit, or one server has the samples of two clusters.",
        evidence: "GPU, minutes, pod and node",
        fix: FixKind::Exporter,
        fix_example: "honorLabels: true  # in the exporter's ServiceMonitor; if several clusters share a \
                      server, also set external_labels: {cluster: NAME} in each cluster's Prometheus",
        layer: Layer::Guard,
        worth: Worth::Risk,
        is_inferred: false,
        reach: Reach::Nothing,
    },
];
