//! A gang: its pods, and what each is up to.

use std::collections::BTreeMap;

use dovetail_cluster::world::{
    GangLook, Gathering, MemberLook, ShortLook, World, waits_for_members,
};
use dovetail_model::JobId;
use dovetail_translate::NotYet;
use serde::Serialize;

use crate::status::{Reason, WaitingReason};

/// A gang.
#[derive(Clone, Debug, Serialize)]
pub struct GangLine {
    pub name: String,
    /// Fewest pods that start together; null if its settings cannot hold.
    pub min: Option<u32>,
    /// Its pods that have a node or could take one, as far as they count for that: by their roles.
    #[serde(skip)]
    present: u32,
    /// Its pods that scheduling gates hold.
    #[serde(skip)]
    gated: u32,
    /// Its pods that are left untouched.
    #[serde(skip)]
    refused: u32,
    /// Its pods that could not start and are tried again.
    #[serde(skip)]
    retried: u32,
    /// Of a gang that runs: how many pods fewer have a node than start together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lacks_pods: Option<u32>,
    #[serde(skip)]
    short: Option<ShortLook>,
    /// Its pods that are not over.
    pub members: Vec<MemberLine>,
    /// Of a gang that waits: its pods that would find room now, one after the other.
    pub fitting_pods: Option<usize>,
    /// The job of its pods that wait.
    #[serde(skip)]
    pub(super) job: Option<JobId>,
}

/// One of its pods.
#[derive(Clone, Debug, Serialize)]
pub struct MemberLine {
    /// Namespace and name.
    pub pod: String,
    /// `placed`, `fits`, `waits`, `not_started` (it could not start, and is tried again) or
    /// `left_untouched`.
    pub state: &'static str,
    /// The node it is on, or would get now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Why it is left untouched, could not start, or waits by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl GangLine {
    /// A gang; the job of those of its pods that wait, or that have just been decided about, comes
    /// with it.
    pub(super) fn of(look: &GangLook<'_>, world: &World) -> Self {
        let job = |member: &&MemberLook<'_>| {
            let meta = &member.pod.meta;
            world.pods().job_of(&meta.namespace, &meta.name)
        };
        let unbound = || look.members.iter().filter(|member| member.pod.node.is_empty());
        Self {
            name: look.name.to_string(),
            min: look.terms.as_ref().ok().map(|terms| terms.min),
            present: look.present,
            gated: look.gated,
            refused: look.refused,
            retried: look.retried,
            lacks_pods: look.short.map(|short| short.pods),
            short: look.short,
            members: look.members.iter().map(MemberLine::of).collect(),
            fitting_pods: None,
            job: unbound().find_map(|member| job(&member)),
        }
    }

    /// Without the nodes of this decision, where a scheduler has taken another: it holds nodes that
    /// it alone knows.
    pub(super) fn without_nodes(mut self) -> Self {
        for member in self.members.iter_mut().filter(|member| member.state == "fits") {
            (member.state, member.node) = ("waits", None);
        }
        self
    }

    /// How many of its pods are in a state.
    pub fn count(&self, state: &str) -> usize {
        self.members.iter().filter(|member| member.state == state).count()
    }

    /// What there is to say of a gang about which nothing is to be decided.
    pub(super) fn without_job(&self) -> (&'static str, String) {
        let (all, placed) = (self.members.len(), self.count("placed"));
        if placed == all {
            let text = format!("all {all} pods of {} have a node", self.name);
            return ("placed", text + &self.short.map(of_the_lost).unwrap_or_default());
        }
        // What needs somebody to change it says more than what is tried again, and that more than
        // whose turn it is.
        for state in ["left_untouched", "not_started", "waits"] {
            let told = self.members.iter().filter(|member| member.state == state);
            if let Some(message) = told.filter_map(|member| member.message.clone()).next() {
                return (state, message);
            }
        }
        let (present, min) = (self.present, self.min.unwrap_or_default());
        let &Self { gated, refused, retried, .. } = self;
        if gated > 0 && placed + gated as usize == all && placed >= min as usize {
            let hold = match gated {
                1 => "scheduling gates block the other one".to_owned(),
                _ => format!("scheduling gates block the other {gated}"),
            };
            let text =
                format!("{placed} of the {all} pods of {} have a node, and {hold}", self.name);
            return ("placed", text);
        }
        let gathering = Gathering { present, min, gated, refused, retried };
        ("waits", waits_for_members(&self.name, gathering))
    }

    /// Where its pods would go, by node.
    pub(super) fn nodes(&self) -> String {
        let mut nodes: BTreeMap<&str, usize> = BTreeMap::new();
        let fitting = self.members.iter().filter(|member| member.state == "fits");
        for node in fitting.filter_map(|member| member.node.as_deref()) {
            *nodes.entry(node).or_default() += 1;
        }
        let each = nodes.iter().map(|(node, pods)| format!("{node} ({pods})"));
        each.collect::<Vec<_>>().join(", ")
    }
}

/// What there is to say of pods that a running gang lacks and that its owner has not made anew.
fn of_the_lost(short: ShortLook) -> String {
    let pods = short.pods;
    let seconds = |ms: u64| format!("{} s", ms.div_ceil(1_000));
    let then = match short.given_up_after_ms {
        Some(after_ms) => {
            format!("its pods are deleted after it has been too small for {}", seconds(after_ms))
        }
        None => "the gang keeps waiting".to_owned(),
    };
    format!(
        ", {pods} fewer than start together: the missing pods have not been recreated. A running scheduler \
         reserves capacity for lost pods, for {} each, unless they were preempted; no object \
         records when the reservation started; {then}",
        seconds(short.keep_for_ms)
    )
}

/// The state of a pod that the engine does not place for this reason.
pub(super) fn state_of(why: &NotYet) -> &'static str {
    match WaitingReason::left_untouched(why).reason {
        Reason::Failed => "not_started",
        Reason::LeftUntouched => "left_untouched",
        Reason::Pending(_) | Reason::Volumes | Reason::Devices => "waits",
    }
}

impl MemberLine {
    fn of(member: &MemberLook<'_>) -> Self {
        let state = match (member.refused, member.node) {
            (Some(why), _) => state_of(why),
            (None, None) => "waits",
            (None, Some(_)) if member.pod.node.is_empty() => "fits",
            (None, Some(_)) => "placed",
        };
        Self {
            pod: format!("{}/{}", member.pod.meta.namespace, member.pod.meta.name),
            state,
            node: member.node.map(str::to_owned),
            message: member.refused.map(ToString::to_string),
        }
    }
}
