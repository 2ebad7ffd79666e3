//! Makes a world smaller while it still shows what it was found for.

use serde_json::Value;

use super::GeneratedCluster;

/// The most often that one world is asked about while it shrinks.
const MOST_ATTEMPTS: usize = 4000;

/// The smallest world found that still `shows`: first whole objects go, in halves and one by one,
/// then fields of the objects that are left. What is returned shows it, or is the world given.
pub fn shrink(
    world: &GeneratedCluster,
    mut shows: impl FnMut(&GeneratedCluster) -> bool,
) -> GeneratedCluster {
    let mut smallest = world.clone();
    let mut attempts = 0;
    let mut try_it = |candidate: &GeneratedCluster| {
        attempts += 1;
        attempts <= MOST_ATTEMPTS && shows(candidate)
    };
    loop {
        let before = size(&smallest);
        drop_objects(&mut smallest, &mut try_it);
        drop_fields(&mut smallest, &mut try_it);
        if size(&smallest) == before {
            return smallest;
        }
    }
}

fn size(world: &GeneratedCluster) -> usize {
    world.to_line().len()
}

fn list(world: &mut GeneratedCluster, kind: usize) -> &mut Vec<Value> {
    let (_, objects) = world.lists_mut().into_iter().nth(kind).expect("a kind of the world");
    objects
}

/// Number of kinds of objects.
fn kinds(world: &mut GeneratedCluster) -> usize {
    world.lists_mut().len()
}

fn drop_objects(world: &mut GeneratedCluster, shows: &mut impl FnMut(&GeneratedCluster) -> bool) {
    for kind in 0..kinds(world) {
        let mut step = list(world, kind).len().max(1);
        while step > 0 {
            let mut start = 0;
            while start < list(world, kind).len() {
                let mut candidate = world.clone();
                let objects = list(&mut candidate, kind);
                objects.drain(start..(start + step).min(objects.len()));
                if shows(&candidate) {
                    *world = candidate;
                } else {
                    start += step;
                }
            }
            step /= 2;
        }
    }
}

fn drop_fields(world: &mut GeneratedCluster, shows: &mut impl FnMut(&GeneratedCluster) -> bool) {
    for kind in 0..kinds(world) {
        for position in 0..list(world, kind).len() {
            let mut paths = Vec::new();
            collect_paths(&list(world, kind)[position], &mut Vec::new(), &mut paths);
            // Parents come before their children: what goes as a whole is not taken apart.
            let mut gone: Vec<Vec<PathStep>> = Vec::new();
            for path in paths {
                if gone.iter().any(|prefix| path.starts_with(prefix)) || is_identity(&path) {
                    continue;
                }
                let mut candidate = world.clone();
                remove(&mut list(&mut candidate, kind)[position], &path);
                if shows(&candidate) {
                    *world = candidate;
                    // Later positions of a list have moved: they are found again in the next round.
                    let removed_item = matches!(path.last(), Some(PathStep::Item(_)));
                    let kept = path.len() - usize::from(removed_item);
                    gone.push(path[..kept].to_vec());
                }
            }
        }
    }
}

/// One step on the way to a value inside an object.
#[derive(Clone, Debug, PartialEq)]
enum PathStep {
    Field(String),
    Item(usize),
}

/// Names tie objects together; an object without them would not be one.
fn is_identity(path: &[PathStep]) -> bool {
    let field = |at: usize| match path.get(at) {
        Some(PathStep::Field(name)) => name.as_str(),
        _ => "",
    };
    field(0) == "metadata" && matches!(field(1), "" | "name" | "namespace" | "uid")
}

fn collect_paths(value: &Value, at: &mut Vec<PathStep>, paths: &mut Vec<Vec<PathStep>>) {
    let mut visit = |step: PathStep, inner: &Value| {
        at.push(step);
        paths.push(at.clone());
        collect_paths(inner, at, paths);
        at.pop();
    };
    match value {
        Value::Object(fields) => {
            for (name, inner) in fields {
                visit(PathStep::Field(name.clone()), inner);
            }
        }
        Value::Array(items) => {
            for (position, inner) in items.iter().enumerate() {
                visit(PathStep::Item(position), inner);
            }
        }
        _ => {}
    }
}

fn remove(value: &mut Value, path: &[PathStep]) {
    let (last, parents) = path.split_last().expect("a path leads somewhere");
    let mut parent = value;
    for step in parents {
        let inner = match step {
            PathStep::Field(name) => parent.get_mut(name),
            PathStep::Item(position) => parent.get_mut(position),
        };
        let Some(inner) = inner else { return };
        parent = inner;
    }
    match (last, parent) {
        (PathStep::Field(name), Value::Object(fields)) => {
            fields.remove(name);
        }
        (PathStep::Item(position), Value::Array(items)) if *position < items.len() => {
            items.remove(*position);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::super::generate;
    use super::*;

    #[test]
    fn what_does_not_matter_goes_and_what_matters_stays() {
        let world = (0..).map(generate).find(|world| world.pods.len() > 10).unwrap();
        let node_of = |pod: &Value| pod["spec"]["nodeName"] == "node-1";
        let shows =
            |world: &GeneratedCluster| world.pods.iter().filter(|pod| node_of(pod)).count() > 1;
        if !shows(&world) {
            return;
        }
        let smallest = shrink(&world, shows);
        assert_eq!(smallest.pods.len(), 2);
        assert!(smallest.nodes.is_empty() && smallest.pending.is_empty());
        for pod in &smallest.pods {
            assert_eq!(pod["spec"], serde_json::json!({"nodeName": "node-1"}));
        }
    }
}
