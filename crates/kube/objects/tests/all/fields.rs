//! The JSON of an object, of which only what is read is kept.

use serde_json::{Value, json};

use dovetail_objects::{Kind, Object, ReadFields};

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
    let (object, text) = ReadFields::default().read(Kind::Pod, json.as_bytes());
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
    let (object, text) = ReadFields::default().read(Kind::Pod, json);
    assert!(matches!(object, Object::Strange(..)));
    assert_eq!(text.as_bytes(), json);
}

/// A field that made no difference in one object makes one in the next.
#[test]
fn a_field_is_kept_as_soon_as_it_counts() {
    let mut fields = ReadFields::default();
    let template = json!({"volumeClaimTemplate": "secret"});
    let claim = json!({"claimName": "c"});
    for (volume, expected) in [
        // A volume that names a claim is that claim, whatever else it has.
        (
            json!({"persistentVolumeClaim": claim, "ephemeral": template}),
            json!({"persistentVolumeClaim": claim}),
        ),
        (json!({"ephemeral": template}), json!({"ephemeral": {}})),
        (
            json!({"persistentVolumeClaim": claim, "ephemeral": template}),
            json!({"persistentVolumeClaim": claim, "ephemeral": {}}),
        ),
    ] {
        let pod = json!({"metadata": {"name": "p"}, "spec": {"volumes": [volume]}});
        let (object, text) = fields.read(Kind::Pod, pod.to_string().as_bytes());
        assert_eq!(Object::read(Kind::Pod, text.as_bytes()), object);
        let kept: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(kept["spec"]["volumes"], json!([expected]));
    }
}
