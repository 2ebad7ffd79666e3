//! Annotations with sizes beside another setting that says how many pods a gang has: the group's,
//! Kueue's, or the workload's. They may say the same, on the object or on any pod, and nothing that
//! goes against it.

use dovetail_objects::{Meta, Pod};

use super::plain::{MAX_MEMBERS, MIN_MEMBERS};
use super::{GangName, GangTerms, NotYet, count, impossible};

/// The terms of a gang whose group says by `setting` with how many pods it starts. The group says
/// nothing about how many there are at most, so that annotation is kept.
pub(super) fn beside_group(
    gang: &GangName,
    setting: &str,
    object: &Meta,
    members: &[&Pod],
    terms: GangTerms,
) -> Result<GangTerms, NotYet> {
    let own = match terms.min {
        0 => format!("{setting} sets no minimum, so each of its pods starts by itself"),
        min => format!("{setting} is {min}"),
    };
    check_fewest(gang, &own, Some(object), members, terms.min.max(1))?;
    match check_most(gang, &own, Some(object), members, terms.min)? {
        None => Ok(terms),
        Some(max) => Ok(GangTerms { expected: max, max: Some(max), ..terms }),
    }
}

/// Refuses another smallest size than `min` pods; `own` says what asks for these.
pub(super) fn check_fewest(
    gang: &GangName,
    own: &str,
    object: Option<&Meta>,
    members: &[&Pod],
    min: u32,
) -> Result<(), NotYet> {
    match annotated(gang, object, members, MIN_MEMBERS)?.filter(|said| *said != min) {
        None => Ok(()),
        Some(said) => {
            let problem = format!(
                "annotation {MIN_MEMBERS} is {said}, and {own}: make them equal or keep only one"
            );
            Err(impossible(gang, problem))
        }
    }
}

/// How many pods may run at a time by annotation, if it says. Fewer than `pods` are refused; `own`
/// says what asks for these.
pub(super) fn check_most(
    gang: &GangName,
    own: &str,
    object: Option<&Meta>,
    members: &[&Pod],
    pods: u32,
) -> Result<Option<u32>, NotYet> {
    match annotated(gang, object, members, MAX_MEMBERS)? {
        Some(max) if max < pods => {
            let problem = format!(
                "annotation {MAX_MEMBERS} is {max}, and {own}: raise it to the number of pods that \
                 start together, or remove it"
            );
            Err(impossible(gang, problem))
        }
        max => Ok(max),
    }
}

/// A number in an annotation, on the object or on some of the pods. All that say it say the same.
fn annotated(
    gang: &GangName,
    object: Option<&Meta>,
    members: &[&Pod],
    annotation: &str,
) -> Result<Option<u32>, NotYet> {
    let on_object = object.and_then(|meta| meta.annotations.get(annotation));
    let on_object = on_object.map(|text| ("it".to_owned(), text));
    let on_pods = members.iter().filter_map(|pod| {
        let text = pod.meta.annotations.get(annotation)?;
        Some((format!("its pod {}", pod.meta.name), text))
    });
    let mut all = on_object.into_iter().chain(on_pods);
    let Some((one, text)) = all.next() else { return Ok(None) };
    match all.find(|(_, other)| *other != text) {
        None => count(gang, annotation, Some(text)),
        Some((other, its_text)) => {
            let problem = format!(
                "annotation {annotation} is `{text}` on {one} and `{its_text}` on {other}: make \
                 them equal or keep only one"
            );
            Err(impossible(gang, problem))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::tests::{pod, read};
    use super::*;

    /// A pod of a native group.
    fn member(name: &str, annotations: Value) -> Pod {
        let spec = json!({"schedulingGroup": {"podGroupName": "train"}});
        pod(name, json!({"metadata": {"annotations": annotations}, "spec": spec}))
    }

    fn group(annotations: Value, policy: Value) -> Option<Value> {
        Some(json!({"metadata": {"name": "train", "namespace": "blue", "annotations": annotations},
            "spec": {"schedulingPolicy": policy}}))
    }

    #[test]
    fn a_size_that_goes_against_the_groups_is_told_with_it() {
        let two = || json!({"gang": {"minCount": 2}});
        let of = |min: &str| json!({"dovetail.dev/min-members": min});
        let refused = |group: Option<Value>, annotations: Value| {
            read(group, &[member("p0", json!({})), member("p1", annotations)]).unwrap_err()
        };
        let three = "podgroup blue/train: annotation dovetail.dev/min-members is 3, and \
                     spec.schedulingPolicy.gang.minCount is 2: make them equal or keep only one";
        assert_eq!(refused(group(json!({}), two()), of("3")), three);
        assert_eq!(refused(group(of("3"), two()), json!({})), three);
        assert_eq!(
            refused(group(of("2"), two()), of("3")),
            "podgroup blue/train: annotation dovetail.dev/min-members is `2` on it and `3` on its \
             pod p1: make them equal or keep only one"
        );
        let told = refused(group(json!({}), json!({"basic": {}})), of("2"));
        assert!(told.contains("minCount sets no minimum, so each of its pods"), "{told}");
        assert_eq!(
            refused(group(json!({}), two()), json!({"dovetail.dev/max-members": "1"})),
            "podgroup blue/train: annotation dovetail.dev/max-members is 1, and \
             spec.schedulingPolicy.gang.minCount is 2: raise it to the number of pods that start \
             together, or remove it"
        );
    }

    #[test]
    fn a_size_that_goes_with_the_groups_is_kept() {
        let two = json!({"gang": {"minCount": 2}});
        let sizes = |policy: &Value, annotations: Value| {
            let members = [member("p0", json!({})), member("p1", annotations)];
            let terms = read(group(json!({}), policy.clone()), &members).unwrap();
            (terms.min, terms.expected, terms.max)
        };
        assert_eq!(sizes(&two, json!({"dovetail.dev/min-members": "2"})), (2, 2, None));
        assert_eq!(sizes(&two, json!({"dovetail.dev/max-members": "2"})), (2, 2, Some(2)));
        assert_eq!(sizes(&two, json!({"dovetail.dev/max-members": "3"})), (2, 3, Some(3)));
        let basic = json!({"basic": {}});
        assert_eq!(sizes(&basic, json!({"dovetail.dev/min-members": "1"})), (0, 0, None));
    }
}
