//! GPU model and number of GPUs of the instance types of cloud providers, whether or not a price of
//! them is known (sources: NOTICE).
//!
//! Types whose GPU is a part of one (`g6f`, `gr6f`, the small `NVads_A10_v5`, `g4-standard-6` and
//! their like) are left out: a number of GPUs cannot say what they have. So are types to which
//! GPUs are attached in any number (`n1`).

/// The GPUs of an instance type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstanceType {
    /// `aws`, `azure`, `gcp` or `oci`.
    pub provider: &'static str,
    /// Canonical name of the GPU model.
    pub gpu_model: &'static str,
    pub gpus: i64,
}

/// Name of the type, canonical name of its GPU model, number of GPUs.
type Row = (&'static str, &'static str, i64);

const PROVIDERS: [(&str, &[Row]); 4] = [("aws", AWS), ("azure", AZURE), ("gcp", GCP), ("oci", OCI)];

const AWS: &[Row] = &[
    ("g3.16xlarge", "M60", 4),
    ("g3.4xlarge", "M60", 1),
    ("g3.8xlarge", "M60", 2),
    ("g3s.xlarge", "M60", 1),
    ("g4ad.16xlarge", "RADEON-PRO-V520", 4),
    ("g4ad.2xlarge", "RADEON-PRO-V520", 1),
    ("g4ad.4xlarge", "RADEON-PRO-V520", 1),
    ("g4ad.8xlarge", "RADEON-PRO-V520", 2),
    ("g4ad.xlarge", "RADEON-PRO-V520", 1),
    ("g4dn.12xlarge", "T4", 4),
    ("g4dn.16xlarge", "T4", 1),
    ("g4dn.2xlarge", "T4", 1),
    ("g4dn.4xlarge", "T4", 1),
    ("g4dn.8xlarge", "T4", 1),
    ("g4dn.metal", "T4", 8),
    ("g4dn.xlarge", "T4", 1),
    ("g5.12xlarge", "A10G", 4),
    ("g5.16xlarge", "A10G", 1),
    ("g5.24xlarge", "A10G", 4),
    ("g5.2xlarge", "A10G", 1),
    ("g5.48xlarge", "A10G", 8),
    ("g5.4xlarge", "A10G", 1),
    ("g5.8xlarge", "A10G", 1),
    ("g5.xlarge", "A10G", 1),
    ("g5g.16xlarge", "T4G", 2),
    ("g5g.2xlarge", "T4G", 1),
    ("g5g.4xlarge", "T4G", 1),
    ("g5g.8xlarge", "T4G", 1),
    ("g5g.metal", "T4G", 2),
    ("g5g.xlarge", "T4G", 1),
    ("g6.12xlarge", "L4", 4),
    ("g6.16xlarge", "L4", 1),
    ("g6.24xlarge", "L4", 4),
    ("g6.2xlarge", "L4", 1),
    ("g6.48xlarge", "L4", 8),
    ("g6.4xlarge", "L4", 1),
    ("g6.8xlarge", "L4", 1),
    ("g6.xlarge", "L4", 1),
    ("g6e.12xlarge", "L40S", 4),
    ("g6e.16xlarge", "L40S", 1),
    ("g6e.24xlarge", "L40S", 4),
    ("g6e.2xlarge", "L40S", 1),
    ("g6e.48xlarge", "L40S", 8),
    ("g6e.4xlarge", "L40S", 1),
    ("g6e.8xlarge", "L40S", 1),
    ("g6e.xlarge", "L40S", 1),
    ("g7e.12xlarge", "RTX-PRO-6000", 2),
    ("g7e.24xlarge", "RTX-PRO-6000", 4),
    ("g7e.2xlarge", "RTX-PRO-6000", 1),
    ("g7e.48xlarge", "RTX-PRO-6000", 8),
    ("g7e.4xlarge", "RTX-PRO-6000", 1),
    ("g7e.8xlarge", "RTX-PRO-6000", 1),
    ("gr6.4xlarge", "L4", 1),
    ("gr6.8xlarge", "L4", 1),
    ("p2.16xlarge", "K80", 16),
    ("p2.8xlarge", "K80", 8),
    ("p2.xlarge", "K80", 1),
    ("p3.16xlarge", "V100", 8),
    ("p3.2xlarge", "V100", 1),
    ("p3.8xlarge", "V100", 4),
    ("p3dn.24xlarge", "V100", 8),
    ("p4d.24xlarge", "A100-40GB", 8),
    ("p4de.24xlarge", "A100-80GB", 8),
    ("p5.48xlarge", "H100", 8),
    ("p5.4xlarge", "H100", 1),
    ("p5e.48xlarge", "H200", 8),
    ("p5en.48xlarge", "H200", 8),
    ("p6-b200.48xlarge", "B200", 8),
    ("p6-b300.48xlarge", "B300", 8),
    ("p6e-gb200.36xlarge", "GB200", 4),
];

const AZURE: &[Row] = &[
    ("Standard_NC12", "K80", 2),
    ("Standard_NC12s_v2", "P100", 2),
    ("Standard_NC12s_v3", "V100", 2),
    ("Standard_NC16as_T4_v3", "T4", 1),
    ("Standard_NC24", "K80", 4),
    ("Standard_NC24ads_A100_v4", "A100-80GB", 1),
    ("Standard_NC24r", "K80", 4),
    ("Standard_NC24rs_v2", "P100", 4),
    ("Standard_NC24rs_v3", "V100", 4),
    ("Standard_NC24s_v2", "P100", 4),
    ("Standard_NC24s_v3", "V100", 4),
    ("Standard_NC40ads_H100_v5", "H100-NVL", 1),
    ("Standard_NC48ads_A100_v4", "A100-80GB", 2),
    ("Standard_NC4as_T4_v3", "T4", 1),
    ("Standard_NC6", "K80", 1),
    ("Standard_NC64as_T4_v3", "T4", 4),
    ("Standard_NC6s_v2", "P100", 1),
    ("Standard_NC6s_v3", "V100", 1),
    ("Standard_NC80adis_H100_v5", "H100-NVL", 2),
    ("Standard_NC8as_T4_v3", "T4", 1),
    ("Standard_NC96ads_A100_v4", "A100-80GB", 4),
    ("Standard_NCC40ads_H100_v5", "H100-NVL", 1),
    ("Standard_ND128isr_GB300_v6", "GB300", 4),
    ("Standard_ND128isr_NDR_GB200_v6", "GB200", 4),
    ("Standard_ND12s", "P40", 2),
    ("Standard_ND24rs", "P40", 4),
    ("Standard_ND24s", "P40", 4),
    ("Standard_ND40rs_v2", "V100", 8),
    ("Standard_ND6s", "P40", 1),
    ("Standard_ND96amsr_A100_v4", "A100-80GB", 8),
    ("Standard_ND96asr_v4", "A100-40GB", 8),
    ("Standard_ND96is_MI300X_v5", "MI300X", 8),
    ("Standard_ND96isr_H100_v5", "H100", 8),
    ("Standard_ND96isr_H200_v5", "H200", 8),
    ("Standard_ND96isr_MI300X_v5", "MI300X", 8),
    ("Standard_NV12", "M60", 2),
    ("Standard_NV12s_v3", "M60", 1),
    ("Standard_NV24", "M60", 4),
    ("Standard_NV24s_v3", "M60", 2),
    ("Standard_NV36adms_A10_v5", "A10", 1),
    ("Standard_NV36ads_A10_v5", "A10", 1),
    ("Standard_NV48s_v3", "M60", 4),
    ("Standard_NV6", "M60", 1),
    ("Standard_NV72ads_A10_v5", "A10", 2),
];

const GCP: &[Row] = &[
    ("a2-highgpu-1g", "A100-40GB", 1),
    ("a2-highgpu-2g", "A100-40GB", 2),
    ("a2-highgpu-4g", "A100-40GB", 4),
    ("a2-highgpu-8g", "A100-40GB", 8),
    ("a2-megagpu-16g", "A100-40GB", 16),
    ("a2-ultragpu-1g", "A100-80GB", 1),
    ("a2-ultragpu-2g", "A100-80GB", 2),
    ("a2-ultragpu-4g", "A100-80GB", 4),
    ("a2-ultragpu-8g", "A100-80GB", 8),
    ("a3-edgegpu-8g", "H100", 8),
    ("a3-edgegpu-8g-nolssd", "H100", 8),
    ("a3-highgpu-1g", "H100", 1),
    ("a3-highgpu-1g-nolssd", "H100", 1),
    ("a3-highgpu-2g", "H100", 2),
    ("a3-highgpu-2g-nolssd", "H100", 2),
    ("a3-highgpu-4g", "H100", 4),
    ("a3-highgpu-4g-nolssd", "H100", 4),
    ("a3-highgpu-8g", "H100", 8),
    ("a3-highgpu-8g-nolssd", "H100", 8),
    ("a3-megagpu-8g", "H100", 8),
    ("a3-ultragpu-8g", "H200", 8),
    ("a4-highgpu-8g", "B200", 8),
    ("a4x-highgpu-4g", "GB200", 4),
    ("a4x-maxgpu-4g-metal", "GB300", 4),
    ("g2-standard-12", "L4", 1),
    ("g2-standard-16", "L4", 1),
    ("g2-standard-24", "L4", 2),
    ("g2-standard-32", "L4", 1),
    ("g2-standard-4", "L4", 1),
    ("g2-standard-48", "L4", 4),
    ("g2-standard-8", "L4", 1),
    ("g2-standard-96", "L4", 8),
    ("g4-standard-192", "RTX-PRO-6000", 4),
    ("g4-standard-384", "RTX-PRO-6000", 8),
    ("g4-standard-48", "RTX-PRO-6000", 1),
    ("g4-standard-96", "RTX-PRO-6000", 2),
];

const OCI: &[Row] = &[
    ("BM.GPU.A10.4", "A10", 4),
    ("BM.GPU.A100-v2.8", "A100-80GB", 8),
    ("BM.GPU.B200.8", "B200", 8),
    ("BM.GPU.GB200.4", "GB200", 4),
    ("BM.GPU.GB300.4", "GB300", 4),
    ("BM.GPU.H100.8", "H100", 8),
    ("BM.GPU.H200.8", "H200", 8),
    ("BM.GPU.L40S-NC.4", "L40S", 4),
    ("BM.GPU.L40S.4", "L40S", 4),
    ("BM.GPU.MI300X.8", "MI300X", 8),
    ("BM.GPU2.2", "P100", 2),
    ("BM.GPU3.8", "V100", 8),
    ("BM.GPU4.8", "A100-40GB", 8),
    ("VM.GPU.A10.1", "A10", 1),
    ("VM.GPU.A10.2", "A10", 2),
    ("VM.GPU2.1", "P100", 1),
    ("VM.GPU3.1", "V100", 1),
    ("VM.GPU3.2", "V100", 2),
    ("VM.GPU3.4", "V100", 4),
];

/// The GPUs of an instance type by its name, in upper or lower case; `None` if the table does not
/// have it. No two providers have types of one name.
pub fn instance_type(name: &str) -> Option<InstanceType> {
    PROVIDERS.into_iter().find_map(|(provider, rows)| {
        let (_, gpu_model, gpus) = *rows.iter().find(|row| row.0.eq_ignore_ascii_case(name))?;
        Some(InstanceType { provider, gpu_model, gpus })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu_model::canonical_gpu_model;

    #[test]
    fn rows_are_sorted_and_name_canonical_models() {
        for (provider, rows) in PROVIDERS {
            assert!(rows.is_sorted_by(|one, next| one.0 < next.0), "{provider}");
            for (name, model, gpus) in rows {
                assert_eq!(canonical_gpu_model(model), *model, "{name}");
                assert!((1..=16).contains(gpus), "{name}");
                assert_eq!(instance_type(name).map(|of| of.provider), Some(provider), "{name}");
            }
        }
    }

    #[test]
    fn types_without_a_known_price_have_their_gpus_and_parts_of_gpus_are_no_gpu() {
        let found = |name: &str| instance_type(name).map(|of| (of.gpu_model, of.gpus));
        for (name, model, gpus) in [
            ("p5e.48xlarge", "H200", 8),
            ("p6e-gb200.36xlarge", "GB200", 4),
            ("g7e.12xlarge", "RTX-PRO-6000", 2),
            ("gr6.4xlarge", "L4", 1),
            ("g5g.16xlarge", "T4G", 2),
            ("g3.8xlarge", "M60", 2),
            ("p2.16xlarge", "K80", 16),
            ("a3-ultragpu-8g", "H200", 8),
            ("a3-edgegpu-8g", "H100", 8),
            ("a4-highgpu-8g", "B200", 8),
            ("a4x-highgpu-4g", "GB200", 4),
            ("Standard_NC24rs_v3", "V100", 4),
            ("standard_nc24ads_a100_v4", "A100-80GB", 1),
            ("BM.GPU.A100-v2.8", "A100-80GB", 8),
        ] {
            assert_eq!(found(name), Some((model, gpus)), "{name}");
        }
        for name in ["g6f.xlarge", "gr6f.4xlarge", "Standard_NV6ads_A10_v5", "g4-standard-6", ""] {
            assert_eq!(found(name), None, "{name}");
        }
    }
}
