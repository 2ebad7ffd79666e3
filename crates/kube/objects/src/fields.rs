//! The JSON of an object, of which only what is read is kept.

use serde::de::DeserializeOwned;
use serde_ignored::Path;
use serde_json::Value;

use super::{
    CsiDriver, CsiNode, DeviceClass, DeviceTaintRule, DisruptionBudget, HyperNode, Kind, Namespace,
    Node, Object, PersistentVolume, Pod, PodGroup, Queue, Reservation, ResourceClaim,
    ResourceSlice, StorageCapacity, StorageClass, TopologyLabels, VolumeAttachment, VolumeClaim,
    workload,
};

/// The way to a field that is not read.
pub(super) type Ignored = Vec<PathStep>;

pub(super) enum PathStep {
    Key(String),
    Place(usize),
}

impl Object {
    /// The object with its JSON, of which only the fields that are read are kept: commands,
    /// settings and secrets of containers are not among them. Reading that gives the same object.
    pub fn read_with_fields(kind: Kind, json: &[u8]) -> (Self, Box<str>) {
        let object = Self::read(kind, json);
        let kept = ignored(kind, json).map(|ignored| without(json, &ignored));
        // What cannot be read is told by all of it.
        let same = kept.filter(|kept| Self::read(kind, kept.as_bytes()) == object);
        let text = same.unwrap_or_else(|| String::from_utf8_lossy(json).into_owned());
        (object, text.into())
    }
}

/// What is not read of an object; `None` if it cannot be read as its kind.
fn ignored(kind: Kind, json: &[u8]) -> Option<Vec<Ignored>> {
    match kind {
        Kind::CsiDriver => ignored_by::<CsiDriver>(json),
        Kind::CsiNode => ignored_by::<CsiNode>(json),
        Kind::StorageCapacity => ignored_by::<StorageCapacity>(json),
        Kind::DeviceClaim => ignored_by::<ResourceClaim>(json),
        Kind::DeviceClass => ignored_by::<DeviceClass>(json),
        Kind::DeviceTaintRule => ignored_by::<DeviceTaintRule>(json),
        Kind::DisruptionBudget => ignored_by::<DisruptionBudget>(json),
        Kind::Namespace => ignored_by::<Namespace>(json),
        Kind::Node => ignored_by::<Node>(json),
        Kind::PersistentVolume => ignored_by::<PersistentVolume>(json),
        Kind::Claim => ignored_by::<VolumeClaim>(json),
        Kind::Pod => ignored_by::<Pod>(json),
        Kind::PodGroup | Kind::CoschedulingGroup | Kind::VolcanoGroup | Kind::KaiGroup => {
            ignored_by::<PodGroup>(json)
        }
        Kind::HyperNode => ignored_by::<HyperNode>(json),
        Kind::KueueTopology | Kind::KaiTopology => ignored_by::<TopologyLabels>(json),
        Kind::Queue => ignored_by::<Queue>(json),
        Kind::Reservation => ignored_by::<Reservation>(json),
        Kind::ResourceSlice => ignored_by::<ResourceSlice>(json),
        Kind::StorageClass => ignored_by::<StorageClass>(json),
        Kind::VolumeAttachment => ignored_by::<VolumeAttachment>(json),
        Kind::Workload(kind) => workload::ignored(kind, json),
    }
}

/// What a type does not read of this JSON.
pub(super) fn ignored_by<T: DeserializeOwned>(json: &[u8]) -> Option<Vec<Ignored>> {
    let mut ignored = Vec::new();
    let mut input = serde_json::Deserializer::from_slice(json);
    let note = |path: Path<'_>| ignored.push(way(&path));
    let read: Result<T, _> = serde_ignored::deserialize(&mut input, note);
    read.ok()?;
    Some(ignored)
}

fn way(path: &Path<'_>) -> Ignored {
    let (parent, step) = match path {
        Path::Root => return Vec::new(),
        Path::Seq { parent, index } => (parent, Some(PathStep::Place(*index))),
        Path::Map { parent, key } => (parent, Some(PathStep::Key(key.clone()))),
        Path::Some { parent }
        | Path::NewtypeStruct { parent }
        | Path::NewtypeVariant { parent } => (parent, None),
    };
    let mut way = way(parent);
    way.extend(step);
    way
}

fn without(json: &[u8], ignored: &[Ignored]) -> String {
    let mut value: Value = serde_json::from_slice(json).unwrap_or_default();
    ignored.iter().for_each(|way| drop_field(&mut value, way));
    value.to_string()
}

/// Elements of lists become `null`: how many there are may be read.
fn drop_field(value: &mut Value, way: &[PathStep]) {
    let Some((last, first)) = way.split_last() else { return };
    let mut at = value;
    for step in first {
        let next = match step {
            PathStep::Key(key) => at.get_mut(key.as_str()),
            PathStep::Place(place) => at.get_mut(*place),
        };
        let Some(next) = next else { return };
        at = next;
    }
    match (last, at) {
        (PathStep::Key(key), Value::Object(fields)) => drop(fields.remove(key)),
        (PathStep::Place(place), Value::Array(elements)) => {
            elements.get_mut(*place).into_iter().for_each(|element| *element = Value::Null);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_not_read_of_an_object_is_not_kept_and_the_object_is_the_same() {
        let pod = json!({
            "metadata": {"name": "p", "managedFields": [{"manager": "m"}], "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": "secret", "dovetail.dev/x": "1"}},
            "spec": {"schedulingGates": [{"name": "g"}], "containers": [
                {"name": "c", "image": "i:1", "command": ["secret"], "env": [{"value": "secret"}],
                 "resources": {"limits": {"nvidia.com/gpu": "2"}}}]},
            "status": {"podIP": "10.0.0.1", "phase": "Pending"}});
        let json = pod.to_string();
        let (object, text) = Object::read_with_fields(Kind::Pod, json.as_bytes());
        assert_eq!(Object::read(Kind::Pod, text.as_bytes()), object);
        assert_eq!(Object::read(Kind::Pod, json.as_bytes()), object);
        let kept: Value = serde_json::from_str(&text).expect("JSON");
        let expected = json!({
            "metadata": {"name": "p", "annotations": {"dovetail.dev/x": "1"}},
            "spec": {"schedulingGates": [null], "containers": [{"name": "c", "image": "i:1",
                "resources": {"limits": {"nvidia.com/gpu": "2"}}}]},
            "status": {"phase": "Pending"}});
        assert_eq!(kept, expected);
    }

    #[test]
    fn an_object_that_cannot_be_read_is_kept_whole() {
        let json = br#"{"metadata":{"name":"p"},"spec":{"containers":"none","x":1}}"#;
        let (object, text) = Object::read_with_fields(Kind::Pod, json);
        assert!(matches!(object, Object::Strange(..)));
        assert_eq!(text.as_bytes(), json);
    }
}
