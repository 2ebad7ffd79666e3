//! Kinds of clusters and work, and the published statistics behind every parameter.
//!
//! Sources, by short name:
//! - *openb*: Alibaba GPU trace 2023, list `openb_pod_list_default` (8,152 pods), published with
//!   "Beware of Fragmentation" (USENIX ATC 2023).
//! - *Philly*: Microsoft trace 2017 ("Analysis of Large-Scale Multi-Tenant GPU Clusters for DNN
//!   Training Workloads", USENIX ATC 2019); 82,247 passed jobs with run times, and the earliest
//!   15,000 jobs with their ends.
//! - *ITP*: ten Microsoft clusters 2021 (69,351 jobs), published with ElasticFlow (ASPLOS 2023).
//! - *Kalos*: language-model cluster of Shanghai AI Laboratory ("Characterization of Large Language
//!   Model Development in the Datacenter", NSDI 2024), 319 completed jobs.
//!
//! Where no publication gives a figure, the text says "choice".

use serde::Serialize;

use super::run_time::RunTime;

/// A kind of cluster and work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SynthProfile {
    /// A company's shared cluster: CPU jobs, GPU shares, training from one GPU to gangs of 512.
    #[default]
    Mixed,
    /// Training alone: whole GPUs, from one to gangs of 512.
    Training,
    /// Services and small jobs: mostly shares and single GPUs, as in openb.
    Sharing,
}

/// All profiles.
pub const PROFILES: [SynthProfile; 3] =
    [SynthProfile::Mixed, SynthProfile::Training, SynthProfile::Sharing];

impl SynthProfile {
    /// The name for the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mixed => "mixed",
            Self::Training => "training",
            Self::Sharing => "sharing",
        }
    }

    /// The profile with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        PROFILES.into_iter().find(|profile| profile.name() == name)
    }

    pub(super) fn parameters(self) -> &'static Parameters {
        match self {
            Self::Mixed => &MIXED,
            Self::Training => &TRAINING,
            Self::Sharing => &SHARING,
        }
    }
}

pub(super) struct Parameters {
    pub(super) machines: &'static [MachineClass],
    pub(super) sizes: &'static [SizeClass],
    /// Share of the jobs that fail.
    pub(super) failed: f64,
    /// Share of the jobs that are stopped.
    pub(super) killed: f64,
    /// Arrivals over the day: 1 + amplitude * cos(2 pi (hour - 15) / 24).
    pub(super) day_amplitude: f64,
}

/// Machines of one kind; sizes are those of a public cloud's instance type.
pub(super) struct MachineClass {
    pub(super) gpu_model: &'static str,
    pub(super) gpu_memory_gib: i64,
    pub(super) gpus: u32,
    pub(super) cpu_cores: i64,
    pub(super) memory_gib: i64,
    /// Share of the machines, relative to the other classes.
    pub(super) weight: f64,
}

/// Jobs of one size.
pub(super) struct SizeClass {
    pub(super) pods: u32,
    /// GPUs of each pod.
    pub(super) gpus: u32,
    pub(super) kind: SizeKind,
    /// Share of the jobs, relative to the other classes.
    pub(super) weight: f64,
    pub(super) run_time: RunTime,
}

/// What a size class asks for beside its number of GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SizeKind {
    Cpu,
    Share,
    OneGpu,
    ManyGpus,
}

/// CPU and memory of a pod that go together, with their frequency.
pub(super) struct CpuMemoryRequest {
    pub(super) cpu_milli: i64,
    pub(super) memory_mib: i64,
    pub(super) weight: f64,
}

const fn request(cpu_milli: i64, memory_mib: i64, weight: f64) -> CpuMemoryRequest {
    CpuMemoryRequest { cpu_milli, memory_mib, weight }
}

/// The commonest requests of openb's CPU-only pods with their counts (94% of these pods).
pub(super) const CPU_REQUESTS: [CpuMemoryRequest; 5] = [
    request(12_500, 57_344, 364.0),
    request(32_000, 49_152, 284.0),
    request(8_000, 30_517, 163.0),
    request(15_400, 51_200, 120.0),
    request(16_500, 51_200, 95.0),
];

/// The commonest requests of openb's pods with a share of a GPU, with their counts (96%).
pub(super) const SHARE_REQUESTS: [CpuMemoryRequest; 8] = [
    request(3_152, 5_600, 1122.0),
    request(11_908, 47_104, 625.0),
    request(8_000, 30_517, 486.0),
    request(4_000, 22_888, 189.0),
    request(4_000, 15_258, 182.0),
    request(4_152, 10_600, 152.0),
    request(4_000, 30_517, 136.0),
    request(6_000, 6_144, 51.0),
];

/// The commonest requests of openb's pods with one GPU, with their counts (71%).
pub(super) const ONE_GPU_REQUESTS: [CpuMemoryRequest; 8] = [
    request(11_300, 49_152, 857.0),
    request(11_400, 48_128, 534.0),
    request(3_152, 5_600, 470.0),
    request(18_708, 64_512, 255.0),
    request(9_810, 41_560, 195.0),
    request(12_000, 24_576, 158.0),
    request(15_700, 58_368, 158.0),
    request(11_908, 47_104, 153.0),
];

/// For each GPU of a pod with several: openb's pods with 8 GPUs ask for 88 cores and 320 GiB or
/// for 64 cores and 256 GiB about equally often.
pub(super) const REQUESTS_PER_GPU: [CpuMemoryRequest; 2] =
    [request(11_000, 40_960, 18.0), request(8_000, 32_768, 21.0)];

/// The commonest shares of a GPU in openb, in thousandths, with their counts (95%).
pub(super) const SHARES_MILLI: [(i64, f64); 10] = [
    (810, 1078.0),
    (470, 750.0),
    (320, 328.0),
    (650, 253.0),
    (230, 140.0),
    (460, 128.0),
    (590, 75.0),
    (160, 74.0),
    (550, 72.0),
    (220, 62.0),
];

/// Models of the ITP jobs with their counts in seven of the ten clusters.
pub(super) const MODELS: [(&str, f64); 6] = [
    ("vgg16", 12_534.0),
    ("resnet50", 12_511.0),
    ("deepspeech2", 8_374.0),
    ("bert", 8_351.0),
    ("inception3", 8_306.0),
    ("gpt2", 8_090.0),
];

/// Model of gangs above 64 GPUs; Kalos calls these jobs pretraining.
pub(super) const LARGE_GANG_MODEL: &str = "llm-pretrain";

/// Share of openb's pods that are latency-sensitive (`LS`): 4,647 of 8,152.
pub(super) const LATENCY_SENSITIVE: f64 = 4_647.0 / 8_152.0;

/// Share of the jobs on one node that name a GPU model; openb is published with 10 to 33%
/// (`gpuspec10` to `gpuspec33`), this is its middle variant.
pub(super) const MODEL_CONSTRAINED: f64 = 0.20;

/// A gang asks for at most this part of the GPUs of its model (choice).
pub(super) const LARGEST_GANG: f64 = 0.25;

/// Teams, and how unequal they are: Philly has 15 virtual clusters; the four largest hold 41,226,
/// 16,091, 9,953 and 7,423 jobs, which a Zipf law with exponent 1.3 follows.
pub(super) const TEAMS: u32 = 15;
/// Exponent of the Zipf law of teams, and (choice) of the users of one team.
pub(super) const ZIPF_EXPONENT: f64 = 1.3;
/// Users of each team: 136 users in the earliest 15,000 Philly jobs.
pub(super) const USERS_PER_TEAM: u32 = 9;

/// Arrivals of Saturday and Sunday against the mean day: the two quietest days in a row of the
/// Philly week have 0.72 and 0.79.
pub(super) const WEEKEND: f64 = 0.755;
/// Busiest hour of the day (choice; the traces hide their time zone).
pub(super) const BUSIEST_HOUR: f64 = 15.0;

const fn passed(p50_s: f64, p90_s: f64, p99_s: f64) -> RunTime {
    RunTime { p50_s, p90_s, p99_s, of_successful_jobs: true }
}

const fn all(p50_s: f64, p90_s: f64, p99_s: f64) -> RunTime {
    RunTime { p50_s, p90_s, p99_s, of_successful_jobs: false }
}

// Geometric means of the quantiles of Philly (passed jobs) and ITP (seven clusters), by GPUs.
const RUN_1: RunTime = passed(3_446.0, 14_173.0, 90_357.0);
const RUN_2_TO_4: RunTime = passed(1_205.0, 105_275.0, 701_800.0);
const RUN_8: RunTime = passed(23_556.0, 246_892.0, 796_384.0);
const RUN_16_TO_64: RunTime = passed(41_957.0, 251_930.0, 829_963.0);
// Kalos, the 180 jobs with 128 GPUs and more; completed jobs.
const RUN_LARGE_GANG: RunTime = passed(352.0, 59_901.0, 275_690.0);
// openb, from scheduling to deletion, pods of every end.
const RUN_CPU: RunTime = all(496.0, 13_219.0, 28_368.0);
const RUN_SHARE: RunTime = all(539.0, 9_235.0, 77_910.0);
const RUN_OPENB_1: RunTime = all(758.0, 6_030.0, 243_803.0);
const RUN_OPENB_MANY: RunTime = all(739.0, 68_494.0, 1_332_357.0);

const fn size(pods: u32, gpus: u32, kind: SizeKind, weight: f64, run_time: RunTime) -> SizeClass {
    SizeClass { pods, gpus, kind, weight, run_time }
}

/// CPU-only jobs beside the 69,351 of ITP, in openb's proportion (1,088 of 8,152).
const CPU_WEIGHT: f64 = 69_351.0 * 1_088.0 / 7_064.0;
/// Of ITP's 57,682 jobs with one GPU, those that a shared cluster would give a share: openb has
/// 3,078 shares beside 3,911 whole GPUs.
const SHARE_WEIGHT: f64 = 57_682.0 * 3_078.0 / 6_989.0;
const ONE_WEIGHT: f64 = 57_682.0 * 3_911.0 / 6_989.0;
/// Kalos has 3, 52 and 73 jobs with 128, 256 and 512 GPUs. A quarter of that beside ITP's 69,351
/// makes 0.05% of the jobs (choice: ITP has no such jobs, Kalos almost nothing else).
const KALOS: f64 = 0.25;

const MIXED_SIZES: [SizeClass; 12] = [
    size(1, 0, SizeKind::Cpu, CPU_WEIGHT, RUN_CPU),
    size(1, 1, SizeKind::Share, SHARE_WEIGHT, RUN_SHARE),
    size(1, 1, SizeKind::OneGpu, ONE_WEIGHT, RUN_1),
    size(1, 2, SizeKind::ManyGpus, 1_483.0, RUN_2_TO_4),
    size(1, 4, SizeKind::ManyGpus, 2_371.0, RUN_2_TO_4),
    size(1, 8, SizeKind::ManyGpus, 7_009.0, RUN_8),
    size(2, 8, SizeKind::ManyGpus, 381.0, RUN_16_TO_64),
    size(4, 8, SizeKind::ManyGpus, 354.0, RUN_16_TO_64),
    size(8, 8, SizeKind::ManyGpus, 71.0, RUN_16_TO_64),
    size(16, 8, SizeKind::ManyGpus, 3.0 * KALOS, RUN_LARGE_GANG),
    size(32, 8, SizeKind::ManyGpus, 52.0 * KALOS, RUN_LARGE_GANG),
    size(64, 8, SizeKind::ManyGpus, 73.0 * KALOS, RUN_LARGE_GANG),
];

const TRAINING_SIZES: [SizeClass; 10] = [
    size(1, 1, SizeKind::OneGpu, 57_682.0, RUN_1),
    size(1, 2, SizeKind::ManyGpus, 1_483.0, RUN_2_TO_4),
    size(1, 4, SizeKind::ManyGpus, 2_371.0, RUN_2_TO_4),
    size(1, 8, SizeKind::ManyGpus, 7_009.0, RUN_8),
    size(2, 8, SizeKind::ManyGpus, 381.0, RUN_16_TO_64),
    size(4, 8, SizeKind::ManyGpus, 354.0, RUN_16_TO_64),
    size(8, 8, SizeKind::ManyGpus, 71.0, RUN_16_TO_64),
    size(16, 8, SizeKind::ManyGpus, 3.0 * KALOS, RUN_LARGE_GANG),
    size(32, 8, SizeKind::ManyGpus, 52.0 * KALOS, RUN_LARGE_GANG),
    size(64, 8, SizeKind::ManyGpus, 73.0 * KALOS, RUN_LARGE_GANG),
];

/// Counts of openb.
const SHARING_SIZES: [SizeClass; 6] = [
    size(1, 0, SizeKind::Cpu, 1_088.0, RUN_CPU),
    size(1, 1, SizeKind::Share, 3_078.0, RUN_SHARE),
    size(1, 1, SizeKind::OneGpu, 3_911.0, RUN_OPENB_1),
    size(1, 2, SizeKind::ManyGpus, 16.0, RUN_OPENB_MANY),
    size(1, 4, SizeKind::ManyGpus, 15.0, RUN_OPENB_MANY),
    size(1, 8, SizeKind::ManyGpus, 44.0, RUN_OPENB_MANY),
];

// Instance types of AWS: p5.48xlarge, p4de.24xlarge, p3.16xlarge, g6.12xlarge, g5.12xlarge,
// g4dn.12xlarge.
const fn h100(weight: f64) -> MachineClass {
    machine("H100", 80, 8, 192, 2048, weight)
}
const fn a100(weight: f64) -> MachineClass {
    machine("A100-80GB", 80, 8, 96, 1152, weight)
}
const fn v100(weight: f64) -> MachineClass {
    machine("V100", 16, 8, 64, 488, weight)
}
const fn l4(weight: f64) -> MachineClass {
    machine("L4", 24, 4, 48, 192, weight)
}
const fn a10g(weight: f64) -> MachineClass {
    machine("A10G", 24, 4, 48, 192, weight)
}
const fn t4(weight: f64) -> MachineClass {
    machine("T4", 16, 4, 48, 192, weight)
}

const fn machine(
    gpu_model: &'static str,
    gpu_memory_gib: i64,
    gpus: u32,
    cpu_cores: i64,
    memory_gib: i64,
    weight: f64,
) -> MachineClass {
    MachineClass { gpu_model, gpu_memory_gib, gpus, cpu_cores, memory_gib, weight }
}

/// Four of five GPUs in machines of eight, as in openb (4,704 of 6,212 in its two classes of eight,
/// and part of its V100s); the split over models is a choice.
const MIXED: Parameters = Parameters {
    machines: &[h100(0.25), a100(0.40), v100(0.05), t4(0.12), l4(0.10), a10g(0.08)],
    sizes: &MIXED_SIZES,
    // Ends of the earliest 15,000 Philly jobs.
    failed: 4_509.0 / 15_000.0,
    killed: 1_953.0 / 15_000.0,
    // First harmonic of the day in Philly.
    day_amplitude: 0.29,
};

/// Machines of eight alone, as in ITP and Kalos; the split over models is a choice.
const TRAINING: Parameters = Parameters {
    machines: &[h100(0.4), a100(0.6)],
    sizes: &TRAINING_SIZES,
    failed: MIXED.failed,
    killed: MIXED.killed,
    // First harmonic of the day in ITP.
    day_amplitude: 0.25,
};

/// Smaller machines, with enough of eight GPUs for openb's few large pods (choice).
const SHARING: Parameters = Parameters {
    machines: &[a100(0.25), t4(0.30), l4(0.25), a10g(0.20)],
    sizes: &SHARING_SIZES,
    // Failed pods of openb: 1,870 of 8,152; nothing tells of stopped ones.
    failed: 1_870.0 / 8_152.0,
    killed: 0.0,
    // First harmonic of the day in openb's last 40 days.
    day_amplitude: 0.46,
};
