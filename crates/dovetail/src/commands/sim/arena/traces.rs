//! Outside traces of the arena, from a folder.

use std::path::Path;

use anyhow::Result;
use dovetail_console::app::App;
use dovetail_sim::arena::{ArenaData, OPENB_LISTS};
use dovetail_trace::{ReadOptions, TraceJob, read_cluster, read_trace};
use sha2::{Digest, Sha256};

use crate::commands::sim::timed_replay::hexadecimal;

/// Traces that were found.
#[derive(Debug)]
pub(crate) struct Traces {
    pub(crate) data: ArenaData,
    /// Tells other data apart; `none` without any.
    pub(crate) fingerprint: String,
}

impl Traces {
    /// Reads what the folder has; without a folder there is nothing.
    pub(crate) fn read(app: &App, folder: Option<&Path>) -> Result<Self> {
        let Some(folder) = folder else {
            app.note(
                "no outside traces: set DOVETAIL_TRACES for the regimes of openb, Philly and ITP",
            );
            return Ok(Self { data: ArenaData::default(), fingerprint: "none".to_owned() });
        };
        let jobs = |file: &str| -> Result<Vec<TraceJob>> {
            let path = folder.join(file);
            match path.exists() {
                true => Ok(read_trace(&path, &ReadOptions::default())?.jobs),
                false => Ok(Vec::new()),
            }
        };
        let nodes = folder.join("openb/openb_node_list_gpu_node.csv");
        let mut data = ArenaData {
            philly: jobs("jobs/philly_pass_82k.csv")?,
            itp: jobs("jobs/itp_cluster04.csv")?,
            ..ArenaData::default()
        };
        if nodes.exists() {
            data.openb_nodes = read_cluster(&nodes, &ReadOptions::default())?.nodes;
        }
        for list in OPENB_LISTS {
            let pods = jobs(&format!("openb/openb_pod_list_{list}.csv"))?;
            if !pods.is_empty() {
                data.openb_pods.insert(list.to_owned(), pods);
            }
        }
        let fingerprint = fingerprint(&data)?;
        Ok(Self { data, fingerprint })
    }
}

/// A hash over everything that was read.
fn fingerprint(data: &ArenaData) -> Result<String> {
    let text = serde_json::to_vec(&(&data.openb_nodes, &data.openb_pods, &data.philly, &data.itp))?;
    Ok(hexadecimal(&Sha256::digest(text)[..8]))
}
