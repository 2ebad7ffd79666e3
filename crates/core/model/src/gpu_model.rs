//! GPU models: the one name of each, and the spellings under which labels, price lists and traces
//! have it.
//!
//! Names are compared as a whole. A spelling that is not in the table is an unknown model, even if
//! it contains the name of a known one: an `A100X` is no `A100`.

use std::borrow::Cow;

use crate::labels::{KARPENTER_GPU_MEMORY, NVIDIA_MEMORY};

/// Vendors and brands that may precede a name.
const BRANDS: [&str; 8] =
    ["NVIDIA", "TESLA", "GEFORCE", "QUADRO", "AMD", "INSTINCT", "INTEL", "HABANA"];

/// Words after which a label names a part of the GPU (a MIG profile) or how it is shared.
const PART_MARKERS: [&str; 2] = ["MIG", "SHARED"];

/// What Google Kubernetes Engine calls the A100 with 40 GB; that with 80 GB is `nvidia-a100-80gb`.
const GKE_A100: &str = "nvidia-tesla-a100";

/// Labels state the memory that a driver reports; it differs from the size in the name of a model
/// by less than this part.
const MEMORY_PERCENT: u64 = 10;

/// The models, each with further spellings of it. Prices and traces mean the card with 40 GB by a
/// bare `A100`; both memory sizes of the V100 are one model.
const MODELS: [(&str, &[&str]); 59] = [
    ("A2", &["A2-16GB", "A2-PCIE-16GB"]),
    ("A10", &["A10-24GB", "A10-PCIE-24GB"]),
    ("A10G", &["A10G-24GB"]),
    ("A16", &["A16-16GB", "A16-PCIE-16GB"]),
    ("A30", &["A30-24GB", "A30-PCIE-24GB"]),
    ("A40", &["A40-48GB", "A40-PCIE-48GB"]),
    ("A100-40GB", &["A100", "A100-SXM4-40GB", "A100-SXM-40GB", "A100-PCIE-40GB", "A100-40GB-PCIE"]),
    (
        "A100-80GB",
        &["A100-SXM4-80GB", "A100-SXM-80GB", "A100-PCIE-80GB", "A100-80GB-PCIE", "A100-80G"],
    ),
    ("A800-40GB", &["A800-PCIE-40GB", "A800-40GB-ACTIVE"]),
    ("A800-80GB", &["A800-SXM4-80GB", "A800-80GB-PCIE", "A800-PCIE-80GB"]),
    (
        "H100",
        &[
            "H100-80GB",
            "H100-80GB-HBM3",
            "H100-80GB-HBM2E",
            "H100-SXM",
            "H100-SXM5",
            "H100-SXM5-80GB",
            "H100-SXM-80GB",
            "H100-PCIE",
            "H100-PCIE-80GB",
            "H100-80GB-PCIE",
            "H100-MEGA-80GB",
            "H100-HGX",
            "HGX-H100",
            "DGX-H100",
        ],
    ),
    ("H100-NVL", &["H100-94GB", "H100-NVL-94GB"]),
    ("H800", &["H800-80GB", "H800-SXM5-80GB", "H800-PCIE"]),
    ("H20", &["H20-96GB", "H20-SXM5-96GB"]),
    (
        "H200",
        &["H200-141GB", "H200-141GB-HBM3E", "H200-SXM", "H200-SXM5", "H200-SXM-141GB", "HGX-H200"],
    ),
    ("H200-NVL", &["H200-NVL-141GB"]),
    ("GH200", &["GH200-480GB", "GH200-96GB", "GH200-96GB-HBM3", "GH200-120GB"]),
    ("GH200-144GB", &["GH200-144GB-HBM3E", "GH200-144G-HBM3E"]),
    ("B200", &["B200-180GB", "B200-192GB", "B200-SXM", "B200-SXM6", "HGX-B200"]),
    ("B300", &["B300-268GB", "B300-269GB", "B300-288GB", "B300-SXM", "B300-SXM6-AC"]),
    ("GB200", &["GB200-186GB", "GB200-192GB", "GB200-NVL72"]),
    ("GB300", &["GB300-278GB", "GB300-288GB", "GB300-NVL72"]),
    ("L4", &["L4-24GB"]),
    ("L20", &["L20-48GB"]),
    ("L40", &["L40-48GB"]),
    ("L40S", &["L40S-48GB"]),
    ("T4", &["T4-16GB"]),
    ("T4G", &["T4G-16GB"]),
    (
        "V100",
        &[
            "V100-16GB",
            "V100-32GB",
            "V100-SXM2",
            "V100-SXM2-16GB",
            "V100-SXM2-32GB",
            "V100-SXM3-32GB",
            "V100-PCIE-16GB",
            "V100-PCIE-32GB",
            "V100-FHHL-16GB",
            "V100-DGXS-16GB",
            "V100-DGXS-32GB",
            "V100M16",
            "V100M32",
        ],
    ),
    ("V100S", &["V100S-32GB", "V100S-PCIE-32GB"]),
    ("P4", &["P4-8GB"]),
    ("P40", &["P40-24GB"]),
    ("P100", &["P100-16GB", "P100-PCIE-12GB", "P100-PCIE-16GB", "P100-SXM2-16GB"]),
    ("K80", &["K80-12GB"]),
    ("M60", &["M60-8GB"]),
    ("RTX-A4000", &["A4000"]),
    ("RTX-A5000", &["A5000"]),
    ("RTX-A6000", &["A6000", "RTX-A6000-48GB"]),
    ("RTX-6000-ADA", &["RTX-6000-ADA-GENERATION"]),
    ("RTX-2080-TI", &["RTX-2080TI"]),
    ("RTX-3090", &["RTX-3090-24GB"]),
    ("RTX-4090", &["RTX-4090-24GB"]),
    ("RTX-5090", &["RTX-5090-32GB"]),
    (
        "RTX-PRO-6000",
        &[
            "RTX-PRO-6000-96GB",
            "RTX-PRO-6000-BLACKWELL-SERVER-EDITION",
            "RTXPRO6000",
            "RTXPRO6000-96GB",
        ],
    ),
    ("MI100", &["MI100-32GB"]),
    ("MI210", &["MI210-64GB"]),
    ("MI250", &["MI250-128GB", "MI250-OAM"]),
    ("MI250X", &["MI250X-OAM", "MI250X-128GB", "MI250X-MI250"]),
    ("MI300A", &["MI300A-128GB"]),
    ("MI300X", &["MI300X-192GB", "MI300X-OAM", "MI300X-HF", "AQUA-VANJARAM-INSTINCT-MI300X"]),
    ("MI325X", &["MI325X-256GB", "MI325X-OAM"]),
    ("MI350X", &["MI350X-288GB", "MI350X-OAM"]),
    ("MI355X", &["MI355X-288GB", "MI355X-OAM"]),
    ("GAUDI2", &["GAUDI-2", "HL-225"]),
    ("GAUDI3", &["GAUDI-3", "HL-325"]),
    ("MAX-1100", &["DATA-CENTER-GPU-MAX-1100"]),
    ("MAX-1550", &["DATA-CENTER-GPU-MAX-1550"]),
    ("FLEX-140", &["DATA-CENTER-GPU-FLEX-140"]),
    ("FLEX-170", &["DATA-CENTER-GPU-FLEX-170"]),
];

/// The model that a label such as `NVIDIA-A100-SXM4-80GB`, `Tesla-T4-SHARED` or `V100M32` names;
/// `None` if the table does not have the spelling. Upper and lower case, blanks, `_`, `-`, `/` and
/// brackets are alike.
pub fn gpu_model(label: &str) -> Option<&'static str> {
    let spelled = spelling(label);
    let is_it = |(model, others): &&(&'static str, &[&str])| {
        *model == spelled || others.contains(&spelled.as_str())
    };
    MODELS.iter().find(is_it).map(|(model, _)| *model)
}

/// Whether a label names several models that differ by their memory size, which it does not state:
/// `NVIDIA-A100`.
pub fn lacks_memory_size(label: &str) -> bool {
    memory_sizes(label).len() > 1
}

/// A node's label of its GPU model, with the memory size if the label lacks it and the memory of
/// each GPU, in MiB, is that of one of the models. `NVIDIA-A100` with 81920 is `A100-80GB`.
pub fn with_memory_size<'l>(label: &'l str, memory_mib: Option<&str>) -> Cow<'l, str> {
    // There it is the memory of an instance.
    let memory_mib = memory_mib.filter(|_| !words(&label.to_uppercase()).contains(&"MIG"));
    let Some(mib) = memory_mib.and_then(|text| text.parse::<u32>().ok()).map(u64::from) else {
        return Cow::Borrowed(label);
    };
    let is_near = |gb: &u64| mib.abs_diff(gb * 1024) * 100 <= gb * 1024 * MEMORY_PERCENT;
    let sizes = memory_sizes(label);
    match sizes.iter().copied().find(is_near) {
        Some(gb) if sizes.len() > 1 => Cow::Owned(format!("{}-{gb}GB", spelling(label))),
        _ => Cow::Borrowed(label),
    }
}

/// The memory of each GPU of a node in MiB, as a label of the node states it.
pub fn memory_label<'l>(label: impl Fn(&str) -> Option<&'l str>) -> Option<&'l str> {
    [NVIDIA_MEMORY, KARPENTER_GPU_MEMORY].into_iter().find_map(label)
}

/// Memory sizes, in GB, of the models whose name is that of a label and their memory size; none if
/// the label is the name of a model.
fn memory_sizes(label: &str) -> Vec<u64> {
    let spelled = spelling(label);
    let is_model = MODELS.iter().any(|(model, _)| *model == spelled);
    if is_model || label.eq_ignore_ascii_case(GKE_A100) {
        return Vec::new();
    }
    let size = |name: &str| {
        let rest = name.strip_prefix(&*spelled)?.strip_prefix('-')?;
        rest.strip_suffix("GB")?.parse::<u64>().ok()
    };
    let of_model = |(model, others): &(&'static str, &'static [&'static str])| {
        size(model).or_else(|| others.iter().find_map(|name| size(name)))
    };
    MODELS.iter().filter_map(of_model).collect()
}

/// The name under which a label is known: its model, else the label in capitals without vendor and
/// brand, so that a price of the user's own can still name it.
pub fn canonical_gpu_model(label: &str) -> String {
    gpu_model(label).map_or_else(|| spelling(label), str::to_owned)
}

/// A label without brands in front and parts behind.
fn spelling(label: &str) -> String {
    let label = label.to_uppercase();
    let words = words(&label);
    let end = words.iter().position(|word| PART_MARKERS.contains(word)).unwrap_or(words.len());
    let begin = words[..end].iter().position(|word| !BRANDS.contains(word)).unwrap_or(end);
    words[begin..end].join("-")
}

fn words(label: &str) -> Vec<&str> {
    let separates = |letter: char| "-_/[]()".contains(letter) || letter.is_whitespace();
    label.split(separates).filter(|word| !word.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_operators_clouds_and_traces_name_their_model() {
        let cases = include_str!("gpu_labels.csv").lines().skip(1);
        let mut count = 0;
        for case in cases {
            let (label, model) = case.split_once(',').unwrap();
            let expected = (!model.is_empty()).then_some(model);
            assert_eq!(gpu_model(label), expected, "{label}");
            count += usize::from(expected.is_some());
        }
        assert!(count >= 100, "{count}");
    }

    #[test]
    fn an_unknown_label_keeps_its_own_name() {
        for label in ["G2", "*", "A100X", "H100-SXM6", "MI999"] {
            assert_eq!((gpu_model(label), canonical_gpu_model(label)), (None, label.to_owned()));
        }
        assert_eq!(canonical_gpu_model("nvidia-a100x_20gb"), "A100X-20GB");
    }

    #[test]
    fn the_memory_of_a_gpu_decides_between_models_of_one_name() {
        let model = |label: &str, mib: &str| {
            let sized = with_memory_size(label, Some(mib));
            (!lacks_memory_size(&sized)).then(|| canonical_gpu_model(&sized))
        };
        let is = |name: &str| Some(name.to_owned());
        for (label, mib, known) in [
            ("NVIDIA-A100", "81920", is("A100-80GB")),
            ("NVIDIA-A100-SHARED", "81251", is("A100-80GB")),
            ("a100", "40960", is("A100-40GB")),
            ("NVIDIA-A100-PCIe", "40536", is("A100-40GB")),
            ("NVIDIA-A800", "81920", is("A800-80GB")),
            // No such card, no number, and the memory of an instance of either.
            ("NVIDIA-A100", "61440", None),
            ("NVIDIA-A100", "80Gi", None),
            ("NVIDIA-A100-MIG-3g.40gb", "40192", None),
            // The label itself states the model.
            ("NVIDIA-A100-SXM4-80GB", "40960", is("A100-80GB")),
            ("nvidia-tesla-a100", "81920", is("A100-40GB")),
            ("Tesla-V100-SXM2", "16384", is("V100")),
            ("NVIDIA-H100-PCIe", "81559", is("H100")),
        ] {
            assert_eq!(model(label, mib), known, "{label} {mib}");
        }
        assert!(lacks_memory_size(&with_memory_size("NVIDIA-A100", None)));
        let labels = [(KARPENTER_GPU_MEMORY, "40960")];
        let label = |key: &str| labels.iter().find(|(known, _)| *known == key).map(|of| of.1);
        assert_eq!(memory_label(label), Some("40960"));
    }

    #[test]
    fn every_spelling_is_of_one_model_and_every_model_stands_for_itself() {
        let mut all = std::collections::BTreeSet::new();
        for (model, others) in MODELS {
            for name in others.iter().chain([&model]) {
                assert!(all.insert(name.to_owned()), "{name} is there twice");
                assert_eq!(
                    (canonical_gpu_model(name), &*spelling(name)),
                    (model.to_owned(), *name)
                );
            }
        }
    }
}
