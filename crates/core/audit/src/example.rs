//! What fixes a finding, by example: a command names the nodes or the pod that it is for.

use dovetail_facts::ObjectRef;

use crate::names::is_name;

/// Objects that an example names; of more, it says how many there are.
const MOST_NAMED: usize = 20;

/// In the place of nodes for which one command is run at once. It is known to do no harm to all of
/// them together: the engine was asked, or nothing is moved.
const ALL_NODES: &str = " NODES";
/// In the place of one node after the other.
const ONE_NODE: &str = " NODE";
/// In the place of a pod, and of its namespace.
const POD: &str = " POD";
const NAMESPACE: &str = " NAMESPACE";

/// An edit or a command, and what it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    pub(crate) edit: String,
    /// Those of the objects concerned that it is for, ascending; none are all of them.
    pub(crate) objects: Vec<ObjectRef>,
}

impl Example {
    /// An example for all objects concerned.
    pub(crate) fn new(edit: impl Into<String>) -> Self {
        Self { edit: edit.into(), objects: Vec::new() }
    }

    /// Whether it has places for names of objects.
    pub(crate) fn names_objects(&self) -> bool {
        [ALL_NODES, ONE_NODE, POD, NAMESPACE].iter().any(|place| self.edit.contains(*place))
    }

    /// The example with the names of its objects, which are these if it has none of its own.
    pub(crate) fn for_objects(&self, all: &[ObjectRef]) -> String {
        let objects = if self.objects.is_empty() { all } else { &self.objects };
        named(&self.edit, objects)
    }
}

/// A command with the names of its objects in the place of NODES, NODE, or POD and NAMESPACE.
pub(crate) fn named(edit: &str, objects: &[ObjectRef]) -> String {
    let are = |kind: &str| objects.iter().all(|object| object.kind == kind && is_name(object));
    match objects {
        [only] if are("Pod") => edit
            .replace(POD, &format!(" {}", only.name))
            .replace(NAMESPACE, &format!(" {}", only.namespace)),
        [first, others @ ..] if are("Node") => match edit.contains(ALL_NODES) {
            true => of_all(edit, objects),
            false => of_each(edit, first, others),
        },
        _ => edit.to_owned(),
    }
}

/// One command for all nodes: kubectl takes several.
fn of_all(edit: &str, nodes: &[ObjectRef]) -> String {
    let (named, others) = nodes.split_at(nodes.len().min(MOST_NAMED));
    let names: Vec<&str> = named.iter().map(|node| &*node.name).collect();
    let text = edit.replace(ALL_NODES, &format!(" {}", names.join(" ")));
    match others.len() {
        0 => text,
        more => format!("{text}; then {more} more in the same way"),
    }
}

/// A command for the first node, and the nodes that follow.
fn of_each(edit: &str, first: &ObjectRef, others: &[ObjectRef]) -> String {
    if !edit.contains(ONE_NODE) {
        return edit.to_owned();
    }
    let text = edit.replace(ONE_NODE, &format!(" {}", first.name));
    if others.is_empty() {
        return text;
    }
    let names = others.iter().take(MOST_NAMED - 1).map(|node| &*node.name);
    let mut names: Vec<String> = names.map(str::to_owned).collect();
    let more = others.len() - names.len();
    if more > 0 {
        names.push(format!("{more} more"));
    }
    format!("{text}; then {} in the same way", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::CATALOGUE;

    fn nodes(count: usize) -> Vec<ObjectRef> {
        (1..=count).map(|place| ObjectRef::new("Node", "", &format!("g{place}"))).collect()
    }

    #[test]
    fn a_command_names_its_nodes_at_once_or_one_after_the_other() {
        let all = "kubectl drain NODES  # as listed";
        let each = "kubectl drain NODE  # then reset it";
        assert_eq!(named(all, &nodes(1)), "kubectl drain g1  # as listed");
        assert_eq!(named(all, &nodes(3)), "kubectl drain g1 g2 g3  # as listed");
        let many = named(all, &nodes(27));
        assert!(many.ends_with(" g20  # as listed; then 7 more in the same way"), "{many}");
        assert_eq!(named(each, &nodes(1)), "kubectl drain g1  # then reset it");
        let text = "kubectl drain g1  # then reset it; then g2, g3 in the same way";
        assert_eq!(named(each, &nodes(3)), text);
        let many = named(each, &nodes(27));
        assert!(many.ends_with(", g20, 7 more in the same way"), "{many}");
    }

    /// What is no plain name could be read by a shell.
    #[test]
    fn a_command_names_no_object_of_another_kind_and_no_strange_name() {
        let edit = "kubectl drain NODES  # as listed";
        let with = |other: ObjectRef| named(edit, &[&nodes(1)[..], &[other]].concat());
        assert_eq!(with(ObjectRef::new("Pod", "a", "b")), edit);
        assert_eq!(with(ObjectRef::new("Node", "", "$(reboot)")), edit);
        assert_eq!(named(edit, &[]), edit);
    }

    /// What is said of further nodes stands behind the command, where a shell does not read it.
    #[test]
    fn every_command_for_nodes_ends_in_a_comment() {
        let checks = CATALOGUE.into_iter().flatten();
        let of_nodes: Vec<&str> =
            checks.map(|check| check.fix_example).filter(|of| of.contains(ONE_NODE)).collect();
        assert!(of_nodes.len() >= 5, "{of_nodes:?}");
        assert!(of_nodes.iter().all(|of| of.contains("  # ")), "{of_nodes:?}");
    }
}
