//! A generated cluster with a month of jobs.

use anyhow::Result;
use dovetail_sim::comparison::TimedComparison;
use dovetail_trace::synth::{SynthConfig, synth};
use dovetail_units::amount::whole;

use crate::replay::{self, POLICIES};
use crate::{DemoMonth, Host};

pub(crate) fn compared(month: &DemoMonth, host: &dyn Host) -> Result<TimedComparison> {
    let DemoMonth { nodes, days, load, seed } = *month;
    let synthetic = synth(&SynthConfig { seed, nodes, days, load, ..SynthConfig::default() })?;
    let (cluster, jobs) = (synthetic.cluster, synthetic.trace.jobs);
    let days = format!("{} day{}", whole(days.into()), if days == 1 { "" } else { "s" });
    host.say(&format!(
        "{} jobs on {} nodes with {} GPUs over {days}, under {}",
        jobs.len(),
        cluster.nodes.len(),
        cluster.total_gpus(),
        POLICIES.join(", ")
    ));
    let prices = host.prices(&cluster)?;
    let name = match month.days {
        30 => "generated month".to_owned(),
        _ => format!("generated, {days}"),
    };
    replay::compared(&name, &cluster, &jobs, &prices, host)
}
