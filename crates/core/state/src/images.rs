//! Images that pods prefer to find on their node: which nodes have them, and what that is worth.
//!
//! Only images that some shape names are followed. What an image is worth on a node goes with the
//! share of all nodes that have it, so that a score depends on other nodes here. Each image
//! therefore has a version, and an index whose shape names it looks again at the nodes that have
//! it; a node that gets or loses it goes to the change log.

use std::collections::BTreeMap;

use dovetail_model::preference::{LEAST_IMAGE_BYTES, MOST_IMAGE_BYTES, MOST_POINTS};
use dovetail_model::{Images as NodeImages, Node, NodeId, Preferred, Requirement};
use smallvec::SmallVec;

use crate::intern::Interner;
use crate::nodes::Nodes;

/// Images in question, and who has them.
#[derive(Clone, Debug, Default)]
pub struct Images {
    names: Interner<String>,
    of_name: Vec<OfName>,
    lists: Interner<ImageList>,
    nodes: i64,
    /// Version in which their number is another than before.
    nodes_version: u64,
    version: u64,
}

/// Points with the images they are for, one for each container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct ImageList(SmallVec<[(i64, SmallVec<[u32; 2]>); 1]>);

/// One image.
#[derive(Clone, Debug, Default)]
struct OfName {
    /// Its size by node.
    on: BTreeMap<NodeId, i64>,
    /// How many nodes have it in each size.
    sizes: BTreeMap<i64, u32>,
    version: u64,
}

impl Images {
    /// How many names of images have numbers.
    pub fn name_count(&self) -> usize {
        self.names.count()
    }

    /// Points of a node for having the images of a list.
    pub fn points(&self, list: u32, node: NodeId) -> i64 {
        self.sum(list, |image| image.on.get(&node).copied())
    }

    /// Whether no node gets any points for a list: all are alike then.
    pub fn is_idle(&self, list: u32) -> bool {
        let most = |image: &OfName| image.sizes.last_key_value().map(|(size_bytes, _)| *size_bytes);
        let lists = &self.lists.get(list).0;
        lists.iter().all(|(points, names)| self.part(*points, names, most) == 0)
    }

    /// Changes whenever the points of any node for the list may have.
    pub fn version(&self, list: u32) -> u64 {
        let images = self.images_of(list);
        let versions = images.map(|image| match image.on.is_empty() {
            true => image.version,
            false => image.version.max(self.nodes_version),
        });
        versions.max().unwrap_or(0)
    }

    /// Nodes that have some image of a list; some more than once.
    pub fn nodes_of(&self, list: u32) -> impl Iterator<Item = NodeId> {
        self.images_of(list).flat_map(|image| image.on.keys().copied())
    }

    fn images_of(&self, list: u32) -> impl Iterator<Item = &OfName> {
        let names = self.lists.get(list).0.iter().flat_map(|(_, names)| names);
        names.map(|name| &self.of_name[*name as usize])
    }

    fn sum(&self, list: u32, size_bytes: impl Fn(&OfName) -> Option<i64> + Copy) -> i64 {
        let lists = self.lists.get(list).0.iter();
        lists.map(|(points, names)| self.part(*points, names, size_bytes)).sum()
    }

    /// The part of the points that a node gets with images of these sizes.
    fn part(&self, points: i64, names: &[u32], size_bytes: impl Fn(&OfName) -> Option<i64>) -> i64 {
        let mut sum_bytes: i128 = 0;
        for name in names {
            let image = &self.of_name[*name as usize];
            if let Some(size_bytes) = size_bytes(image) {
                let share = i128::from(size_bytes) * image.on.len() as i128;
                sum_bytes += share / i128::from(self.nodes.max(1));
            }
        }
        let least = i128::from(LEAST_IMAGE_BYTES);
        let most = i128::from(MOST_IMAGE_BYTES) * names.len() as i128;
        if sum_bytes <= least {
            return 0;
        }
        (i128::from(points) * (sum_bytes.min(most) - least) / (most - least)) as i64
    }

    /// A node came (1) or went (−1).
    fn count_node(&mut self, sign: i64) {
        self.nodes += sign;
        self.version += 1;
        self.nodes_version = self.version;
    }

    /// Takes over what a node has; true if that makes a difference to any pod.
    fn set(&mut self, node: NodeId, before: &NodeImages, after: &NodeImages) -> bool {
        if before.is_same_list(after) {
            return false;
        }
        let mut differs = false;
        for (name, size_bytes) in before.iter() {
            if after.size_bytes(name) != Some(size_bytes) {
                differs |= self.set_one(name, node, None);
            }
        }
        for (name, size_bytes) in after.iter() {
            if before.size_bytes(name) != Some(size_bytes) {
                differs |= self.set_one(name, node, Some(size_bytes));
            }
        }
        differs
    }

    fn set_one(&mut self, name: &str, node: NodeId, size_bytes: Option<i64>) -> bool {
        let Some(number) = self.names.find(name) else { return false };
        self.version += 1;
        let image = &mut self.of_name[number as usize];
        image.set(node, size_bytes);
        image.version = self.version;
        true
    }
}

impl OfName {
    fn set(&mut self, node: NodeId, size_bytes: Option<i64>) {
        let before = match size_bytes {
            Some(size_bytes) => {
                *self.sizes.entry(size_bytes).or_default() += 1;
                self.on.insert(node, size_bytes)
            }
            None => self.on.remove(&node),
        };
        if let Some(before) = before {
            let nodes = self.sizes.get_mut(&before).expect("every size is counted");
            *nodes -= 1;
            if *nodes == 0 {
                self.sizes.remove(&before);
            }
        }
    }
}

impl Images {
    /// Interns the images that a requirement prefers; `None` if it names none.
    pub fn list_of(&mut self, requirement: &Requirement, nodes: &Nodes) -> Option<u32> {
        let mut list = ImageList::default();
        for preference in &requirement.preferences {
            if let Preferred::Images(names) = &preference.to
                && !names.is_empty()
            {
                let names = names.iter().map(|name| self.number_of(name, nodes)).collect();
                list.0.push((preference.points.clamp(-MOST_POINTS, MOST_POINTS), names));
            }
        }
        (!list.0.is_empty()).then(|| self.lists.intern(&list).0)
    }

    /// The number of an image; a new one is looked for on every node.
    fn number_of(&mut self, name: &str, nodes: &Nodes) -> u32 {
        let (number, new) = self.names.intern(&name.to_owned());
        if new {
            let mut image = OfName::default();
            for (slot, node) in nodes.present() {
                if let Some(size_bytes) = node.images.size_bytes(name) {
                    image.set(slot, Some(size_bytes));
                }
            }
            self.of_name.push(image);
        }
        number
    }

    /// Takes over the images of a node that came, changed or went; true if the points of any pod
    /// may have changed.
    pub fn take(&mut self, slot: NodeId, before: Option<&Node>, after: Option<&Node>) -> bool {
        let none = NodeImages::default();
        let of = |node: Option<&Node>| node.map_or(none.clone(), |node| node.images.clone());
        let differs = self.set(slot, &of(before), &of(after));
        match (before, after) {
            (None, Some(_)) => self.count_node(1),
            (Some(_), None) => self.count_node(-1),
            _ => {}
        }
        differs
    }
}
