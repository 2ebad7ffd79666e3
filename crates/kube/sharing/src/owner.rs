//! A Deployment or StatefulSet: what its pods ask for, and how they are replaced when that changes.

use dovetail_model::is_gpu_resource;
use serde_json::{Map, Value};

use crate::names::FORMER_REQUESTS;
use crate::object_name::ObjectName;
use crate::requests_record::RequestsRecord;

/// A container that asks for GPUs or parts of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuContainer {
    pub name: String,
    /// Amounts by resource, without those of which it asks for none; -1 for what is no number.
    pub gpus: Vec<(String, i64)>,
    /// Whether `requests` names them beside `limits`.
    pub has_requests: bool,
    is_init: bool,
}

/// A Deployment or StatefulSet as the API server has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Owner {
    pub about: ObjectName,
    /// Those that ask for GPUs, init containers among them.
    pub containers: Vec<GpuContainer>,
    /// Pods that it is to have.
    pub replicas: u64,
    /// Pods that are replaced already and ready.
    pub ready: u64,
    /// Whether its controller has seen its present template.
    is_observed: bool,
    /// What dovetail changed last.
    pub record: Option<RequestsRecord>,
    object: Value,
}

impl Owner {
    /// Reads a Deployment or StatefulSet.
    ///
    /// # Errors
    /// An annotation that is no record.
    pub fn read(object: &Value) -> Result<Self, String> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let metadata = &object["metadata"];
        let about = ObjectName {
            api_version: "apps/v1".to_owned(),
            kind: text(&object["kind"]),
            namespace: text(&metadata["namespace"]),
            name: text(&metadata["name"]),
            uid: text(&metadata["uid"]),
        };
        let record = metadata["annotations"][FORMER_REQUESTS].as_str();
        let record = record.map(serde_json::from_str).transpose().map_err(|error| {
            format!(
                "{}: annotation {FORMER_REQUESTS} is invalid ({error}): remove it",
                words(&about)
            )
        })?;
        let spec = &object["spec"]["template"]["spec"];
        let of = |key: &str, is_init: bool| -> Vec<GpuContainer> {
            let containers = spec[key].as_array().into_iter().flatten();
            containers.filter_map(|one| container(one, is_init)).collect()
        };
        let status = &object["status"];
        let count = |value: &Value| value.as_u64().unwrap_or(0);
        let is_observed = count(&status["observedGeneration"]) >= count(&metadata["generation"]);
        let ready = match &*about.kind {
            "Deployment" => count(&status["availableReplicas"]),
            _ => count(&status["readyReplicas"]),
        };
        // Old pods are ready, too, until they end.
        let old = count(&status["replicas"]).saturating_sub(count(&status["updatedReplicas"]));
        Ok(Self {
            containers: [of("containers", false), of("initContainers", true)].concat(),
            replicas: object["spec"]["replicas"].as_u64().unwrap_or(1),
            ready: if is_observed { ready.saturating_sub(old) } else { 0 },
            is_observed,
            record,
            object: object.clone(),
            about,
        })
    }

    /// Namespace, kind and name.
    pub fn words(&self) -> String {
        words(&self.about)
    }

    pub(crate) fn resource_version(&self) -> &str {
        self.object["metadata"]["resourceVersion"].as_str().unwrap_or_default()
    }

    /// Whether all of its pods are of its present template, and ready.
    pub fn has_rolled(&self) -> bool {
        let total = self.object["status"]["replicas"].as_u64().unwrap_or(0);
        self.is_observed && self.ready >= self.replicas && total <= self.replicas
    }

    /// Whether it asks for exactly what the record says; otherwise others have changed it since.
    pub fn is_as_recorded(&self) -> bool {
        let Some(record) = &self.record else { return false };
        match &self.containers[..] {
            [one] => one.name == record.container && one.gpus == [(record.asked().to_owned(), 1)],
            _ => false,
        }
    }

    /// The one container that asks for one GPU or a part of one, with the resource.
    ///
    /// # Errors
    /// What it asks for instead, and what to do.
    pub fn asks(&self) -> Result<(&GpuContainer, &str), String> {
        if self.object["spec"]["template"]["spec"]["resourceClaims"]
            .as_array()
            .is_some_and(|claims| !claims.is_empty())
        {
            return Err("its pods have resource claims: change the claims instead".to_owned());
        }
        let container = match &self.containers[..] {
            [] => return Err("no container of its pod template requests a GPU".to_owned()),
            [one] => one,
            several => {
                let names: Vec<&str> = several.iter().map(|one| &*one.name).collect();
                return Err(format!(
                    "containers {} request GPUs, but dovetail can change only one container: \
                     change the manifest manually",
                    names.join(", ")
                ));
            }
        };
        let name = &container.name;
        if container.is_init {
            return Err(format!(
                "init container {name} requests GPUs, which dovetail cannot change: change the \
                 manifest manually"
            ));
        }
        match &container.gpus[..] {
            [(resource, 1)] => Ok((container, resource)),
            gpus => {
                let amounts: Vec<String> =
                    gpus.iter().map(|(resource, count)| format!("{count} × {resource}")).collect();
                Err(format!(
                    "container {name} requests {}: dovetail can change only a container that requests one \
                     GPU or one part of a GPU",
                    amounts.join(", ")
                ))
            }
        }
    }

    /// Why a new template ends pods before their replacements run; `None` if it does not.
    pub fn ends_pods(&self) -> Option<String> {
        if self.replicas == 0 {
            return None;
        }
        if self.about.kind == "StatefulSet" {
            return Some(
                "a StatefulSet terminates each pod before it starts the replacement".to_owned(),
            );
        }
        let strategy = &self.object["spec"]["strategy"];
        if strategy["type"] == "Recreate" {
            return Some("its strategy Recreate terminates all pods first".to_owned());
        }
        let rolling = &strategy["rollingUpdate"];
        let surge = share(&rolling["maxSurge"], self.replicas, true);
        let unavailable = share(&rolling["maxUnavailable"], self.replicas, false);
        // As the Deployment controller does it: one of them has to move.
        let unavailable = if surge == 0 && unavailable == 0 { 1 } else { unavailable };
        (unavailable >= self.replicas).then(|| {
            format!("its maxUnavailable allows terminating all of its {} pods first", self.replicas)
        })
    }

    /// Whether changes of its template start no pods.
    pub fn is_paused(&self) -> bool {
        self.object["spec"]["paused"] == true
    }

    /// A pod of its template that asks for one of another resource, to find nodes for.
    pub fn pod_with(&self, resource: &str) -> Value {
        let template = &self.object["spec"]["template"];
        let mut metadata = template["metadata"].clone();
        if !metadata.is_object() {
            metadata = Value::Object(Map::new());
        }
        metadata["namespace"] = Value::from(&*self.about.namespace);
        metadata["name"] = Value::from(&*self.about.name);
        let mut spec = template["spec"].clone();
        for container in spec["containers"].as_array_mut().into_iter().flatten() {
            let Some(of) = self.containers.iter().find(|one| container["name"] == *one.name) else {
                continue;
            };
            for list in ["limits", "requests"] {
                let Some(amounts) = container["resources"][list].as_object_mut() else { continue };
                of.gpus.iter().for_each(|(former, _)| drop(amounts.remove(former)));
                amounts.insert(resource.to_owned(), Value::from("1"));
            }
        }
        serde_json::json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec,
            "status": {"phase": "Pending"}})
    }

    /// Its metadata, for those who find out which tool writes it.
    pub fn metadata(&self) -> &Value {
        &self.object["metadata"]
    }
}

/// Namespace, kind and name of an object.
pub(crate) fn words(about: &ObjectName) -> String {
    format!("{}/{}/{}", about.namespace, about.kind, about.name)
}

/// A container of a template, if it asks for GPUs.
fn container(object: &Value, is_init: bool) -> Option<GpuContainer> {
    let amounts = |list: &str| -> Vec<(String, i64)> {
        let amounts = object["resources"][list].as_object().into_iter().flatten();
        let gpus = amounts.filter(|(name, _)| is_gpu_resource(name));
        let count = |value: &Value| match value {
            Value::String(text) => text.parse().unwrap_or(-1),
            other => other.as_i64().unwrap_or(-1),
        };
        gpus.map(|(name, value)| (name.clone(), count(value))).collect()
    };
    let (mut gpus, requests) = (amounts("limits"), amounts("requests"));
    let has_requests = !requests.is_empty();
    for (name, count) in requests {
        if gpus.iter().all(|(known, _)| *known != name) {
            gpus.push((name, count));
        }
    }
    // Zero is how a resource of another field manager is taken away.
    gpus.retain(|(_, count)| *count != 0);
    let name = object["name"].as_str().unwrap_or_default().to_owned();
    (!gpus.is_empty()).then_some(GpuContainer { name, gpus, has_requests, is_init })
}

/// A number of pods, or a percentage of them; 25% if it is not given.
fn share(value: &Value, of: u64, is_rounded_up: bool) -> u64 {
    let percent = match value {
        Value::Null => Some(25),
        Value::String(text) => text.strip_suffix('%').and_then(|digits| digits.parse().ok()),
        _ => None,
    };
    match percent {
        Some(percent) if is_rounded_up => of.saturating_mul(percent).div_ceil(100),
        Some(percent) => of.saturating_mul(percent) / 100,
        None => value.as_u64().unwrap_or(0),
    }
}
