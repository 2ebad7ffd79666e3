//! Answers from the bill.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_account::cost::{CostSum, Paid, add_up};
use dovetail_account::device_time::DeviceState;
use dovetail_account::split::SplitMethod;
use dovetail_console::plain::plain;
use dovetail_console::table::counted;
use dovetail_model::Money;
use dovetail_price::Purchase;
use dovetail_units::amount::rounded_percent;

use super::answer::{AnswerCell, AnswerRow, CostAnswer};
use super::asked::QuestionInput;
use super::name::QuestionName;
use crate::account::CostPod;
use crate::dimension::UNKNOWN;
use crate::document::{hours, share, share_of_any};
use crate::known;
use crate::statement::NodeCharges;

/// So many workloads are named.
const MOST_NAMED: usize = 10;

/// A cell of money.
pub fn micros(money: Option<Money>) -> AnswerCell {
    AnswerCell::UsdMicros(money.map(|money| money.usd_micros))
}

/// A cell of GPU-hours.
pub fn gpu_hours(gpu_milli_ms: i128) -> AnswerCell {
    AnswerCell::Hours(Some(hours(gpu_milli_ms)))
}

/// The workloads that waste most.
pub fn top(asked: &QuestionInput) -> CostAnswer {
    let mut by_state: BTreeMap<&str, BTreeMap<DeviceState, i128>> = BTreeMap::new();
    let mut teams: BTreeMap<&str, Option<&str>> = BTreeMap::new();
    let held = asked.charges.iter().filter_map(|(_, charge)| {
        let pod = &asked.account.pods[charge.holder? as usize];
        if let Paid::Gpus(state) = charge.paid
            && state.is_waste()
        {
            *by_state.entry(&pod.job).or_default().entry(state).or_default() += charge.gpu_milli_ms;
        }
        teams.insert(&pod.job, pod.team.as_deref());
        Some((pod.job.as_str(), *charge))
    });
    let sums = add_up(held.collect::<Vec<_>>());
    let all: i128 = sums.values().map(|sum| sum.waste_gpu_milli_ms).sum();
    let blind: i128 = sums.values().map(|sum| sum.blind_gpu_milli_ms).sum();
    let held: i128 = sums.values().map(|sum| sum.allocated_gpu_milli_ms).sum();
    let mut wasters: Vec<(&str, CostSum)> =
        sums.into_iter().filter(|(_, sum)| sum.waste_gpu_milli_ms > 0).collect();
    // What has no price is behind what has one, by time.
    wasters.sort_by_key(|(job, sum)| {
        std::cmp::Reverse((sum.known(sum.waste), sum.waste_gpu_milli_ms, std::cmp::Reverse(*job)))
    });
    let row = |(job, sum): &(&str, CostSum)| {
        let states = by_state.get(job).into_iter().flatten();
        let most = states.max_by_key(|(state, time)| (**time, std::cmp::Reverse(**state)));
        let team = teams.get(job).copied().flatten().unwrap_or(UNKNOWN);
        AnswerRow(vec![
            ("job", AnswerCell::Text(plain(job))),
            ("team", AnswerCell::Text(plain(team))),
            ("waste_gpu_hours", gpu_hours(sum.waste_gpu_milli_ms)),
            ("waste_usd_micros", micros(known::waste(sum))),
            (
                "waste_share",
                AnswerCell::Share(Some(share(sum.waste_gpu_milli_ms, sum.allocated_gpu_milli_ms))),
            ),
            ("mostly", AnswerCell::Text(most.map(|(state, _)| state.name()).unwrap_or_default())),
        ])
    };
    let is_blind = blind == held && held > 0;
    let named: i128 = wasters.iter().take(MOST_NAMED).map(|(_, sum)| sum.waste_gpu_milli_ms).sum();
    CostAnswer {
        name: QuestionName::Top.text(),
        question: QuestionName::Top.words(),
        how: "GPU time allocated to a workload's pods while idle, starting, waiting for their gang or repeating \
              work, at the price of its node, most expensive first; percentages are of the GPU time allocated to the workload"
            .to_owned(),
        uncertainty: format!(
            "{}whether {} of the allocated GPU time is waste is unknown, so it is not counted",
            part_named(wasters.len(), share(named, all)),
            rounded_percent(share(blind, held))
        ),
        unknown_because: is_blind.then(|| blind_reason(asked)),
        none_because: (wasters.is_empty() && !is_blind).then(|| match held {
            0 => nobody_held(asked),
            _ => format!(
                "no workload had GPUs that were idle, starting, waiting for the rest of a gang or \
                 repeating work {}",
                asked.when()
            ),
        }),
        rows: wasters.iter().take(MOST_NAMED).map(row).collect(),
    }
}

/// How much of the waste the rows are.
fn part_named(wasters: usize, named: f64) -> String {
    match wasters {
        0 => String::new(),
        1..=MOST_NAMED => "these are all workloads with waste; ".to_owned(),
        _ => format!("these workloads account for {} of the waste; ", rounded_percent(named)),
    }
}

/// Why nothing is known of what held GPUs did.
pub(crate) fn blind_reason(asked: &QuestionInput) -> String {
    match asked.sampled {
        None => "GPU use was not measured: add --usage FILE or --prometheus URL".to_owned(),
        Some(_) => "no signal shows whether GPUs were busy".to_owned(),
    }
}

/// What is said where there is nothing to be asked about.
pub(crate) fn nobody_held(asked: &QuestionInput) -> String {
    format!("no pod had a GPU {}", asked.when())
}

/// Idle GPU-hours by team.
pub fn idle(asked: &QuestionInput) -> CostAnswer {
    let held = asked.charges.iter().filter_map(|(_, charge)| {
        let pod = &asked.account.pods[charge.holder? as usize];
        Some((pod.team.as_deref().unwrap_or(UNKNOWN), *charge))
    });
    let sums = add_up(held);
    let mut all = CostSum::default();
    sums.values().for_each(|sum| all += sum);
    let row = |team: &str, sum: &CostSum| {
        // Where nothing is known of what they did, no idle time is not none.
        let known = |cell: AnswerCell, unknown: AnswerCell| match known::is_any_measured(sum) {
            true => cell,
            false => unknown,
        };
        let idle_share = share_of_any(sum.idle_gpu_milli_ms, sum.allocated_gpu_milli_ms);
        let idle_hours = gpu_hours(sum.idle_gpu_milli_ms);
        AnswerRow(vec![
            ("team", AnswerCell::Text(plain(team))),
            ("idle_gpu_hours", known(idle_hours, AnswerCell::Hours(None))),
            ("idle_usd_micros", micros(known::idle(sum))),
            ("allocated_gpu_hours", gpu_hours(sum.allocated_gpu_milli_ms)),
            ("idle_share", known(AnswerCell::Share(idle_share), AnswerCell::Share(None))),
            ("unknown_gpu_hours", gpu_hours(sum.blind_gpu_milli_ms)),
        ])
    };
    let mut order: Vec<(&&str, &CostSum)> =
        sums.iter().filter(|(_, sum)| sum.allocated_gpu_milli_ms > 0).collect();
    order.sort_by_key(|(team, sum)| (std::cmp::Reverse(sum.idle_gpu_milli_ms), **team));
    let mut rows: Vec<AnswerRow> = order.into_iter().map(|(team, sum)| row(team, sum)).collect();
    rows.push(row("total", &all));
    let is_blind = all.blind_gpu_milli_ms == all.allocated_gpu_milli_ms;
    let is_held = all.allocated_gpu_milli_ms > 0;
    CostAnswer {
        name: QuestionName::Idle.text(),
        question: QuestionName::Idle.words(),
        how: "every second in which an allocated GPU did no work according to the best available signal, at the price \
              of its node; percentages are of the GPU time allocated to the team, measured or not"
            .to_owned(),
        uncertainty: format!(
            "between {} GPU-hours and, if all unmeasured time was idle, {} GPU-hours",
            gpu_hours(all.idle_gpu_milli_ms).text(),
            gpu_hours(all.idle_gpu_milli_ms + all.blind_gpu_milli_ms).text()
        ),
        unknown_because: (is_blind && is_held).then(|| blind_reason(asked)),
        none_because: (!is_held).then(|| nobody_held(asked)),
        rows,
    }
}

/// Pods without GPUs on a node, and what their CPU and memory cost.
type PodsBeside = (BTreeSet<u32>, Option<Money>);

/// What is said where no training is.
pub(crate) fn no_training(asked: &QuestionInput) -> String {
    format!("no training had a GPU {}", asked.when())
}

/// Pods that hold no GPU on nodes that have some, by the place of the node.
fn beside_by_node(asked: &QuestionInput, charges: &NodeCharges) -> BTreeMap<usize, PodsBeside> {
    let with_gpus: BTreeSet<u32> = charges
        .iter()
        .filter(|(_, charge)| matches!(charge.paid, Paid::Gpus(_)))
        .filter_map(|(_, charge)| charge.holder)
        .collect();
    let mut by_node: BTreeMap<usize, PodsBeside> = BTreeMap::new();
    for (node, charge) in charges {
        let Some(pod) = charge.holder.filter(|pod| !with_gpus.contains(pod)) else { continue };
        let CostPod { job, asks_for_gpus, .. } = &asked.account.pods[pod as usize];
        // What runs on every node runs there for the node.
        let is_of_node = job.starts_with("DaemonSet ") || job.starts_with("Node ");
        let is_of_gpus = asked.account.nodes[*node].gpus > 0 && !asks_for_gpus;
        if !is_of_gpus || is_of_node || charge.paid != Paid::HeldCpuMemory {
            continue;
        }
        let (pods, cost) = by_node.entry(*node).or_insert((BTreeSet::new(), Some(Money::ZERO)));
        pods.insert(pod);
        *cost = cost.zip(charge.cost).map(|(sum, more)| sum + more);
    }
    by_node
}

/// What CPU and memory of all such pods cost by charges.
pub(crate) fn cost_beside(asked: &QuestionInput, charges: &NodeCharges) -> Option<Money> {
    let mut costs = beside_by_node(asked, charges).into_values().map(|(_, cost)| cost);
    costs.try_fold(Money::ZERO, |sum, cost| Some(sum + cost?))
}

/// Nodes with GPUs and the pods on them that hold none.
pub fn beside(asked: &QuestionInput, method: SplitMethod) -> CostAnswer {
    let by_node = beside_by_node(asked, &asked.charges);
    let mut order: Vec<(usize, PodsBeside)> = by_node.into_iter().collect();
    order.sort_by_key(|(node, (pods, _))| (std::cmp::Reverse(pods.len()), *node));
    let row = |(node, (pods, cost)): &(usize, PodsBeside)| {
        let node = &asked.account.nodes[*node];
        let jobs: BTreeSet<&str> =
            pods.iter().map(|pod| asked.account.pods[*pod as usize].job.as_str()).collect();
        let named: Vec<String> = jobs.iter().take(3).map(|job| plain(job)).collect();
        let more = jobs.len().saturating_sub(named.len());
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        AnswerRow(vec![
            ("node", AnswerCell::Text(plain(&node.name))),
            ("gpu_type", AnswerCell::Text(plain(&node.gpu_type))),
            ("gpus", AnswerCell::Count(u64::try_from(node.gpus).unwrap_or(0))),
            ("pods_without_gpus", AnswerCell::Count(pods.len() as u64)),
            ("cpu_memory_usd_micros", micros(*cost)),
            ("of", AnswerCell::Text(named.join(", ") + &more)),
        ])
    };
    let nodes = asked.account.nodes.iter().filter(|node| node.gpus > 0).count();
    CostAnswer {
        name: QuestionName::Beside.text(),
        question: QuestionName::Beside.words(),
        how: "pods without GPUs on nodes with GPUs, except pods of DaemonSets; the cost is that of the CPU \
              and memory they request there, by the split method"
            .to_owned(),
        uncertainty: beside_but(order.len(), nodes, method),
        unknown_because: (!asked.knows_tenants).then(|| {
            "neither objects nor kube-state-metrics show which pods run where: pass --from".to_owned()
        }),
        none_because: (order.is_empty() && asked.knows_tenants).then(|| match nodes {
            0 => "no node has GPUs".to_owned(),
            _ => format!(
                "only pods with GPUs and pods of DaemonSets run on {} with GPUs",
                counted(nodes, "node")
            ),
        }),
        rows: order.iter().map(row).collect(),
    }
}

/// What the answer about pods beside GPUs leaves out.
fn beside_but(found: usize, nodes: usize, method: SplitMethod) -> String {
    let carry = if found == 1 { "carries" } else { "carry" };
    let by_method = match method {
        SplitMethod::AllIn => {
            "; all-in assigns the whole price of a node to its GPUs, so CPU and memory cost nothing: another --method \
             shows what they cost"
        }
        _ => "",
    };
    format!(
        "{found} of {} with GPUs {carry} such pods; a pod that requests neither CPU nor memory counts only where \
         objects are read{by_method}",
        counted(nodes, "node")
    )
}

/// GPU-time of training by charges, by the place among [`Purchase::ALL`] of how its node is bought.
pub(crate) fn of_training(
    asked: &QuestionInput,
    charges: &NodeCharges,
) -> BTreeMap<usize, CostSum> {
    let of_training = charges.iter().filter_map(|(node, charge)| {
        let pod = &asked.account.pods[charge.holder? as usize];
        let Paid::Gpus(state) = charge.paid else { return None };
        let purchase = asked.account.nodes[*node].place.purchase;
        let place = Purchase::ALL.iter().position(|known| *known == purchase)?;
        let trains = asked.training.is(&pod.job, None);
        (state.is_allocated() && trains).then_some((place, *charge))
    });
    add_up(of_training)
}

/// GPU-time of training by how its capacity is bought.
pub fn spot(asked: &QuestionInput) -> CostAnswer {
    let sums = of_training(asked, &asked.charges);
    let all: i128 = sums.values().map(|sum| sum.gpu_milli_ms).sum();
    let row = |(place, sum): (&usize, &CostSum)| {
        AnswerRow(vec![
            ("bought", AnswerCell::Text(Purchase::ALL[*place].name().replace('_', " "))),
            ("gpu_hours", gpu_hours(sum.gpu_milli_ms)),
            ("share", AnswerCell::Share(Some(share(sum.gpu_milli_ms, all)))),
            ("cost_usd_micros", micros(sum.cost())),
        ])
    };
    CostAnswer {
        name: QuestionName::Spot.text(),
        question: QuestionName::Spot.words(),
        how: format!(
            "GPU time allocated to training, by the labels that name the purchase option of nodes, at the price of its \
             node; percentages are of all GPU time of training; {}",
            asked.training.definition()
        ),
        uncertainty:
            "a node without a purchase option counts as on-demand; a dash is an unknown price"
                .to_owned(),
        unknown_because: None,
        none_because: (all == 0).then(|| no_training(asked)),
        rows: sums.iter().map(row).collect(),
    }
}
