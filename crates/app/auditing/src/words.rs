//! What an audit reports to people, in sentences: the headline, what it rests on, and what fixing a
//! finding brings.

use dovetail_audit::{Brought, FixKind, Layer, PricedTime, Severity, Worth};
use dovetail_console::table::counted;
use dovetail_units::amount::{percent, rounded, rounded_usd, tenths, usd};

use super::baseline::Object;
use super::document::{Document, FindingOut, MethodOut, StateOut, hours, micros};

impl Document {
    /// The headline: what is paid, what of it is wasted, and what was not measured.
    pub fn first_line(&self) -> String {
        let head = &self.headline;
        if head.installed_gpus == 0.0 {
            let unread = self.unread_objects().map(|unread| format!(", and {unread}"));
            let end = if unread.is_some() {
                "whether GPUs are wasted is unknown"
            } else {
                "there is nothing to audit"
            };
            return format!("No node offers GPUs{}: {end}.", unread.unwrap_or_default());
        }
        let gpus = gpu_count(head.installed_gpus);
        let paid = match head.bill_usd_micros_per_month.filter(|bill| *bill > 0) {
            Some(bill) => format!("You pay about {} a month for {gpus}.", rounded_usd(bill)),
            None => format!("The cluster has {gpus}, and the price of none of them is known."),
        };
        format!("{paid} {}{}", self.waste_sentence(), self.unpriced_sentence())
    }

    /// Whether what allocated GPUs do was not measured at all: then only allocation is known, and
    /// no figure of waste is one of the whole cluster.
    pub fn is_unmeasured(&self) -> bool {
        self.measured.is_none() && self.headline.blind_share > 0.0
    }

    /// GPUs that no pod has, and what they cost a month.
    pub fn unallocated(&self) -> (f64, Option<i64>) {
        let is_free =
            |state: &&StateOut| state.state.starts_with("free") || state.state == "unavailable";
        let free = || self.states.iter().filter(is_free);
        let micros = free().map(|state| state.usd_micros_per_month).sum();
        (free().map(|state| state.gpus).sum(), micros)
    }

    fn waste_sentence(&self) -> String {
        let head = &self.headline;
        let share = percent(head.waste_share);
        let unmeasured = percent(head.blind_share);
        if self.is_unmeasured() {
            let (gpus, micros) = self.unallocated();
            let is_priced = head.bill_usd_micros_per_month.is_some_and(|bill| bill > 0);
            let cost = micros.filter(|micros| is_priced && *micros > 0);
            let cost = cost.map(|cost| format!(", about {} a month", rounded_usd(cost)));
            let cost = cost.unwrap_or_default();
            return match gpus > 0.0 {
                true => format!(
                    "{} of them are allocated to no pod{cost}. Whether the others are busy was not measured.",
                    tenths(gpus)
                ),
                false => "All are allocated. Whether they are busy was not measured.".to_owned(),
            };
        }
        let rest = match head.blind_share > 0.0 {
            true => format!("; {unmeasured} of the GPU-time could not be measured."),
            false => ".".to_owned(),
        };
        match (head.waste_usd_micros_per_month, head.bill_usd_micros_per_month) {
            (Some(waste), Some(bill)) if bill > 0 => {
                let of_bill = percent(waste as f64 / bill as f64);
                format!("About {} ({of_bill}{}) is wasted{rest}", rounded_usd(waste), self.range())
            }
            _ => format!("{share} of the GPU-time is wasted{rest}"),
        }
    }

    /// The waste over split methods, where they differ.
    fn range(&self) -> String {
        let (Some(low), Some(high)) = (&self.headline.lowest, &self.headline.highest) else {
            return String::new();
        };
        let amount = |method: &MethodOut| rounded_usd(method.waste_usd_micros_per_month);
        format!("; {} to {} by split method", amount(low), amount(high))
    }

    fn unpriced_sentence(&self) -> String {
        let head = &self.headline;
        match head.waste_usd_micros_per_month.is_some() && head.priced_share < 1.0 {
            true => format!(" {} of the GPU-time has no price.", percent(1.0 - head.priced_share)),
            false => String::new(),
        }
    }

    /// The waste in micro-dollars a month; `None` where no price is known.
    pub fn waste_usd_micros(&self) -> Option<i64> {
        let head = &self.headline;
        let is_priced = head.bill_usd_micros_per_month.is_some_and(|bill| bill > 0);
        head.waste_usd_micros_per_month.filter(|_| is_priced)
    }

    /// What fixes bring, and what no finding explains.
    pub fn outlook(&self) -> Option<String> {
        let open = || self.findings.iter().filter(|finding| finding.suppressed.is_none());
        let returned: i64 =
            open().filter_map(|finding| finding.returned_usd_micros_per_month).sum();
        let claimed: i64 = open().filter_map(|finding| finding.usd_micros_per_month).sum();
        let freed: f64 = open().filter_map(|finding| finding.gpu_hours_per_month).sum();
        let unexplained = self.unexplained_waste_gpu_hours_per_month;
        let rest = match unexplained < 0.05 {
            true => String::new(),
            false => {
                format!("No finding explains {} wasted GPU-hours a month.", rounded(unexplained))
            }
        };
        if freed < 0.05 {
            return (!rest.is_empty()).then_some(rest);
        }
        let money = match (returned > 0, claimed > 0) {
            (true, _) => format!("return about {} a month and ", rounded_usd(returned)),
            (false, true) => "return no money by themselves and ".to_owned(),
            (false, false) => String::new(),
        };
        let freed = rounded(freed);
        let text = format!("Fixes {money}free {freed} GPU-hours a month for other work. {rest}");
        Some(text.trim_end().to_owned())
    }

    /// How many objects could not be read; `None` where all were.
    pub fn unread_objects(&self) -> Option<String> {
        let count = usize::try_from(self.skipped_objects).unwrap_or(usize::MAX);
        (count > 0).then(|| format!("{} could not be read", counted(count, "object")))
    }

    /// What the figures rest on.
    pub fn second_line(&self) -> String {
        let measured = match &self.measured {
            None => String::new(),
            Some(measured) => format!(
                " GPU use is that of the {:.0} hours until {}.",
                measured.hours, measured.until
            ),
        };
        let set: Vec<String> =
            self.thresholds.iter().map(|of| format!("{} = {}", of.name, of.value)).collect();
        let set = match set.is_empty() {
            true => String::new(),
            false => format!(" Thresholds that you set: {}.", set.join(", ")),
        };
        format!(
            "Snapshot of {}, extended to {} days, at list prices; split method {}.{measured} GPU-time \
             that was not measured is in no waste.{set}",
            self.taken_at, self.month_days, self.headline.method
        )
    }
}

fn gpu_count(gpus: f64) -> String {
    match gpus.fract() == 0.0 {
        true => counted(gpus as usize, "GPU"),
        false => format!("{gpus:.1} GPUs"),
    }
}

impl FindingOut {
    /// What is edited to fix it, and how: by the patches that follow, else by an example.
    pub fn fix_words(&self) -> String {
        let edits = self.fix.edits;
        match (self.patches.len(), self.patched_with) {
            (0, Some(check)) => format!("fix: the patch of {check} for this object fixes it too"),
            (0, None) => format!("fix: edit the {edits}, for example: {}", self.fix.example),
            (1, _) => format!("fix: edit the {edits} with this patch"),
            _ => format!("fix: edit the {edits} with these patches"),
        }
    }

    /// The object as people write it.
    pub fn object_words(&self) -> String {
        object_words(&self.object)
    }
}

/// An object as people write it.
pub fn object_words(object: &Object) -> String {
    let slash = if object.namespace.is_empty() { "" } else { "/" };
    format!("{} {}{slash}{}", object.kind, object.namespace, object.name).trim_end().to_owned()
}

/// The word for a severity.
pub fn severity_words(severity: Severity) -> &'static str {
    match severity {
        Severity::Info => "info",
        Severity::Warning => "warning",
        Severity::Error => "error",
    }
}

/// What fixing a finding brings, and how much of it at once where that is not all.
pub(crate) fn brings_words(brought: &Brought, claimed: PricedTime) -> String {
    let words = worth_words(brought.worth);
    let returned = brought.returned;
    if brought.worth != Worth::Returned || returned.gpu_milli_ms == claimed.gpu_milli_ms {
        return words.to_owned();
    }
    let part = match micros(returned) {
        Some(micros) => usd(Some(micros)),
        None => format!("{:.1} GPU-hours", hours(returned.gpu_milli_ms)),
    };
    format!("{words} ({part} of it a month); the rest {}", worth_words(Worth::Capacity))
}

/// What fixing brings.
pub fn worth_words(worth: Worth) -> &'static str {
    match worth {
        Worth::Returned => "saves money now: a node can be removed, or pending work fits",
        Worth::Capacity => "frees GPU-hours: saves money only if other work uses them",
        Worth::Risk => "reduces risk, which has no price",
    }
}

/// What is edited.
pub(crate) fn fix_words(fix: FixKind) -> &'static str {
    match fix {
        FixKind::OwnerTemplate => "template of the owner",
        FixKind::NodePool => "node pool",
        FixKind::Namespace => "namespace",
        FixKind::Budget => "disruption budget",
        FixKind::Autoscaler => "autoscaler of the workload",
        FixKind::Scheduler => "configuration of the scheduler",
        FixKind::ClusterPolicy => "policies of the cluster",
    }
}

/// The name of a layer.
pub(crate) fn layer_words(layer: Layer) -> &'static str {
    match layer {
        Layer::Guard => "guard",
        Layer::RightSize => "right-size",
        Layer::Share => "share",
        Layer::Schedule => "schedule",
        Layer::ScaleToZero => "scale to zero",
        Layer::SpotAndRegion => "spot and region",
    }
}
