//! Names and sizes of container images: what a node has, what a pod names.

use dovetail_objects::{Kind, Object};
use serde_json::json;

#[test]
fn an_image_without_a_tag_is_the_latest() {
    let table = [
        ("trainer", "trainer:latest"),
        ("registry:5000/team/trainer", "registry:5000/team/trainer:latest"),
        ("registry:5000/team/trainer:2", "registry:5000/team/trainer:2"),
        ("team/trainer@sha256:9b0a", "team/trainer@sha256:9b0a"),
    ];
    for (named, full) in table {
        let pod = json!({"metadata": {"name": "p"},
            "spec": {"containers": [{"name": "c", "image": named}]}});
        let Object::Pod(pod) = Object::read(Kind::Pod, pod.to_string().as_bytes()) else {
            panic!("{named}")
        };
        assert_eq!(*pod.images, [full.into()]);
    }
}

/// As many as a kubelet reports if it is not told otherwise: 50 images, 5 names of each.
#[test]
fn a_node_that_tells_of_many_images_keeps_the_largest() {
    let image = |number: i64| {
        let names: Vec<String> = (0..7).map(|name| format!("i{number}:{name}")).collect();
        json!({"names": names, "sizeBytes": if number == 59 { -1 } else { number }})
    };
    let images: Vec<_> = (0..60).map(image).collect();
    let node = json!({"metadata": {"name": "n"}, "status": {"images": images}});
    let Object::Node(node) = Object::read(Kind::Node, node.to_string().as_bytes()) else {
        panic!("{node}")
    };
    let images = node.images;
    assert_eq!(images.iter().count(), 50 * 5);
    assert_eq!(images.size_bytes("i58:4"), Some(58));
    assert_eq!([images.size_bytes("i58:5"), images.size_bytes("i8:0")], [None; 2]);
    assert_eq!(images.size_bytes("i9:0"), Some(9));
}
