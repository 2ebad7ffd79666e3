//! How well a node suits a pod: the points of what it prefers, those of images among them.

use dovetail_model::NodeId;
use dovetail_model::preference::MOST_POINTS;

use crate::State;
use crate::preferences::Liking;
use crate::shapes::{Demand, ShapeId};

impl State {
    /// Points of a node for a demand and a list of images, within [`MOST_POINTS`].
    #[inline]
    pub fn points(&mut self, demand: &Demand, images: Option<u32>, node: NodeId) -> i64 {
        match demand.liking.is_none() && images.is_none() {
            true => 0,
            false => self.judge_points(&demand.liking, images, node),
        }
    }

    /// The list of images that make a difference for a shape at this moment.
    #[inline]
    pub fn images_in_force(&self, shape: ShapeId) -> Option<u32> {
        self.shapes.get(shape).images.filter(|list| !self.images.is_idle(*list))
    }

    fn judge_points(&mut self, liking: &Liking, images: Option<u32>, node: NodeId) -> i64 {
        let mut points =
            liking.node.map_or(0, |list| self.preferences.points(list, node, &self.nodes));
        for (counter, each) in &liking.counted {
            let value = self.counters.key_of(*counter).value(node);
            let pods = value.map_or(0, |value| self.counters.get(*counter).count(value));
            points += each * pods.min(MOST_POINTS);
        }
        points += images.map_or(0, |list| self.images.points(list, node));
        points.clamp(-MOST_POINTS, MOST_POINTS)
    }
}
