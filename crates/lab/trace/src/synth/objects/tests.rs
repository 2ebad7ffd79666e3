use std::collections::BTreeSet;

use super::*;

fn small(seed: u64) -> GeneratedObjects {
    objects(&ObjectsConfig { seed, nodes: 32 }).expect("a size within the limits")
}

fn bytes(objects: &GeneratedObjects) -> Vec<u8> {
    let mut bytes = Vec::new();
    for kind in ObjectKind::ALL {
        objects.write_list(kind, &mut bytes).expect("memory takes everything");
    }
    objects.write_usage(&mut bytes).expect("memory takes everything");
    bytes
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_does_not() {
    assert!(bytes(&small(42)) == bytes(&small(42)));
    assert!(bytes(&small(42)) != bytes(&small(2)));
}

#[test]
fn every_slip_has_an_owner_and_there_are_as_many_pods_as_promised() {
    let made = |nodes: u32| objects(&ObjectsConfig { seed: 42, nodes });
    let large = made(400).expect("a size within the limits");
    assert_eq!((large.slips().len(), large.pods()), (26, 400 * 20), "{:?}", large.slips());
    // Each pool has a node, whatever the size.
    assert_eq!(made(12).expect("a size within the limits").pods(), 12 * 20);
    assert!(made(11).is_err());
}

/// What no API server would have let happen.
#[test]
fn nothing_is_held_twice_and_every_owner_is_there() {
    let objects = objects(&ObjectsConfig { seed: 7, nodes: 200 }).expect("it is within limits");
    let number = |value: &Value| -> u64 {
        let text = value.as_str().unwrap_or("0");
        let digits = text.trim_end_matches(|letter: char| !letter.is_ascii_digit());
        digits.parse().expect("a number with a unit")
    };
    let mut left: std::collections::BTreeMap<String, [u64; 3]> = objects
        .of_kind(ObjectKind::Node)
        .map(|node| {
            let offers = &node["status"]["allocatable"];
            let units = offers.as_object().expect("a map").iter();
            let units: u64 =
                units.filter(|(key, _)| key.contains(".com/")).map(|(_, n)| number(n)).sum();
            let name = node["metadata"]["name"].as_str().expect("a name").to_owned();
            (name, [number(&offers["cpu"]), number(&offers["memory"]) / 1_024, units])
        })
        .collect();
    let mut owners = BTreeSet::new();
    for kind in ObjectKind::ALL {
        for object in objects.of_kind(kind) {
            assert!(owners.insert(object["metadata"]["uid"].to_string()), "{object}");
        }
    }
    for pod in objects.of_kind(ObjectKind::Pod) {
        if let Some(owner) = pod["metadata"]["ownerReferences"].get(0) {
            assert!(owners.contains(&owner["uid"].to_string()), "{pod}");
        }
        let Some(node) = pod["spec"]["nodeName"].as_str() else { continue };
        let requests = &pod["spec"]["containers"][0]["resources"]["requests"];
        let units = requests.as_object().expect("a map").iter();
        let units: u64 =
            units.filter(|(key, _)| key.contains(".com/")).map(|(_, n)| number(n)).sum();
        let left = left.get_mut(node).expect("a node that is there");
        for (left, held) in
            left.iter_mut().zip([number(&requests["cpu"]), number(&requests["memory"]), units])
        {
            *left = left.checked_sub(held).expect("no more than there is");
        }
    }
}
