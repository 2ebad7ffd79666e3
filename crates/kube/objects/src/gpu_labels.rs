//! What GPU feature discovery writes on a node about its NVIDIA GPUs: the one reading of these
//! labels, for the scheduler, the audit and bills.

use super::labels::{NVIDIA_COUNT, NVIDIA_MEMORY, NVIDIA_PRODUCT, NVIDIA_REPLICAS};

/// More GPUs of a node, or replicas of a GPU, are a slip of whoever wrote the label.
const MOST: u32 = 4096;

/// Between the model and the profile in the product of a node with the MIG strategy `single`.
const MIG: &str = "-MIG-";

/// What the labels say; `None` is what they do not say, or not as a number that can be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GpuLabels<S> {
    /// The model, with the MIG profile or `-SHARED` where whole GPUs are cut or replicated.
    pub product: Option<S>,
    /// Physical GPUs; with the MIG strategy `single` slices.
    pub count: Option<u32>,
    /// Into how many replicas each unit of the resource is divided.
    pub replicas: Option<u32>,
    pub memory_mib: Option<i64>,
}

impl<S: AsRef<str>> GpuLabels<S> {
    /// Reads labels by their keys.
    pub fn read(get: impl Fn(&str) -> Option<S>) -> Self {
        let number = |key: &str| get(key)?.as_ref().parse::<u32>().ok();
        let possible = |key: &str| number(key).filter(|number| (1..=MOST).contains(number));
        Self {
            count: possible(NVIDIA_COUNT),
            replicas: possible(NVIDIA_REPLICAS),
            memory_mib: get(NVIDIA_MEMORY).and_then(|text| text.as_ref().parse().ok()),
            product: get(NVIDIA_PRODUCT),
        }
    }

    /// Whether GPUs, or slices of them, are offered several times.
    pub fn is_replicated(&self) -> bool {
        self.replicas.is_some_and(|replicas| replicas > 1)
    }
}

/// The model and the MIG profile that a product names.
pub fn mig_of_product(product: &str) -> Option<(&str, &str)> {
    let (model, profile) = product.split_once(MIG)?;
    Some((model, profile.strip_suffix("-SHARED").unwrap_or(profile)))
}
