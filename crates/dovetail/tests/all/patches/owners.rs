//! Owners beside Deployments in the cluster of patches: Jobs, CronJobs, StatefulSets, and notebooks
//! of Kubeflow, whose controller is played.

use serde_json::{Value, json};

use super::Server;
use super::world::{NAMESPACE, deployment};

/// CronJobs of the world.
const CRON_JOBS: [&str; 2] = ["nightly", "nightly-greedy"];
/// What stops a notebook: Kubeflow's own annotation.
const STOPPED: &str = "kubeflow-resource-stopped";

/// The template of a pod with a GPU; `greedy` ones want more CPU than their share.
fn template(name: &str, is_greedy: bool) -> Value {
    let mut object = deployment(name, |_| {});
    let template = &mut object["spec"]["template"];
    if is_greedy {
        template["spec"]["containers"][0]["resources"]["requests"]["cpu"] = json!("30");
    }
    template.take()
}

/// What a Job is; its pods run until somebody ends them.
fn job_spec(name: &str, is_greedy: bool) -> Value {
    let mut template = template(name, is_greedy);
    template["metadata"]["labels"]["stays"] = json!("yes");
    template["spec"]["restartPolicy"] = json!("OnFailure");
    json!({"template": template})
}

fn object(api_version: &str, kind: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": api_version, "kind": kind,
        "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec})
}

fn stateful_set(name: &str, replicas: u32, template: Value) -> Value {
    let app = &template["metadata"]["labels"]["app"];
    let spec = json!({"replicas": replicas, "serviceName": name,
        "selector": {"matchLabels": {"app": app}}, "template": template});
    object("apps/v1", "StatefulSet", name, spec)
}

fn objects() -> Vec<Value> {
    let cron = |name: &str, is_greedy: bool| {
        let job = json!({"spec": job_spec(name, is_greedy)});
        let spec = json!({"schedule": "0 0 1 1 *", "jobTemplate": job});
        object("batch/v1", "CronJob", name, spec)
    };
    let notebook = |name: &str, is_greedy: bool| {
        // Its template has no labels: the controller gives them.
        let template = json!({"spec": template(name, is_greedy)["spec"]});
        object("kubeflow.org/v1", "Notebook", name, json!({"template": template}))
    };
    vec![
        object("batch/v1", "Job", "retried", job_spec("retried", false)),
        object("batch/v1", "Job", "unused-job", job_spec("unused-job", false)),
        cron("nightly", false),
        cron("nightly-greedy", true),
        stateful_set("unused-set", 1, template("unused-set", false)),
        stateful_set("set-greedy", 1, template("set-greedy", true)),
        notebook("lab", false),
        notebook("lab-greedy", true),
    ]
}

/// Makes them, with their pods.
pub(super) fn build(server: &Server) {
    server.create(&objects());
    for name in CRON_JOBS {
        run_now(server, name, 1);
    }
    for name in ["unused-set", "set-greedy"] {
        server.rolled_out("statefulset", name);
    }
    play_notebooks(server);
    for app in ["retried", "unused-job", "nightly", "nightly-greedy"] {
        let wait = format!("kubectl wait -n {NAMESPACE} --timeout=180s");
        server.shell(&format!("{wait} --for=create pod -l app={app}"), "");
        server.shell(&format!("{wait} --for=condition=Ready pod -l app={app}"), "");
    }
    for app in ["retried", "nightly"] {
        crash(server, app);
    }
}

/// One run of a CronJob, as if its time had come.
fn run_now(server: &Server, name: &str, number: u32) {
    let run = format!("kubectl create job {name}-{number} -n {NAMESPACE} --from=cronjob/{name}");
    server.shell(&run, "");
}

/// The pods of an app have failed four times, and wait for their next try.
fn crash(server: &Server, app: &str) {
    let waits = json!({"waiting": {"reason": "CrashLoopBackOff"}});
    let status = json!({"status": {"containerStatuses": [{
        "name": "main", "image": "work:1", "imageID": "", "ready": false, "restartCount": 4,
        "state": waits
    }]}});
    let names = server.shell(&format!("kubectl get pods -n {NAMESPACE} -l app={app} -o name"), "");
    for name in names.lines() {
        let patch = format!("kubectl patch {name} -n {NAMESPACE} --subresource=status");
        server.shell(&format!("{patch} --type=merge -p '{status}'"), "");
    }
}

/// The controller of notebooks: a StatefulSet for each, without pods where it is stopped.
fn play_notebooks(server: &Server) {
    let notebooks = server.shell(&format!("kubectl get notebooks -n {NAMESPACE} -o json"), "");
    let notebooks: Value = serde_json::from_str(&notebooks).expect("JSON");
    for notebook in notebooks["items"].as_array().expect("items") {
        let metadata = &notebook["metadata"];
        let name = metadata["name"].as_str().expect("a name");
        let delete = format!("kubectl delete statefulset {name} -n {NAMESPACE}");
        server.shell(&format!("{delete} --ignore-not-found --cascade=foreground --wait"), "");
        let mut template = notebook["spec"]["template"].clone();
        template["metadata"] =
            json!({"labels": {"app": name, "notebook-name": name, "team": "search"}});
        let replicas = u32::from(metadata["annotations"][STOPPED].is_null());
        let mut set = stateful_set(name, replicas, template);
        set["metadata"]["ownerReferences"] = json!([{"apiVersion": "kubeflow.org/v1",
            "kind": "Notebook", "name": name, "uid": metadata["uid"], "controller": true}]);
        server.create(&[set]);
        server.rolled_out("statefulset", name);
    }
}

/// Waits until pods that are to go are gone, and those that follow them run.
pub(super) fn settle(server: &Server) {
    let wait = format!("kubectl wait -n {NAMESPACE} --timeout=180s");
    // It has failed more often than it now may.
    server.shell(&format!("{wait} job/retried --for=condition=Failed"), "");
    server.shell(&format!("{wait} job/unused-job --for=condition=Suspended"), "");
    for name in CRON_JOBS {
        let delete = format!("kubectl delete job {name}-1 -n {NAMESPACE}");
        server.shell(&format!("{delete} --cascade=foreground --wait"), "");
        run_now(server, name, 2);
    }
    let limit = "-o jsonpath={.spec.backoffLimit}/{.spec.ttlSecondsAfterFinished}";
    let told = server.shell(&format!("kubectl get job nightly-2 -n {NAMESPACE} {limit}"), "");
    assert_eq!(told, "3/600", "the next run has what was patched");
    for app in ["retried", "unused-job", "unused-set"] {
        let pods = format!("kubectl get pods -n {NAMESPACE} -l app={app} -o name");
        server.shell(&format!("{pods} | xargs -r {wait} --for=delete"), "");
    }
    for app in CRON_JOBS {
        server.shell(&format!("{wait} --for=create pod -l app={app}"), "");
        server.shell(&format!("{wait} --for=condition=Ready pod -l app={app}"), "");
    }
    server.rolled_out("statefulset", "set-greedy");
    play_notebooks(server);
}
