//! Pods that ask for devices of a class as for an extended resource (KEP-5004): by the name that
//! the class gives itself (`spec.extendedResourceName`), or by the one that every class has. What
//! they ask for is put under the name of the class's GPUs. On a node that offers the resource by
//! device plugin, the plugin serves it.

use std::collections::BTreeSet;
use std::sync::Arc;

use dovetail_model::is_gpu_resource;
use dovetail_objects::{Node, Pod};

use super::apply::Claimed;
use super::claim::{NotTold, RequestFacts, WantedGpus, wanted};
use super::whose::Whose;
use super::{DeviceObjects, UntoldPod};
use crate::facts::life::note_claimed;
use crate::facts::pods::Pods;

/// What a pod asks for of a class.
struct ClassRequest {
    /// The extended resource, and how many of it.
    asked: String,
    count: i64,
    /// What these are counted as, or why nobody can tell.
    named: Result<String, NotTold>,
}

impl Claimed<'_> {
    /// Puts what pods ask of classes under the names of GPUs. Of those that wait and ask for what
    /// nobody can tell, that is noted.
    pub(super) fn rename_what_classes_serve(
        &mut self,
        objects: &DeviceObjects,
        untold: &mut Vec<UntoldPod>,
    ) {
        let offers = |node: &Node, asked: &str| {
            node.allocatable.extended.get(asked).is_some_and(|count| *count > 0)
        };
        let anywhere: BTreeSet<&String> = self.nodes.values().flat_map(offered).collect();
        let Pods { list, groups, lives, lives_by_claims, .. } = &mut *self.pods;
        for record in list {
            for ClassRequest { asked, count, named } in objects.served(&record.pod) {
                if record.pod.node.is_empty() {
                    untold.extend(why_untold(&record.pod, &asked, &named, &anywhere));
                }
                let by_plugin = match self.nodes.get(&*record.pod.node) {
                    Some(node) => offers(node, &asked),
                    None => anywhere.contains(&asked),
                };
                let Some(resource) = named.ok().filter(|_| !by_plugin) else { continue };
                rename(Arc::make_mut(&mut record.pod), &asked, &resource);
                record.wants_claimed = true;
                note_claimed(lives, lives_by_claims, &record.pod, (&resource, count));
                let template = &mut groups[record.group].common.template;
                let of_pod = template.claimed_gpus.entry(resource).or_default();
                *of_pod = count.max(*of_pod);
            }
        }
        for unmade in &mut self.waiting.pods {
            for ClassRequest { asked, named, .. } in objects.served(&unmade.pod) {
                untold.extend(why_untold(&unmade.pod, &asked, &named, &anywhere));
                if let Some(resource) = named.ok().filter(|_| !anywhere.contains(&asked)) {
                    rename(&mut unmade.pod, &asked, &resource);
                    unmade.wants_claimed = true;
                }
            }
        }
    }
}

impl DeviceObjects {
    /// What a pod asks for that classes serve with GPUs under another name.
    fn served(&self, pod: &Pod) -> Vec<ClassRequest> {
        let asked = pod.requests.extended.iter().filter(|(_, count)| **count > 0);
        let served = asked.filter_map(|(asked, count)| {
            let class = self.classes.serving(asked)?;
            let WantedGpus { gpus, not_told } =
                wanted(&[RequestFacts::one_of(class)], &self.classes);
            let named = match not_told {
                None => Ok(gpus.into_keys().next().filter(|name| name != asked)?),
                // What is called a GPU is one, whatever the class says.
                Some(_) if is_gpu_resource(asked) => return None,
                Some(not_told) => Err(not_told),
            };
            Some(ClassRequest { asked: asked.clone(), count: *count, named })
        });
        served.collect()
    }
}

/// Names of what device plugins offer on a node.
fn offered(node: &Node) -> impl Iterator<Item = &String> {
    let offered = node.allocatable.extended.iter().filter(|(_, count)| **count > 0);
    offered.map(|(name, _)| name)
}

/// What is to be told of a pod that waits for what nobody can tell.
fn why_untold(
    pod: &Pod,
    asked: &str,
    named: &Result<String, NotTold>,
    by_plugins: &BTreeSet<&String>,
) -> Option<UntoldPod> {
    let by_plugin = by_plugins.iter().any(|name| name.as_str() == asked);
    let not_told = match named {
        Err(not_told) if !by_plugin => not_told.clone(),
        Ok(_) if by_plugin => {
            let reason = format!("{asked} is offered both by device plugins and by a device class");
            NotTold::of(&reason, Whose::ANYBODY)
        }
        Ok(_) | Err(_) => return None,
    };
    Some(UntoldPod::of(full_name(pod), not_told))
}

/// Puts what a pod asks for and holds of a resource under another name.
fn rename(pod: &mut Pod, asked: &str, resource: &str) {
    for holds in pod.held.iter_mut().map(|held| &mut **held).chain([&mut pod.requests]) {
        if let Some(count) = holds.extended.remove(asked) {
            let of_resource = holds.extended.entry(resource.to_owned()).or_default();
            *of_resource = of_resource.saturating_add(count);
        }
    }
}

/// Namespace and name.
pub(super) fn full_name(pod: &Pod) -> String {
    format!("{}/{}", pod.meta.namespace, pod.meta.name)
}
