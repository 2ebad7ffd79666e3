//! A patch, in the forms that it can have.

use dovetail_facts::ObjectRef;
use dovetail_model::Taint;

use super::json::Json;

/// A change of one object that mends a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    /// The object, or the node pool.
    pub object: ObjectRef,
    /// Its group and version; empty where it is no object of the cluster.
    pub api_version: String,
    /// The change, in the form that is exact.
    pub form: Form,
    /// The part of the object's own source that changes; `null` removes a field. `None` for
    /// commands.
    pub fragment: Option<Json>,
    /// What it restarts or evicts.
    pub effect: String,
    /// What else to know before it is applied: who undoes it, and what is at risk.
    pub warnings: Vec<String>,
    /// The checks whose findings it fixes.
    pub checks: Vec<&'static str>,
    /// The object before and after it, where it is an object that was read.
    pub edited: Option<Edited>,
    /// What it changes of nodes, if anything.
    pub nodes: Option<NodeChange>,
}

/// An object without and with a patch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edited {
    /// As it was read.
    pub before: Json,
    /// With the patch.
    pub after: Json,
}

/// What a patch changes of nodes that decides which pods can run there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeChange {
    /// Names of the nodes.
    pub nodes: Vec<String>,
    /// Taints that they get.
    pub added: Vec<Taint>,
    /// Taints that they lose.
    pub removed: Vec<Taint>,
    /// Whether they are cordoned and their pods evicted.
    pub drained: bool,
}

/// Forms of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// RFC 7386.
    Merge(Json),
    /// Kubernetes' own, where lists are merged by name.
    Strategic(Json),
    /// RFC 6902.
    Operations(Vec<Operation>),
    /// A new object.
    Create(Json),
    /// The object cannot be changed on the server: only its source can.
    Source,
    /// Words of a command.
    Command(Vec<String>),
}

/// An operation of RFC 6902.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Nothing is changed unless this is there.
    Test {
        /// JSON pointer.
        path: String,
        /// What must be there.
        value: Json,
    },
    /// Writes a value, instead of one that is there.
    Add {
        /// JSON pointer.
        path: String,
        value: Json,
    },
    /// Takes a value away.
    Remove {
        /// JSON pointer.
        path: String,
    },
}
