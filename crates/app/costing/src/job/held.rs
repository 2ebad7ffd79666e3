//! What a job held, with what it did and what that cost.

use std::collections::BTreeMap;

use anyhow::Result;
use dovetail_account::cost::{CostSum, Paid};
use dovetail_account::split::{Headline, headline};
use dovetail_console::plain::plain;
use dovetail_facts::{Workload, WorkloadClass};
use dovetail_model::Money;
use dovetail_phases::job_phases::{
    BilledMember, Confidence, MemberPhases, Phase, PhaseRow, phase_rows,
};
use dovetail_settings::errors::BadInput;
use dovetail_units::amount::tenths;

use super::name::Job;
use crate::account::Account;
use crate::flags::BillTerms;
use crate::statement::{all_charges, methods};

/// A job with the account that it is part of.
pub struct JobTime {
    pub account: Account,
    pub job: Job,
    pub members: Vec<HeldMember>,
    pub samples: Samples,
}

/// What phases rest on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Samples {
    /// Their distance.
    pub step_ms: u64,
    /// From the first to the end of the last.
    pub span_ms: u64,
    /// Members that worked together, at most; 0 where each pod is for itself.
    pub ranks: u32,
}

/// A device held by a pod of the job.
pub struct HeldMember {
    pub pod: u32,
    /// Place of its node.
    pub node: usize,
    /// Its time in the bill, in milli-GPU × ms.
    pub gpu_milli_ms: i128,
    pub(crate) phases: MemberPhases,
    /// Whether its GPU computed while several pods had it: for which of them nobody knows.
    pub(crate) is_for_any_holder: bool,
}

/// A job's bill.
pub struct JobBill {
    pub rows: Vec<PhaseRow>,
    pub total: CostSum,
    /// What is no device-time: CPU, memory, its part of what nobody has. `None` without a price.
    pub rest: Option<Money>,
}

/// Owners whose pods do not wait for each other.
const EACH_FOR_ITSELF: [&str; 12] = [
    "Deployment",
    "ReplicaSet",
    "StatefulSet",
    "DaemonSet",
    "ReplicationController",
    "Rollout",
    "Notebook",
    "InferenceService",
    "Revision",
    "RayService",
    "ScaledJob",
    "Pod",
];

/// Whether the pods of a job work together, so that one can wait for another.
pub fn is_together(job: &Job, workload: Option<&Workload>) -> bool {
    let by_object = workload.is_some_and(|workload| {
        workload.is_gang || workload.class == Some(WorkloadClass::Training)
    });
    by_object || !EACH_FOR_ITSELF.contains(&job.kind())
}

impl JobTime {
    /// The rows of the job, which are its time and its bill exactly.
    ///
    /// # Errors
    /// A method that cannot split a node's price.
    pub fn bill(&self, terms: &BillTerms) -> Result<JobBill> {
        let mut total = CostSum::default();
        let mut costs: BTreeMap<(u32, usize), Option<Money>> = BTreeMap::new();
        for (node, charge) in all_charges(&self.account, terms.method, terms.unused)? {
            let Some(pod) = charge.holder.filter(|pod| self.job.pods.contains(pod)) else {
                continue;
            };
            total.add(&charge);
            if let Paid::Gpus(state) = charge.paid
                && state.is_allocated()
            {
                let cost = costs.entry((pod, node)).or_insert(Some(Money::ZERO));
                *cost = cost.zip(charge.cost).map(|(sum, more)| sum + more);
            }
        }
        let places: BTreeMap<(u32, usize), usize> =
            costs.keys().enumerate().map(|(place, key)| (*key, place)).collect();
        let billed = self.members.iter().filter_map(|member| {
            Some(BilledMember {
                gpu_milli_ms: member.gpu_milli_ms,
                payer: *places.get(&(member.pod, member.node))?,
                phases: &member.phases,
            })
        });
        let costs: Vec<Option<Money>> = costs.into_values().collect();
        let rows = phase_rows(&billed.collect::<Vec<_>>(), &costs);
        let of_gpus: Money = rows.iter().filter_map(|row| row.cost).sum();
        let rest = total.cost().map(|cost| cost - of_gpus);
        Ok(JobBill { rows, total, rest })
    }

    /// Its cost under the method with its range over all that can be used here; `None` without a
    /// price.
    ///
    /// # Errors
    /// A method that cannot split a node's price.
    pub fn range(&self, terms: &BillTerms) -> Result<Option<Headline>> {
        let mut figures = Vec::new();
        for method in methods(&self.account, terms.method) {
            let mut total = CostSum::default();
            for (_, charge) in all_charges(&self.account, method, terms.unused)? {
                if charge.holder.is_some_and(|pod| self.job.pods.contains(&pod)) {
                    total.add(&charge);
                }
            }
            figures.extend(total.cost().map(|cost| (method, cost)));
        }
        Ok(headline(terms.method, &figures))
    }

    /// Refuses a job of which nothing but its bill is known.
    ///
    /// # Errors
    /// Nothing that it did is known; `way` would tell it.
    pub(crate) fn refuse_blind(self, way: &str) -> Result<Self> {
        let is_known = |member: &HeldMember| {
            let parts = member.phases.stretches.iter().flat_map(|stretch| &stretch.parts);
            parts.into_iter().any(|part| part.phase != Phase::Unknown && part.length_ms > 0)
        };
        if self.members.iter().any(is_known) {
            return Ok(self);
        }
        let time: i128 = self.members.iter().map(|member| member.gpu_milli_ms).sum();
        let text = format!(
            "{}: GPU use was not measured in its {} GPU-hours, so their parts are unknown: \
             {way}",
            plain(&self.job.name),
            tenths(time as f64 / 3.6e9)
        );
        Err(BadInput(text).into())
    }
}

/// A member that nobody measured.
pub(crate) fn unmeasured() -> MemberPhases {
    let second = dovetail_account::device_time::Span { from_ms: 0, to_ms: 1_000 };
    MemberPhases::all(Phase::Unknown, Confidence::Low, second)
}
