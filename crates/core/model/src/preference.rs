//! What makes one node better than another for a pod, among those on which it fits.

use serde::{Deserialize, Serialize};

use crate::requirement::SelectorTerm;
use crate::rule::CounterScope;

/// Points of one preference, where and how often it applies. The points of all add up; what a point
/// is worth against the rest of a score depends on the policy.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Preference {
    /// Points, below zero where the pod would rather not be. More than [`MOST_POINTS`] count as so
    /// many.
    pub points: i64,
    /// Where they are given.
    pub to: Preferred,
}

/// The sum of a node's points is kept within this, on both sides of zero.
pub const MOST_POINTS: i64 = 10_000;

/// Which nodes get the points of a [`Preference`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Preferred {
    /// Nodes on whose labels and name all terms hold.
    Nodes(Vec<SelectorTerm>),
    /// Each node once per taint of effect `PreferNoSchedule` that the pod does not tolerate.
    SoftTaints,
    /// Each node once per pod that is counted in its domain; a node without the label gets nothing.
    Counted {
        selector: String,
        /// Node label that names the domain.
        label: String,
        /// Which nodes count.
        #[serde(default)]
        scope: CounterScope,
    },
    /// Nodes that have images, by name, one for each container or volume of the pod that is made
    /// from one. A node gets that part of the points by which its sum lies between
    /// [`LEAST_IMAGE_BYTES`] and [`MOST_IMAGE_BYTES`] for each name listed, rounded toward zero.
    /// The sum is over the images it has, each with its size × the share of all nodes that have it,
    /// rounded down: who waits for an image that few nodes have is not drawn to these few.
    ///
    /// Source: kube-scheduler's plugin `ImageLocality`.
    Images(Vec<String>),
}

/// Up to here a sum of image sizes gets nothing ([`Preferred::Images`]).
pub const LEAST_IMAGE_BYTES: i64 = 23 << 20;

/// From so much for each name listed on a sum gets all points ([`Preferred::Images`]).
pub const MOST_IMAGE_BYTES: i64 = 1000 << 20;
