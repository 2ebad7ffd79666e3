//! The model of the GPUs of a node, as a label or its instance type names it.

use std::borrow::Cow;

use dovetail_model::{memory_label, with_memory_size};
use dovetail_objects::{Labels, labels};

use super::count::type_of;
use super::share::single_mig;

/// Labels that name the GPU model, the most precise first.
const MODEL_LABELS: [&str; 6] = [
    labels::NVIDIA_PRODUCT,
    labels::AMD_PRODUCT,
    labels::AMD_OLD_PRODUCT,
    labels::GKE_ACCELERATOR,
    labels::KARPENTER_GPU,
    labels::AWS_ACCELERATOR,
];

/// The model as a label of the node names it.
pub fn model_label(of: &Labels) -> Option<&str> {
    MODEL_LABELS.iter().find_map(|label| of.get(label).filter(|model| !model.is_empty()))
}

/// The same, else the model of the node's instance type.
pub(super) fn model_of(of: &Labels) -> Option<&str> {
    model_label(of).or_else(|| type_of(of).map(|(_, of_type)| of_type.gpu_model))
}

/// The model without what follows it where plugins offer parts of it under the name of whole GPUs.
pub fn model_of_product(product: &str) -> &str {
    single_mig(product).map_or(product, |(model, _)| model)
}

/// The same as a label of the node names it, with the memory size where models of that name differ
/// by it and a label states the memory.
pub fn sized_model(of: &Labels) -> Option<Cow<'_, str>> {
    let product = model_label(of)?;
    let memory_mib = memory_label(|key| of.get(key));
    Some(match with_memory_size(product, memory_mib) {
        Cow::Borrowed(product) => Cow::Borrowed(model_of_product(product)),
        sized => sized,
    })
}
