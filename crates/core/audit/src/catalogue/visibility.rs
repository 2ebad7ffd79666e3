//! What nobody sees.

use super::{Check, FixKind, Layer, Reach, Severity, Worth};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "VIS-01",
        severity: Severity::Error,
        title: "GPU use of a node is not measured",
        explanation: "No exporter of the vendor of its GPUs runs on the node: NVIDIA's dcgm-exporter, AMD's \
                      device-metrics-exporter, Intel's XPU Manager. Whether its GPUs compute is unknown, and every question \
                      about idle GPUs stays without an answer. Each finding names the exporter of its own vendor. TPUs, \
                      Neuron chips and Gaudis have tools of their own whose series are not read here: what such devices did \
                      is unknown, `--usage FILE` can tell it, and this check asks for nothing on their nodes.",
        evidence: "nodes, with the exporter that is missing",
        fix: FixKind::NodePool,
        fix_example: "install dcgm-exporter (NVIDIA), device-metrics-exporter (AMD) or XPU Manager (Intel) there  # whichever is the vendor's, with a toleration for these nodes",
        layer: Layer::Guard,
        worth: Worth::Risk,
        is_inferred: false,
        reach: Reach::Nothing,
    },
    Check {
        id: "VIS-02",
        severity: Severity::Warning,
        title: "counters of GPUs do not change while the GPUs work",
        explanation: "Profiling counters were zero while kernels ran or much power was drawn: they have been seen to stop \
                      after weeks of running. They make busy GPUs appear idle. Such time is unknown here, \
                      and no check takes it for idle.",
        evidence: "GPU and node, minutes in which the signals contradict each other",
        fix: FixKind::NodePool,
        fix_example: "kubectl delete pod -l app=nvidia-dcgm-exporter  # on that node: NVIDIA's exporter restarts with the counters",
        layer: Layer::Guard,
        worth: Worth::Risk,
        is_inferred: false,
        reach: Reach::Nothing,
    },
    Check {
        id: "VIS-03",
        severity: Severity::Info,
        title: "what GPUs do is measured coarsely",
        explanation: "GPU_UTIL and GR_ENGINE_ACTIVE are 100 % as soon as any kernel runs, also one that fills a hundredth of the GPU \
                      or waits for another rank. SM_ACTIVE tells how much of the GPU works; dcgm-exporter does not export it unless \
                      asked to.",
        evidence: "best signal",
        fix: FixKind::NodePool,
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
        explanation: "No VerticalPodAutoscaler looks at the workload, so its requests are a guess. One that only recommends changes \
                      nothing, and after two weeks tells what is too much and what is too little.",
        evidence: "VerticalPodAutoscalers that look at it",
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
        title: "what is measured contradicts where pods are",
        explanation: "Samples name a pod on a node where the API server does not have it, or with more GPUs than it holds. One of the \
                      two is wrong, so the use of these GPUs is unknown: the time is unknown here, and no check takes it for idle. \
                      Often a label is overwritten on the way, or samples of two clusters are in one server.",
        evidence: "GPU, minutes, pod and node",
        fix: FixKind::NodePool,
        fix_example: "honorLabels: true  # of the ServiceMonitor of the exporter; external_labels: {cluster: NAME} where clusters share a server",
        layer: Layer::Guard,
        worth: Worth::Risk,
        is_inferred: false,
        reach: Reach::Nothing,
    },
];
