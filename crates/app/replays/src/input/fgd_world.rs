//! What the `fgd` protocol runs on, from files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use dovetail_console::app::App;
use dovetail_console::table::whole;
use dovetail_settings::errors::BadInput;
use dovetail_sim::fgd::FgdWorld;
use dovetail_trace::fgd::{FgdOrders, fgd_orders, read_arrival_order, read_node_order, trace_name};
use dovetail_trace::{Trace, TraceCluster, TraceError};

use crate::input::trace_file::{self, RowFlags};

/// Files with published orders; without them the same orders follow from the seed.
#[derive(Clone, Debug, Default, Args)]
pub struct OrderFlags {
    /// fgd: file with arrival orders, one line per seed [default: computed from the seed]
    #[arg(long, value_name = "FILE")]
    pub arrivals: Option<PathBuf>,
    /// fgd: file with tie-break orders of the nodes, one line per trace and seed
    /// [default: computed from the seed]
    #[arg(long, value_name = "FILE")]
    pub node_order: Option<PathBuf>,
}

impl OrderFlags {
    /// The first flag that was given, if any.
    pub fn given(&self) -> Option<&'static str> {
        let given = [("--arrivals", &self.arrivals), ("--node-order", &self.node_order)];
        given.into_iter().find(|(_, path)| path.is_some()).map(|(flag, _)| flag)
    }
}

/// Pods of one trace on the machines of one cluster.
#[derive(Debug)]
pub struct FgdTrace {
    /// Name of the trace: its file without folder and endings.
    pub name: String,
    pub pods: Trace,
}

impl FgdTrace {
    /// Reads the pods of a file.
    pub fn read(app: &App, path: &Path, rows: RowFlags) -> Result<Self> {
        let pods = trace_file::jobs(app, path, rows)?;
        Ok(Self { name: trace_name(path), pods })
    }

    /// The orders of a seed, computed.
    pub fn orders(&self, cluster: &TraceCluster, seed: u64) -> Result<FgdOrders> {
        if cluster.total_gpus() == 0 {
            let why = "the cluster has no GPUs, and protocol fgd measures how many are allocated";
            return Err(BadInput(why.to_owned()).into());
        }
        // Settings bound seeds to what fits.
        fgd_orders(&self.pods.jobs, &cluster.nodes, seed as i64).map_err(|error| match error {
            TraceError::Protocol { job, problem, expected } => {
                let file = &self.pods.source;
                let place = job.map_or_else(|| file.clone(), |job| self.pods.place(job));
                BadInput(format!("{place}: {problem}; the fgd protocol needs {expected}")).into()
            }
            error => error.into(),
        })
    }

    /// Notes the models that pods ask for and no machine has: pods that accept no other are always
    /// dropped, which may be a typo.
    pub fn note_missing_models(&self, app: &App, cluster: &TraceCluster) {
        let present: BTreeSet<&str> =
            cluster.nodes.iter().filter_map(|node| node.gpu_model.as_deref()).collect();
        let mut missing: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for (row, pod) in self.pods.jobs.iter().enumerate() {
            let known = |model: &String| present.contains(model.as_str());
            let can_start = pod.gpu_models.iter().any(known);
            for model in pod.gpu_models.iter().filter(|model| !known(model)) {
                let (_, dropped) = missing.entry(model).or_insert((row, 0));
                *dropped += usize::from(!can_start);
            }
        }
        for (model, (row, dropped)) in missing {
            app.note(&format!(
                "{}: no node in {} has GPUs of the model `{model}`; pods that accept only missing \
                 models and are always dropped: {}",
                self.pods.place(row),
                cluster.source,
                whole(dropped as u64),
            ));
        }
    }

    /// The orders of a seed, from the files given or computed. A file does not say which pods its
    /// rows are of, so an order that is not the computed one gets a note: it may be of another
    /// trace.
    pub fn orders_from(
        &self,
        app: &App,
        cluster: &TraceCluster,
        seed: u64,
        files: &OrderFlags,
    ) -> Result<FgdOrders> {
        let mut orders = self.orders(cluster, seed)?;
        let tell = |flag: &str, path: &Path| {
            let (file, name) = (path.display(), &self.name);
            app.note(&format!(
                "{flag} {file}: the order for seed {seed} differs from the computed order of {name}; if you did \
                 not expect this, check that the file belongs to this trace"
            ));
        };
        if let Some(path) = &files.arrivals {
            let read = read_arrival_order(path, seed as i64, self.pods.jobs.len())?;
            if read != orders.arrivals {
                tell("--arrivals", path);
            }
            orders.arrivals = read;
        }
        if let Some(path) = &files.node_order {
            let read = read_node_order(path, &self.name, seed as i64, cluster.nodes.len())?;
            if read != orders.nodes {
                tell("--node-order", path);
            }
            orders.nodes = read;
        }
        Ok(orders)
    }

    /// The world of these orders.
    pub fn world<'w>(&'w self, cluster: &'w TraceCluster, orders: &'w FgdOrders) -> FgdWorld<'w> {
        FgdWorld {
            nodes: &cluster.nodes,
            pods: &self.pods.jobs,
            arrivals: &orders.arrivals,
            node_order: &orders.nodes,
        }
    }
}
