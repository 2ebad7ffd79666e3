//! Whole GPUs that a plan does not cut.

use std::collections::BTreeMap;

use dovetail_partition::Change;

use crate::fleet::{Fleet, product_of};
use crate::objects::Objects;

/// Of each product, the free GPUs that stay whole are the last ones that could be cut. Two products
/// can share one MIG table, and a pod that needs one of them cannot use the other.
pub(crate) fn keep_of_each_product(fleet: &mut Fleet, objects: &Objects) {
    let mut left: BTreeMap<&str, u32> = BTreeMap::new();
    for (gpu, (node, _)) in fleet.world.gpus.iter_mut().zip(&fleet.names).rev() {
        if !gpu.is_whole || gpu.change == Change::Never {
            continue;
        }
        let product = objects.nodes.get(node).and_then(product_of).unwrap_or_default();
        let left = left.entry(product).or_insert(fleet.keep_whole);
        if *left > 0 {
            *left -= 1;
            gpu.change = Change::Never;
        }
    }
}
