//! What is left after each layer of findings.

use dovetail_facts::PricedTime;

use super::PricedFinding;
use crate::catalogue::Layer;

/// The cluster after all findings of a layer, and of those before it, are mended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rung {
    /// The layer; `None` is the cluster as it is.
    pub layer: Option<Layer>,
    /// Findings of the layer, those that somebody ignores included.
    pub findings: usize,
    pub claimed: PricedTime,
    /// Waste that is left.
    pub waste: PricedTime,
    /// Time of GPUs that are still paid.
    pub paid_gpu_milli_ms: i128,
    /// The part of it that somebody holds.
    pub allocated_gpu_milli_ms: i128,
}

const LAYERS: [Layer; 6] = [
    Layer::Guard,
    Layer::RightSize,
    Layer::Share,
    Layer::Schedule,
    Layer::ScaleToZero,
    Layer::SpotAndRegion,
];

/// From the cluster as it is down to the last layer that has findings.
pub(super) fn ladder(
    installed: PricedTime,
    waste: PricedTime,
    allocated_gpu_milli_ms: i128,
    findings: &[PricedFinding],
) -> Vec<Rung> {
    let mut rung = Rung {
        layer: None,
        findings: 0,
        claimed: PricedTime::default(),
        waste,
        paid_gpu_milli_ms: installed.gpu_milli_ms,
        allocated_gpu_milli_ms,
    };
    let mut rungs = vec![rung];
    for layer in LAYERS {
        let of_layer = findings.iter().filter(|priced| priced.finding.check.layer == layer);
        rung = Rung { layer: Some(layer), findings: 0, claimed: PricedTime::default(), ..rung };
        for priced in of_layer {
            let claimed = priced.settled.claimed;
            rung.findings += 1;
            rung.claimed = rung.claimed + claimed;
            rung.waste = rung.waste - claimed;
            // A node that goes is not paid, and nobody holds it. Waiting work takes what is free;
            // what was held stays held, by somebody else. All other time can only be used better.
            let brought = priced.brought;
            rung.paid_gpu_milli_ms -= brought.gone_gpu_milli_ms;
            rung.allocated_gpu_milli_ms += brought.filled_gpu_milli_ms - brought.left_gpu_milli_ms;
        }
        if rung.findings > 0 {
            rungs.push(rung);
        }
    }
    rungs
}
