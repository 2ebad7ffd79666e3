//! What requests and tokens cost, where an inference server counts them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use dovetail_account::cost::{CostSum, add_up};
use dovetail_console::plain::plain;
use dovetail_console::table::plural;

use super::answer::{AnswerCell, AnswerRow, CostAnswer};
use super::asked::QuestionInput;
use super::by_charge::{gpu_hours, micros};
use super::name::QuestionName;
use super::training::may_end;
use crate::statement::NodeCharges;

/// So many workloads are named, and of each so many models.
const MOST_NAMED: usize = 20;
const MOST_MODELS: usize = 3;

/// What the servers of a workload counted over the period; what none of them counts is `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServedByJob {
    pub requests: Option<f64>,
    pub tokens: Option<f64>,
    pub models: BTreeSet<String>,
    pub servers: BTreeSet<&'static str>,
}

/// Cost per 1,000 requests and per million tokens, by workload.
pub fn answer(asked: &QuestionInput) -> CostAnswer {
    let none = BTreeMap::new();
    let served = asked.served.as_ref().unwrap_or(&none);
    let mut found: Vec<(&str, CostSum)> = serving(asked, &asked.charges).into_iter().collect();
    found.sort_by_key(|(job, sum)| (Reverse((sum.cost(), sum.gpu_milli_ms)), *job));
    let unknown = found.iter().filter(|(job, _)| !served.contains_key(*job)).count();
    let more = found.len().saturating_sub(MOST_NAMED);
    CostAnswer {
        name: QuestionName::Requests.text(),
        question: QuestionName::Requests.words(),
        how: "the cost of all pods of a workload over the period, idle time included, divided by \
             what their servers counted (vLLM, SGLang, TGI, NIM, Triton); tokens are prompt and \
             generated tokens together"
            .to_owned(),
        uncertainty: format!(
            "counts are estimates (increase over the period); requests between failed scrapes are missing, so costs are upper bounds{}{}",
            match unknown {
                0 => String::new(),
                some => format!(
                    "; requests of {} are not counted",
                    plural(some, "serving workload", "serving workloads")
                ),
            },
            match more {
                0 => String::new(),
                more => format!("; {} not listed", plural(more, "more is", "more are")),
            }
        ),
        unknown_because: match (&asked.served, served.is_empty()) {
            (None, _) => {
                Some("a snapshot has no request counts: add --prometheus URL".to_owned())
            }
            (Some(_), true) => Some(
                "this Prometheus has no request or token counts of a known inference server: scrape the \
                 metrics of your servers, with the labels namespace and pod"
                    .to_owned(),
            ),
            _ => None,
        },
        none_because: (found.is_empty() && !served.is_empty())
            .then(|| format!("no serving workload had a GPU {}", asked.when())),
        rows: found.iter().take(MOST_NAMED).map(|(job, sum)| row(job, sum, served)).collect(),
    }
}

/// Workloads with GPUs that serve, by charges.
pub fn serving<'a>(asked: &'a QuestionInput, charges: &NodeCharges) -> BTreeMap<&'a str, CostSum> {
    let jobs = charges.iter().filter_map(|(_, charge)| {
        Some((asked.account.pods[charge.holder? as usize].job.as_str(), *charge))
    });
    let mut sums = add_up(jobs);
    let is_counted = |job: &str| asked.served.as_ref().is_some_and(|of| of.contains_key(job));
    let kind = |job: &str| job.split_once(' ').map_or("", |(kind, _)| kind).to_owned();
    sums.retain(|job, sum| {
        sum.allocated_gpu_milli_ms > 0 && (is_counted(job) || !may_end(&kind(job)))
    });
    sums
}

fn row(job: &str, sum: &CostSum, served: &BTreeMap<String, ServedByJob>) -> AnswerRow {
    let none = ServedByJob::default();
    let of = served.get(job).unwrap_or(&none);
    let names: Vec<String> = of.models.iter().take(MOST_MODELS).map(|name| plain(name)).collect();
    // In millionths of a dollar, for so many of what was counted.
    let per = |count: Option<f64>, many: f64| {
        let cost = sum.cost()?.usd_micros as f64;
        let count = count.filter(|count| *count >= 1.0)?;
        Some((cost / count * many).round() as i64)
    };
    let whole = |count: Option<f64>| AnswerCell::Counted(count.map(|count| count.round() as u64));
    AnswerRow(vec![
        ("job", AnswerCell::Text(plain(job))),
        ("model", AnswerCell::Text(names.join(", "))),
        ("server", AnswerCell::Text(of.servers.iter().copied().collect::<Vec<_>>().join(", "))),
        ("gpu_hours", gpu_hours(sum.allocated_gpu_milli_ms)),
        ("cost_usd_micros", micros(sum.cost())),
        ("requests", whole(of.requests)),
        ("per_1000_requests_usd_micros", AnswerCell::UnitUsdMicros(per(of.requests, 1e3))),
        ("tokens", whole(of.tokens)),
        ("per_million_tokens_usd_micros", AnswerCell::UnitUsdMicros(per(of.tokens, 1e6))),
    ])
}
