//! Labels and annotations: few, short, read often.

use dovetail_objects::Labels;

#[test]
fn the_last_of_equal_keys_stays_and_keys_are_found() {
    let labels: Labels = [("b", "1"), ("a", "2"), ("b", "3")].into_iter().collect();
    assert_eq!(labels.iter().collect::<Vec<_>>(), [("a", "2"), ("b", "3")]);
    assert_eq!((labels.get("b"), labels.get("c")), (Some("3"), None));
}
