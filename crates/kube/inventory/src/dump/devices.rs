//! Of devices and claims only what tells GPUs, their parts and their models: drivers may write
//! anything into attributes, and people into selectors.

use dovetail_objects::labels;
use serde_json::{Map, Value};

use crate::facts::claims::driver::GpuDriver;
use crate::facts::claims::selector::reduced;

/// Attributes that stay in a collection, behind whichever domain.
const ATTRIBUTES: [&str; 9] = [
    "architecture",
    "model",
    "parentUUID",
    "partitionProfile",
    "pciBusID",
    "productName",
    "profile",
    "type",
    "uuid",
];

/// Those of them that name one device, or its place in one machine.
const OF_ONE_DEVICE: [&str; 3] = ["parentUUID", "pciBusID", "uuid"];

/// Fields of a request that stay.
const OF_REQUEST: [&str; 5] =
    ["adminAccess", "allocationMode", "count", "deviceClassName", "selectors"];

/// The shape that objects about devices have since `v1beta2`; `None` if they have it already.
pub(super) fn in_stable_shape(kind: &str, api_version: &str, object: &Value) -> Option<Value> {
    let requests = match kind {
        "ResourceClaim" => "/spec/devices/requests",
        "ResourceClaimTemplate" => "/spec/spec/devices/requests",
        "ResourceSlice" => "",
        _ => return None,
    };
    if api_version != labels::RESOURCE_V1BETA1 {
        return None;
    }
    let mut object = object.clone();
    let devices = object.pointer_mut("/spec/devices").and_then(Value::as_array_mut);
    for device in devices.into_iter().flatten().filter_map(Value::as_object_mut) {
        if let Some(Value::Object(basic)) = device.remove("basic") {
            device.extend(basic);
        }
    }
    let requests = object.pointer_mut(requests).and_then(Value::as_array_mut);
    for request in requests.into_iter().flatten().filter_map(Value::as_object_mut) {
        if request.contains_key("deviceClassName") {
            let exactly = Value::Object(request.clone());
            request.insert("exactly".to_owned(), exactly);
        }
    }
    Some(object)
}

/// Name of an attribute without the domain that may stand before it.
fn plain(name: &str) -> &str {
    name.rsplit_once('/').map_or(name, |(_, plain)| plain)
}

/// Whether an attribute names one device, so that its value is a name like any other.
pub(super) fn is_of_one_device(attribute: &str) -> bool {
    OF_ONE_DEVICE.contains(&plain(attribute))
}

/// Whether an attribute says what kind of device it is.
pub(super) fn is_of_a_kind(attribute: &str) -> bool {
    ATTRIBUTES.contains(&plain(attribute)) && !is_of_one_device(attribute)
}

/// Of the attributes of each GPU those that stay, and of each capacity how much it is; of other
/// devices nothing.
pub(super) fn keep_known_of_devices(spec: &mut Value) {
    if spec["driver"].as_str().and_then(GpuDriver::named).is_none() {
        spec.as_object_mut().and_then(|spec| spec.remove("devices"));
        return;
    }
    for device in spec.get_mut("devices").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(attributes) = device.get_mut("attributes").and_then(Value::as_object_mut) {
            attributes.retain(|name, value| {
                ATTRIBUTES.contains(&plain(name)) && value["string"].is_string()
            });
        }
        let capacity = device.get_mut("capacity").and_then(Value::as_object_mut);
        for amount in capacity.into_iter().flat_map(Map::values_mut) {
            if let Some(fields) = amount.as_object_mut() {
                fields.retain(|name, _| name == "value");
            }
        }
    }
}

/// Of each request what is asked for.
pub(super) fn keep_known_of_requests(spec: &mut Value) {
    let requests = spec.pointer_mut("/devices/requests").and_then(Value::as_array_mut);
    for request in requests.into_iter().flatten() {
        if let Some(exactly) = request.get_mut("exactly") {
            keep_known_of_request(exactly);
        }
        let first = request.get_mut("firstAvailable").and_then(Value::as_array_mut);
        first.into_iter().flatten().for_each(keep_known_of_request);
    }
}

fn keep_known_of_request(request: &mut Value) {
    if let Some(fields) = request.as_object_mut() {
        fields.retain(|name, _| OF_REQUEST.contains(&name.as_str()));
    }
    if let Some(selectors) = request.get_mut("selectors") {
        keep_known_of_selectors(selectors);
    }
}

/// Of each selector what is understood of it.
pub(super) fn keep_known_of_selectors(selectors: &mut Value) {
    for selector in selectors.as_array_mut().into_iter().flatten() {
        if let Some(Value::String(expression)) = selector.pointer_mut("/cel/expression") {
            *expression = reduced(expression);
        }
        if let Some(fields) = selector.as_object_mut() {
            fields.retain(|name, _| name == "cel");
        }
        if let Some(fields) = selector.get_mut("cel").and_then(Value::as_object_mut) {
            fields.retain(|name, value| name == "expression" && value.is_string());
        }
    }
}
