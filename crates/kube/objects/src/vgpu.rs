//! Parts of GPUs that HAMi or Volcano allocates (vGPUs). They say in annotations which pod has
//! what; NVIDIA's device plugin and the kubelet do not know of it.

use crate::labels;
use crate::{Node, Pod};

/// Resources by which pods ask HAMi for parts of GPUs.
const HAMI_PARTS: [&str; 3] =
    ["nvidia.com/gpumem", labels::HAMI_CORES, "nvidia.com/gpumem-percentage"];
/// How resources begin by which pods ask Volcano: those of vGPUs, and of its older GPU sharing.
const VOLCANO_PARTS: [&str; 2] = ["volcano.sh/vgpu-", "volcano.sh/gpu-"];

/// Whether pods ask HAMi or Volcano for parts of GPUs by this resource.
pub fn is_vgpu_resource(resource: &str) -> bool {
    HAMI_PARTS.contains(&resource) || VOLCANO_PARTS.iter().any(|part| resource.starts_with(part))
}

impl Node {
    /// The annotation by which HAMi or Volcano takes over the GPUs of the node, with its list of
    /// them; `None` if neither does.
    pub fn vgpu_register(&self) -> Option<(&'static str, &str)> {
        let list = |key| Some((key, self.meta.annotations.get(key)?));
        let registers = [labels::HAMI_REGISTER, labels::VOLCANO_REGISTER];
        registers.into_iter().filter_map(list).find(|(_, list)| !list.is_empty())
    }
}

impl Pod {
    /// The annotation or resource that shows that the pod has vGPUs, or asks for some; `None` if
    /// nothing shows it.
    pub fn vgpu(&self) -> Option<&str> {
        // One entry for each container, empty where that has none.
        let is_named = |list: &str| list.chars().any(|c| !matches!(c, ':' | ';' | ' '));
        let holds = |key: &str| self.meta.annotations.get(key).is_some_and(is_named);
        let annotation = labels::VGPUS_HELD.into_iter().find(|key| holds(key));
        annotation.or_else(|| {
            let mut asked = self.requests.extended.iter();
            let found = asked.find(|(name, count)| **count > 0 && is_vgpu_resource(name));
            found.map(|(name, _)| &**name)
        })
    }
}
