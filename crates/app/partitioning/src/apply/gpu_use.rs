//! Which GPUs of a node its pods use, by NVIDIA's exporter in the Prometheus that `--prometheus`
//! names.

use std::collections::BTreeMap;

use dovetail_console::clock::now_ms;
use dovetail_metrics::exporter::{DevicePlace, SAMPLED, places};
use dovetail_model::MigTable;
use dovetail_objects::Pod;
use dovetail_sharing::{DeviceReport, GpuUse, Seen, Side, gpu_amounts, gpu_uses, uses_gpus};
use dovetail_sources::prometheus::ServerChoice;

use super::Apply;
use crate::objects::Objects;

impl Apply<'_> {
    /// What the exporter reports of each node now; empty where no server is named.
    async fn reports(&self) -> Result<BTreeMap<String, Vec<DeviceReport>>, String> {
        let ServerChoice::At(_) = &self.options.prometheus else { return Ok(BTreeMap::new()) };
        let mut client = self.prometheus().await?;
        let mut by_node: BTreeMap<String, Vec<DeviceReport>> = BTreeMap::new();
        for query in SAMPLED {
            let series = client.instant(query, now_ms().cast_signed()).await;
            let found = places(&series.map_err(|error| error.to_string())?);
            for DevicePlace { node, gpu, slice, pod, at_ms } in found {
                let slice = slice.map(|slice| (slice.id, slice.profile));
                let pod = pod.map(|(namespace, name)| format!("{namespace}/{name}"));
                by_node.entry(node).or_default().push(DeviceReport { gpu, slice, pod, at_ms });
            }
            if !by_node.is_empty() {
                break;
            }
        }
        Ok(by_node)
    }

    /// Adds what pods use of each GPU to the nodes on which pods use GPUs.
    pub(super) async fn add_gpu_use(&self, objects: &mut Objects) {
        if !matches!(self.options.prometheus, ServerChoice::At(_)) {
            return;
        }
        let reports = self.reports().await;
        for (node, seen) in &objects.nodes {
            let pods = objects.pods.values().filter(|pod| *pod.node == **node && uses_gpus(pod));
            let pods: Vec<&Pod> = pods.collect();
            let Some(table) = self.table(seen).filter(|_| !pods.is_empty()) else { continue };
            let offers = seen.node.allocatable.extended.iter();
            let offers = gpu_amounts(offers.map(|(name, count)| (&**name, *count)), Some(table));
            let uses = reports.as_ref().map_err(Clone::clone).and_then(|reports| {
                let reports = reports.get(node).map_or(&[][..], Vec::as_slice);
                gpu_uses(reports, &pods, &offers, table, now_ms())
            });
            objects.gpu_use.insert(node.clone(), uses);
        }
    }

    /// A node without the pods on GPUs that a change leaves as they are, as far as that is known.
    pub(super) async fn besides(
        &self,
        seen: Seen,
        pods: &[Pod],
        (from, to): (&Side, &Side),
        table: Option<&MigTable>,
    ) -> Seen {
        let Some(table) = table.filter(|_| !seen.gpu_pods.is_empty()) else { return seen };
        let uses = self.uses_now(&seen, pods, table).await;
        match uses {
            Some(uses) => seen.besides(&uses, from, to),
            None => seen,
        }
    }

    async fn uses_now(&self, seen: &Seen, pods: &[Pod], table: &MigTable) -> Option<Vec<GpuUse>> {
        let reports = self.reports().await.ok()?;
        let pods: Vec<&Pod> = pods.iter().collect();
        gpu_uses(reports.get(&seen.node)?, &pods, &seen.offers, table, now_ms()).ok()
    }

    /// A node as it is now, without the pods that are not in the way of its recorded change.
    pub(super) async fn seen(&self, node: &str, table: Option<&MigTable>) -> anyhow::Result<Seen> {
        let (seen, pods) = self.server.seen(node, table, &self.options.timing).await?;
        match seen.record.clone() {
            Some(record) => Ok(self.besides(seen, &pods, (&record.from, &record.to), table).await),
            None => Ok(seen),
        }
    }
}
