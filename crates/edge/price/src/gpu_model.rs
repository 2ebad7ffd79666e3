//! One name per GPU model, whatever the label on the node says.

/// Words of a label that do not change the price: vendor, board form, memory technology, edition.
const NOISE: [&str; 17] = [
    "NVIDIA", "AMD", "TESLA", "INSTINCT", "SXM", "SXM2", "SXM3", "SXM4", "SXM5", "PCIE", "OAM",
    "HGX", "DGX", "MEGA", "HBM2E", "HBM3", "HBM3E",
];

/// Words after which a label speaks of a part of the GPU. The price is of the whole GPU.
const PART_MARKERS: [&str; 2] = ["MIG", "SHARED"];

/// Names left after the noise is gone, and the model of the book they mean. A bare `A100` is the
/// 40 GB card, as in the accelerator label of Google Kubernetes Engine.
const ALIASES: [(&str, &str); 23] = [
    ("A10-24GB", "A10"),
    ("A100", "A100-40GB"),
    ("A10G-24GB", "A10G"),
    ("B200-180GB", "B200"),
    ("B300-268GB", "B300"),
    ("GB200-186GB", "GB200"),
    ("H100-80GB", "H100"),
    ("H100-94GB", "H100-NVL"),
    ("H100-NVL-94GB", "H100-NVL"),
    ("H200-141GB", "H200"),
    ("L4-24GB", "L4"),
    ("L40S-48GB", "L40S"),
    ("MI300X-192GB", "MI300X"),
    ("RTX-PRO-6000-96GB", "RTX-PRO-6000"),
    ("RTX-PRO-6000-BLACKWELL-SERVER-EDITION", "RTX-PRO-6000"),
    ("RTXPRO6000", "RTX-PRO-6000"),
    ("RTXPRO6000-96GB", "RTX-PRO-6000"),
    ("T4-16GB", "T4"),
    ("V100-16GB", "V100"),
    ("V100-32GB", "V100"),
    ("V100M16", "V100"),
    ("V100M32", "V100"),
    ("V100-FHHL-16GB", "V100"),
];

/// The model name under which the price book knows a label such as `NVIDIA-A100-SXM4-80GB`,
/// `Tesla-T4` or `V100M32`. Upper and lower case, spaces, `_` and `-` are alike. A label that the
/// book does not know comes back in capitals, so that the user's own rows can still name it.
pub fn canonical_gpu_model(label: &str) -> String {
    let label = label.to_uppercase();
    let words: Vec<&str> = label
        .split(|letter: char| letter == '-' || letter == '_' || letter.is_whitespace())
        .filter(|word| !word.is_empty())
        .collect();
    let whole = words.iter().position(|word| PART_MARKERS.contains(word)).unwrap_or(words.len());
    let telling: Vec<&str> =
        words[..whole].iter().copied().filter(|word| !NOISE.contains(word)).collect();
    let name = telling.join("-");
    match ALIASES.iter().find(|(alias, _)| *alias == name) {
        Some((_, model)) => (*model).to_owned(),
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_operators_clouds_and_traces_name_the_model_of_the_book() {
        let cases = [
            ("NVIDIA-A100-SXM4-80GB", "A100-80GB"),
            ("NVIDIA-A100-PCIE-40GB", "A100-40GB"),
            ("NVIDIA-A100-SXM4-80GB-MIG-1g.10gb", "A100-80GB"),
            ("nvidia-tesla-a100", "A100-40GB"),
            ("nvidia-a100-80gb", "A100-80GB"),
            ("NVIDIA-H100-80GB-HBM3", "H100"),
            ("nvidia-h100-mega-80gb", "H100"),
            ("NVIDIA H100 PCIe", "H100"),
            ("NVIDIA-H100-NVL", "H100-NVL"),
            ("nvidia-h200-141gb", "H200"),
            ("Tesla-T4", "T4"),
            ("Tesla-T4-SHARED", "T4"),
            ("Tesla-V100-SXM2-32GB", "V100"),
            ("V100M16", "V100"),
            ("V100M32", "V100"),
            ("AMD-Instinct-MI300X-OAM", "MI300X"),
            ("NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", "RTX-PRO-6000"),
            ("NVIDIA-L40S", "L40S"),
            ("nvidia_a10g", "A10G"),
        ];
        for (label, model) in cases {
            assert_eq!(canonical_gpu_model(label), model, "{label}");
        }
    }

    #[test]
    fn an_unknown_label_keeps_its_own_name() {
        for label in ["G2", "P100", "*", "H200-NVL", "A100X"] {
            assert_eq!(canonical_gpu_model(label), label);
        }
    }

    #[test]
    fn every_alias_leads_to_a_name_that_stands_for_itself() {
        for (alias, model) in ALIASES {
            assert_eq!(canonical_gpu_model(alias), model);
            assert_eq!(canonical_gpu_model(model), model);
        }
    }
}
