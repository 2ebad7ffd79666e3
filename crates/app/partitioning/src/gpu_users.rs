//! Which GPUs of a node its pods use, by NVIDIA's exporter in the Prometheus that `--prometheus`
//! names.

use std::collections::BTreeMap;

use dovetail_console::clock::now_ms;
use dovetail_metrics::exporter::{DevicePlace, places, sampled};
use dovetail_model::MigTable;
use dovetail_objects::Pod;
use dovetail_sharing::{DeviceReport, Seen, Side, gpu_amounts, gpu_uses, uses_gpus};
use dovetail_sources::kubeconfig::ConnectionFlags;
use dovetail_sources::prometheus::{ServerChoice, WayFlags};

use crate::eligible::holders;
use crate::objects::{Objects, SeenNode};

/// Asks an exporter's metrics for the devices of pods; without a named server it knows nothing.
pub(crate) struct GpuUsers<'a> {
    pub(crate) choice: &'a ServerChoice,
    pub(crate) way: &'a WayFlags,
    pub(crate) connection: &'a ConnectionFlags,
}

/// What is reported of each node.
type Reports = BTreeMap<String, Vec<DeviceReport>>;

impl GpuUsers<'_> {
    async fn reports(&self) -> Result<Reports, String> {
        let client = self.way.reach(self.choice, self.connection).await;
        let (client, _) = client.map_err(|error| format!("{error:#}"))?;
        let mut client = client.ok_or("no Prometheus is named")?;
        let mut reports = Reports::new();
        for query in sampled() {
            let series = client.instant(&query, now_ms().cast_signed()).await;
            let found = places(&series.map_err(|error| error.to_string())?);
            for DevicePlace { node, gpu, slice, pod, at_ms } in found {
                let slice = slice.map(|slice| (slice.id, slice.profile));
                let pod = pod.map(|(namespace, name)| format!("{namespace}/{name}"));
                reports.entry(node).or_default().push(DeviceReport { gpu, slice, pod, at_ms });
            }
            if !reports.is_empty() {
                break;
            }
        }
        Ok(reports)
    }

    /// Adds what pods use of each GPU to the nodes on which pods use GPUs. `table`: how the GPUs of
    /// a node are cut.
    pub(crate) async fn add_to<'t>(
        &self,
        objects: &mut Objects,
        table: impl Fn(&SeenNode) -> Option<&'t MigTable>,
    ) {
        if !matches!(self.choice, ServerChoice::At(_)) {
            return;
        }
        let reports = self.reports().await;
        let (holders, mut found) = (holders(objects), BTreeMap::new());
        for (node, seen) in &objects.nodes {
            let pods = holders.get(&**node).map_or(&[][..], Vec::as_slice);
            let pods: Vec<&Pod> = pods.iter().copied().filter(|pod| uses_gpus(pod)).collect();
            let Some(table) = table(seen).filter(|_| !pods.is_empty()) else { continue };
            let offers = seen.node.allocatable.extended.iter();
            let offers = gpu_amounts(offers.map(|(name, count)| (&**name, *count)), Some(table));
            let uses = reports.as_ref().map_err(Clone::clone).and_then(|reports| {
                let reports = reports.get(node).map_or(&[][..], Vec::as_slice);
                gpu_uses(reports, &pods, &offers, table, now_ms())
            });
            found.insert(node.clone(), uses);
        }
        objects.gpu_use = found;
    }

    /// A node without the pods on GPUs that a change leaves as they are, as far as that is known.
    pub(crate) async fn besides(
        &self,
        seen: Seen,
        pods: &[Pod],
        (from, to): (&Side, &Side),
        table: Option<&MigTable>,
    ) -> Seen {
        let is_worth_asking = matches!(self.choice, ServerChoice::At(_))
            && !seen.gpu_pods.is_empty()
            && from.keeps_gpus(to);
        let Some(table) = table.filter(|_| is_worth_asking) else { return seen };
        let Ok(reports) = self.reports().await else { return seen };
        let reports = reports.get(&seen.node).map_or(&[][..], Vec::as_slice);
        let pods: Vec<&Pod> = pods.iter().collect();
        match gpu_uses(reports, &pods, &seen.offers, table, now_ms()) {
            Ok(uses) => seen.besides(&uses, from, to),
            Err(_) => seen,
        }
    }
}
