//! The tournament tree against a list of keys.

use dovetail_cases::cases;
use dovetail_finder::index::wide_tree::WideTree;
use proptest::prelude::*;

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn best_is_the_greatest_leaf(
        start in prop::collection::vec(0u64..50, 0..70),
        changes in prop::collection::vec((0usize..700, 0u64..50), 0..200),
        many in prop::collection::vec((0usize..900, 0u64..60), 0..300),
    ) {
        let mut tree = WideTree::default();
        let mut keys = start;
        tree.rebuild(keys.iter().copied());
        for (leaf, key) in changes {
            if leaf >= keys.len() {
                keys.resize(leaf + 1, 0);
            }
            keys[leaf] = key;
            tree.set(leaf, key);
            let greatest = keys.iter().copied().max().filter(|key| *key > 0);
            prop_assert_eq!(tree.best().map(|(key, _)| key), greatest);
            if let Some((key, leaf)) = tree.best() {
                prop_assert_eq!(keys[leaf], key);
            }
        }
        for (leaf, key) in many {
            keys.resize(keys.len().max(leaf + 1), 0);
            keys[leaf] = key;
            tree.put(leaf, key);
        }
        tree.settle();
        let mut fresh = WideTree::default();
        fresh.rebuild(keys.iter().copied());
        // Leaf by leaf, the greatest first.
        while let Some((key, leaf)) = fresh.best() {
            prop_assert_eq!(tree.best(), Some((key, leaf)));
            tree.set(leaf, 0);
            fresh.set(leaf, 0);
        }
        prop_assert_eq!(tree.best(), None);
    }
}
