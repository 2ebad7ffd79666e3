//! The server with everybody who writes to it besides the scheduler, and the judge's books.

use std::time::Duration;

use dovetail_control::answer::Answered;
use dovetail_control::request::Method;
use serde_json::{Value, json};

use crate::api::{self, ApiFailure, ApiReply, ApiServer, ResourceKind, Verb};
use crate::books::{PodBooks, pods};
use crate::cluster::{ClusterControllers, direct, serve};
use crate::course::Course;
use crate::event::{Event, Flight};
use crate::evictions::Evictions;
use crate::kubelets::{Identity, KubeletOptions, KubeletWrite, Kubelets, PodTransition, Wish};
use crate::objects::OWNER;
use crate::processes::learned_at;
use crate::replica::START_MS;
use crate::scene::Options;

/// What there is beside the scheduler.
#[derive(Debug)]
pub(crate) struct Ground {
    pub(crate) server: ApiServer,
    pub(crate) cluster: ClusterControllers,
    pub(crate) books: PodBooks,
    pub(crate) evictions: Evictions,
    /// Pods that ended by themselves.
    pub(crate) ended: u64,
    kubelets: Kubelets,
    /// Versions up to which kubelets saw nodes and pods.
    kubelets_saw: [u64; 2],
    kubelets_are_to_look: bool,
    owners_are_to_look: bool,
}

impl Ground {
    pub(crate) fn new(options: &Options) -> Self {
        let settings = api::Settings { history_limit: options.history, ..Default::default() };
        let mut server = ApiServer::new(settings, START_MS);
        let queue = ResourceKind::custom("dovetail.dev", "v1alpha1", "Queue", "queues");
        server.register(queue.cluster_scoped());
        if options.keeps_learned {
            let map = json!({"metadata": {"name": learned_at().name}});
            direct(&mut server, Verb::Create, ("configmaps", "", ""), &map).expect("a ConfigMap");
        }
        let kubelets = KubeletOptions {
            start_after: Duration::from_millis(options.start_ms),
            terminate_after: Duration::from_millis(options.terminate_ms),
            ..KubeletOptions::default()
        };
        Self {
            server,
            cluster: ClusterControllers::default(),
            books: PodBooks::default(),
            evictions: Evictions::default(),
            ended: 0,
            kubelets: Kubelets::new(kubelets),
            kubelets_saw: [0; 2],
            kubelets_are_to_look: false,
            owners_are_to_look: false,
        }
    }

    /// Pods or nodes were written: who else has to see that.
    pub(crate) fn written(&mut self, course: &mut Course<'_>) {
        let delay_ms = 20 + course.below("owners", 800);
        self.owners_in(course, delay_ms);
        if !self.kubelets_are_to_look {
            self.kubelets_are_to_look = true;
            let delay_ms = course.delay_ms("kubelets", "").min(200);
            course.after(delay_ms, Event::KubeletsLook);
        }
    }

    /// Owners look at their pods after a while, if not before.
    pub(crate) fn owners_in(&mut self, course: &mut Course<'_>, delay_ms: u64) {
        if !self.owners_are_to_look {
            self.owners_are_to_look = true;
            course.after(delay_ms, Event::Owners);
        }
    }

    pub(crate) fn owners_look(&mut self, course: &mut Course<'_>) {
        self.owners_are_to_look = false;
        if let Some(at_ms) = self.cluster.look(&mut self.server, course.now_ms) {
            self.owners_in(course, at_ms - course.now_ms);
        }
    }

    pub(crate) fn kubelets_look(&mut self, course: &mut Course<'_>) {
        self.kubelets_are_to_look = false;
        let mut wishes = Vec::new();
        for (at, plural) in ["nodes", "pods"].into_iter().enumerate() {
            let name = (String::new(), plural.to_owned());
            let collection = self.server.state.store.collection(&name);
            match collection.changes_after(self.kubelets_saw[at], usize::MAX) {
                Ok(changes) => {
                    for change in changes {
                        let (object, is_gone) = (&change.after.value, change.deleted);
                        see(&mut self.kubelets, plural, object, is_gone, &mut wishes);
                    }
                }
                Err(_) => {
                    let objects = collection.objects().values();
                    let all: Vec<Value> = objects.map(|object| object.value.clone()).collect();
                    match plural {
                        "nodes" => self.kubelets.nodes_listed(&all, &mut wishes),
                        _ => self.kubelets.pods_listed(all, &mut wishes),
                    }
                }
            }
            self.kubelets_saw[at] = self.server.state.store.revision;
        }
        grant(course, wishes);
    }

    pub(crate) fn kubelet(&mut self, course: &mut Course<'_>, uid: &str, step: PodTransition) {
        let mut wishes = Vec::new();
        self.kubelets.step(uid, step, &mut wishes);
        grant(course, wishes);
    }

    pub(crate) fn kubelet_writes(
        &mut self,
        course: &mut Course<'_>,
        pod: &Identity,
        write: &KubeletWrite,
    ) {
        let name = &pod.name;
        course.say(format_args!("kubelet: {write:?} {name}"));
        match write.status(pod, START_MS + course.now_ms) {
            None => {
                let uid = json!({"uid": pod.uid});
                let options = json!({"gracePeriodSeconds": 0, "preconditions": uid});
                _ = direct(&mut self.server, Verb::Delete, ("pods", name, ""), &options);
            }
            Some(status) => {
                let phase = &status["status"]["phase"];
                self.ended += u64::from(*phase == "Succeeded" || *phase == "Failed");
                // Conditions are merged, which a merge patch does not.
                let path = format!("/api/v1/namespaces/{}/pods/{name}/status", pod.namespace);
                let media_type = "application/strategic-merge-patch+json";
                let body = status.to_string();
                _ = serve(&mut self.server, "PATCH", &path, media_type, body.as_bytes());
            }
        }
        let mut wishes = Vec::new();
        self.kubelets.written(&pod.uid, &mut wishes);
        grant(course, wishes);
    }

    /// Does what a request of the scheduler asks for: the answer, and what is wrong with it.
    pub(crate) fn perform(
        &mut self,
        course: &mut Course<'_>,
        flight: &Flight,
    ) -> (Answered, Option<String>) {
        let (path, method) = (&flight.request.path, named(flight.request.method));
        let is_eviction = method == "POST" && path.ends_with("/eviction");
        if (method == "DELETE" || is_eviction)
            && let Some(code) = self.refuses(path)
        {
            let message = "admission webhook \"keeper.example.com\" denied the request: kept";
            let failure = ApiFailure { message: message.to_owned(), ..ApiFailure::of_code(code) };
            return (plain(&ApiReply::failure(&failure)), None);
        }
        let (bound, request) = (self.server.state.bound.len(), &flight.request);
        let reply = serve(&mut self.server, method, path, request.media_type, &request.body);
        let mut wrong = None;
        if self.server.state.bound.len() > bound
            && let Some(last) = self.server.state.bound.last().cloned()
        {
            let listed = flight.pods_listed;
            let is_seen = |pod: &Value| {
                let version = pod["metadata"]["resourceVersion"].as_str();
                version.and_then(|it| it.parse::<u64>().ok()).is_some_and(|it| it <= listed)
            };
            wrong = self.books.bound(&self.server, &last.uid, &last.node, is_seen);
            let now_ms = course.now_ms;
            let broken = || self.cluster.quotas.broken_by(&self.server, &last.uid, now_ms);
            wrong = wrong.or_else(broken);
            let mut bound = pods(&self.server);
            if let Some(pod) = bound.find(|pod| pod["metadata"]["uid"] == *last.uid) {
                self.evictions.started(pod);
            }
            course.say(format_args!("bound {} to {}", last.pod, last.node));
        }
        course.say(format_args!("{method} {path}: {}", reply.code));
        (plain(&reply), wrong)
    }

    /// Whether a pod may not be deleted by the scheduler, with the code that says so.
    fn refuses(&self, path: &str) -> Option<u16> {
        let name = path.trim_end_matches("/eviction").rsplit('/').next()?;
        let kind = self.server.kind("pods")?;
        let pod = self.server.all(&kind).find(|pod| pod["metadata"]["name"] == name)?;
        self.cluster.refused.get(pod["metadata"]["labels"][OWNER].as_str()?).copied()
    }
}

fn grant(course: &mut Course<'_>, wishes: Vec<Wish>) {
    for wish in wishes {
        match wish {
            Wish::Wait(delay, uid, step) => {
                course.after(delay.as_millis() as u64, Event::Kubelet(uid, step));
            }
            Wish::Write(identity, write) => {
                let delay_ms = course.delay_ms("kubelet", &identity.name).min(300);
                course.after(delay_ms, Event::KubeletWrites(identity, write));
            }
        }
    }
}

fn see(
    kubelets: &mut Kubelets,
    plural: &str,
    object: &Value,
    is_gone: bool,
    wishes: &mut Vec<Wish>,
) {
    let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default();
    match (plural, is_gone) {
        ("nodes", false) => kubelets.node_applied(object, wishes),
        ("nodes", true) => kubelets.node_deleted(text("name")),
        (_, false) => kubelets.pod_applied(object, wishes),
        (_, true) => kubelets.pod_deleted(text("uid")),
    }
}

/// An answer that says that something failed.
pub(crate) fn failed(code: u16) -> Answered {
    plain(&ApiReply::failure(&ApiFailure::of_code(code)))
}

fn plain(reply: &ApiReply) -> Answered {
    let retry_after_s = reply.retry_after.map(|pause| pause.as_secs());
    Ok((reply.code, retry_after_s, reply.body.clone()))
}

pub(crate) fn named(method: Method) -> &'static str {
    match method {
        Method::Get => "GET",
        Method::Post => "POST",
        Method::Put => "PUT",
        Method::Patch => "PATCH",
        Method::Delete => "DELETE",
    }
}
