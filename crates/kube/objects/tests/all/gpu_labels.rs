//! The one reading of the labels of GPU feature discovery.

use dovetail_objects::labels::{NVIDIA_COUNT, NVIDIA_REPLICAS};
use dovetail_objects::{GpuLabels, mig_of_product};

#[test]
fn labels_that_no_node_can_have_say_nothing() {
    let read = |count: &'static str, replicas: &'static str| {
        GpuLabels::read(|key| match key {
            NVIDIA_COUNT => Some(count),
            NVIDIA_REPLICAS => Some(replicas),
            _ => None,
        })
    };
    let plain = read("8", "1");
    assert_eq!((plain.count, plain.is_replicated()), (Some(8), false));
    assert!(read("8", "4").is_replicated());
    for bad in ["0", "-1", "4097", "many", ""] {
        let read = read(bad, bad);
        assert_eq!((read.count, read.replicas, read.product), (None, None, None), "{bad}");
    }
    assert_eq!(mig_of_product("NVIDIA-A30-MIG-2g.12gb-SHARED"), Some(("NVIDIA-A30", "2g.12gb")));
    assert_eq!(mig_of_product("NVIDIA-L4-SHARED"), None);
}
