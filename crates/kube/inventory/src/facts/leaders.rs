//! Pods that control others by what they own. The leader of a group of a LeaderWorkerSet controls
//! the StatefulSet of its workers, and is controlled by that of all leaders: the set is at the top
//! of both.

use dovetail_facts::ObjectRef;

use super::owner::Owners;
use super::pods::Pods;

/// Puts them between what they control and what controls them.
pub(super) fn add_leaders(owners: &mut Owners, pods: &Pods) {
    for leader in owners.leaders() {
        if let Some((controller, uid)) = controller_of(&leader, pods) {
            owners.add_leader(leader, controller, uid);
        }
    }
}

/// What controls a pod, and the identity of that as far as it is kept; `None` if nothing does, or
/// if the pod was not read.
fn controller_of(pod: &ObjectRef, pods: &Pods) -> Option<(ObjectRef, Option<String>)> {
    let key: (Box<str>, Box<str>) = (pod.namespace.as_str().into(), pod.name.as_str().into());
    let life = pods.lives.get(&key).or_else(|| pods.lives_by_claims.get(&key));
    if let Some((owner, uid)) = life.and_then(|life| life.owner.clone()) {
        return Some((owner, Some(uid)));
    }
    let place = pods.number_of(&pod.namespace, &pod.name)?;
    let owner = &pods.groups[pods.list[place].group].owner;
    (owner != pod).then(|| (owner.clone(), None))
}
