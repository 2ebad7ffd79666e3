//! The one table of kinds of owners of pods.

use dovetail_objects::{WorkloadKind, owner_kind};

#[test]
fn workloads_that_are_read_for_their_gangs_are_known_to_form_them() {
    let apart = WorkloadKind::ALL.into_iter().filter(|kind| !owner_kind(kind.name()).gangs);
    // Whether the pods of a Job start together, its fields say.
    assert_eq!(apart.collect::<Vec<_>>(), [WorkloadKind::Job]);
    let unknown = owner_kind("Deployment");
    assert!(!unknown.trains && !unknown.gangs && !unknown.ends);
}
