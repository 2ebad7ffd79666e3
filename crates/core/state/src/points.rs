//! How well a node suits a pod: the points of what it prefers, those of images among them.

use dovetail_model::NodeId;
use dovetail_model::preference::MOST_POINTS;

use crate::State;
use crate::preferences::Liking;
use crate::shapes::{Demand, ShapeId};

impl Demand {
    /// Points of a node for such a pod and a list of images, within [`MOST_POINTS`].
    #[inline]
    pub fn points(&self, state: &mut State, images: Option<u32>, node: NodeId) -> i64 {
        match self.liking.is_none() && images.is_none() {
            true => 0,
            false => self.liking.points(state, images, node),
        }
    }
}

impl ShapeId {
    /// The list of images that make a difference for it at this moment.
    #[inline]
    pub fn images_in_force(self, state: &State) -> Option<u32> {
        state.shapes.get(self).images.filter(|list| !state.images.is_idle(*list))
    }
}

impl Liking {
    fn points(&self, state: &mut State, images: Option<u32>, node: NodeId) -> i64 {
        let mut points =
            self.node.map_or(0, |list| state.preferences.points(list, node, &state.nodes));
        for (counter, each) in &self.counted {
            let value = state.counters.key_of(*counter).value(node);
            let pods = value.map_or(0, |value| state.counters.get(*counter).count(value));
            points += each * pods.min(MOST_POINTS);
        }
        points += images.map_or(0, |list| state.images.points(list, node));
        points.clamp(-MOST_POINTS, MOST_POINTS)
    }
}
