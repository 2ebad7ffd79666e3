//! Pods without any group object: the label `dovetail.dev/gang` names their gang, and annotations
//! that are the same on all of them say the rest.

use dovetail_objects::Pod;
use dovetail_objects::labels;

use super::{GangName, GangTerms, NotYet, count, impossible, on_lost_member, same};

const GANG: &str = labels::GANG;
pub(super) const MIN_MEMBERS: &str = labels::MIN_MEMBERS;
pub(super) const MAX_MEMBERS: &str = labels::MAX_MEMBERS;

/// What only gangs can keep.
pub const TERMS_OF_GANGS: [&str; 3] = [MIN_MEMBERS, MAX_MEMBERS, super::topology::REQUIRED];

pub(super) fn name_in(pod: &Pod) -> &str {
    pod.meta.labels.get(GANG).unwrap_or("")
}

pub(super) fn terms(gang: &GangName, members: &[&Pod]) -> Result<GangTerms, NotYet> {
    for annotation in [MIN_MEMBERS, MAX_MEMBERS, super::ON_LOST_MEMBER] {
        same(gang, members, annotation, |pod| pod.meta.annotations.get(annotation).unwrap_or(""))?;
    }
    let said = |annotation| members.first().and_then(|pod| pod.meta.annotations.get(annotation));
    let min = count(gang, MIN_MEMBERS, said(MIN_MEMBERS))?.ok_or_else(|| {
        let problem = format!(
            "the number of pods that start together is unknown: set annotation {MIN_MEMBERS} on \
             all of them"
        );
        impossible(gang, problem)
    })?;
    let max = count(gang, MAX_MEMBERS, said(MAX_MEMBERS))?;
    if let Some(max) = max.filter(|max| *max < min) {
        let problem = format!("{MIN_MEMBERS} is {min}, more than {MAX_MEMBERS}, which is {max}");
        return Err(impossible(gang, problem));
    }
    Ok(GangTerms {
        min,
        expected: max.unwrap_or(min),
        max,
        roles: Vec::new(),
        on_lost_member: on_lost_member(gang, None, members)?,
        ..GangTerms::default()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::OnLostMember;
    use super::super::tests::{pod, read};
    use super::*;

    fn members(annotations: &[Value]) -> Vec<Pod> {
        let of = |(at, annotations): (usize, &Value)| {
            let meta =
                json!({"labels": {"dovetail.dev/gang": "train"}, "annotations": annotations});
            pod(&format!("p{at}"), json!({"metadata": meta}))
        };
        annotations.iter().enumerate().map(of).collect()
    }

    #[test]
    fn annotations_say_the_terms() {
        let all = json!({"dovetail.dev/min-members": "2", "dovetail.dev/max-members": "4",
            "dovetail.dev/topology-required": "rack", "dovetail.dev/on-lost-member": "keep"});
        let terms = read(None, &members(&[all.clone(), all])).unwrap();
        assert_eq!((terms.min, terms.expected, terms.max), (2, 4, Some(4)));
        assert_eq!(terms.topology.required.as_deref(), Some("rack"));
        assert_eq!(terms.on_lost_member, OnLostMember::Keep);
        let fixed = read(None, &members(&[json!({"dovetail.dev/min-members": "3"})])).unwrap();
        assert_eq!((fixed.min, fixed.expected, fixed.max), (3, 3, None));
    }

    #[test]
    fn what_is_not_said_or_cannot_be_is_named() {
        let refused = |annotations: &[Value]| read(None, &members(annotations)).unwrap_err();
        let min = |text: &str| json!({"dovetail.dev/min-members": text});
        assert!(refused(&[json!({})]).contains("set annotation dovetail.dev/min-members"));
        for text in ["0", "+2", " 2", "-1", "", "4294967296"] {
            let told = refused(&[min(text)]);
            let expected = format!("`{text}`: write a number from 1 to 4294967295");
            assert!(told.ends_with(&expected), "{told}");
        }
        assert_eq!(
            refused(&[min("2"), min("3")]),
            "the pods of gang blue/train differ in dovetail.dev/min-members: p0 has `2`, p1 has \
             `3`; give all of them the same value"
        );
        let above = json!({"dovetail.dev/min-members": "3", "dovetail.dev/max-members": "2"});
        assert!(refused(&[above]).contains("is 3, more than dovetail.dev/max-members, which is 2"));
        let level =
            json!({"dovetail.dev/min-members": "1", "dovetail.dev/topology-required": "row"});
        assert!(refused(&[level]).contains("no topology level `row`: use one of rack, node"));
    }
}
