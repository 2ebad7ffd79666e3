//! What an audit reports to people, in sentences: the headline, what it rests on, and what fixing a
//! finding brings.

use std::collections::BTreeSet;

use dovetail_console::plain::plain;
use dovetail_console::table::counted;
use dovetail_costing::document::LEAST_HOURS;
use dovetail_inventory::facts::OTHER_PODS;
use dovetail_sources::doubts::OTHER_NAMES;
use dovetail_units::amount::{percent, rounded, rounded_usd, tenths, usd, whole};
use dovetail_units::duration::duration_of_seconds;

pub use super::baseline::object_words;
use super::document::{Document, FindingOut, MethodOut, StateOut, UnseenOut};
use super::figures::{FigureOut, sign_of_more};

/// Models that the headline names.
const MOST_MODELS: usize = 3;

/// A figure in dollars with its range over split methods, or in GPU-hours without a price.
fn figure_words(figure: &FigureOut) -> String {
    let Some(micros) = figure.usd_micros_per_month else {
        return format!("{} GPU-hours", rounded(figure.gpu_hours_per_month));
    };
    let amount = format!("about {}", rounded_usd(micros));
    match (&figure.lowest, &figure.highest) {
        (Some(low), Some(high)) if low.usd_micros_per_month != high.usd_micros_per_month => {
            let (low, high) = (low.usd_micros_per_month, high.usd_micros_per_month);
            format!("{amount} ({} to {})", rounded_usd(low), rounded_usd(high))
        }
        _ => amount,
    }
}

/// Where nothing is known of the use of GPUs, and none is free.
fn none_is_free(document: &Document) -> String {
    let unavailable = document.states.iter().filter(|state| state.state == "unavailable");
    let unavailable: f64 = unavailable.map(|state| state.gpus).sum();
    match unavailable {
        0.0 if document.hides_free_gpus() => {
            "None is known to be free, and whether pods use all of them is unknown.".to_owned()
        }
        0.0 => "All are allocated. Whether they are busy was not measured.".to_owned(),
        1.0 => format!("None is free, and 1 is unavailable. {UNMEASURED}"),
        gpus => format!("None is free, and {} are unavailable. {UNMEASURED}", count(gpus)),
    }
}

impl Document {
    /// The headline: what is paid, what of it is wasted, and what was not measured.
    pub fn first_line(&self) -> String {
        self.headline_words("")
    }

    /// The headline of a page, which tells the share of the GPU time that is wasted too: it says
    /// that its own share is one of the bill.
    pub fn first_line_of_page(&self) -> String {
        self.headline_words(" of the bill")
    }

    /// The same in whole sentences where a shorter text is wanted: without what the sentence about
    /// the bill says too, then without what is missing data, until it fits.
    pub fn short_first_line(&self, fits: impl Fn(&str) -> bool) -> String {
        if self.headline.installed_gpus == 0.0 {
            return self.first_line();
        }
        let [paid, waste, unpriced, unread] = self.headline_sentences("");
        let shortest = paid + &waste;
        let (without_amounts, full) =
            (shortest.clone() + &unread, shortest.clone() + &unpriced + &unread);
        [full, without_amounts].into_iter().find(|text| fits(text)).unwrap_or(shortest)
    }

    /// `of` follows the share of the bill.
    fn headline_words(&self, of: &str) -> String {
        match self.headline.installed_gpus {
            0.0 => self.without_gpus(),
            _ => self.headline_sentences(of).concat(),
        }
    }

    /// The headline of a cluster without GPUs.
    fn without_gpus(&self) -> String {
        let head = &self.headline;
        let unread = self.unread_objects().map(|unread| format!(", and {unread}"));
        let elsewhere = (head.gpus_not_included > 0.0).then(|| {
            format!(
                ", and pods use {} of nodes that were not read or list none",
                gpu_count(head.gpus_not_included)
            )
        });
        let renamed =
            self.other_names().map(|names| format!(", but nodes may offer GPUs as{names}"));
        let pending = (head.pending_gpu_pods > 0).then(|| {
            let verb = if head.pending_gpu_pods == 1 { "is" } else { "are" };
            let pods = counted(head.pending_gpu_pods, "pod");
            format!(", and {pods} with GPU requests {verb} pending")
        });
        let known: Vec<String> =
            [renamed, unread, elsewhere, pending].into_iter().flatten().collect();
        let end = if known.is_empty() {
            "nothing to audit; if nodes have GPUs, check that their device plugin or DRA driver runs."
        } else {
            "whether GPUs are wasted is unknown."
        };
        format!("No node has allocatable GPUs{}: {end}", known.concat())
    }

    /// Resources that may be GPUs and are not counted, with the nodes that offer them and the space
    /// before them.
    fn other_names(&self) -> Option<&str> {
        self.unseen
            .iter()
            .find_map(|unseen| unseen.what.strip_prefix(OTHER_NAMES)?.strip_prefix(':'))
    }

    /// What is paid, what of it is wasted, how much has no price, and what was not read; all but
    /// the first with the space before it, and the last two empty where there is nothing to say.
    fn headline_sentences(&self, of: &str) -> [String; 4] {
        let head = &self.headline;
        let gpus = gpu_count(head.installed_gpus);
        let which = if head.installed_gpus == 1.0 {
            "its price is unknown"
        } else {
            "their prices are unknown"
        };
        let paid = match head.bill_usd_micros_per_month.filter(|bill| *bill > 0) {
            Some(bill) => {
                // Without the noise of shares.
                let priced = (head.installed_gpus * head.priced_share * 1e3).round() / 1e3;
                let of_all = match self.is_partly_unpriced() {
                    true => {
                        let others = format!("the others{}", self.unpriced_models());
                        format!("{} of {gpus}; {others} have no known price", count(priced))
                    }
                    false => gpus,
                };
                format!("You pay about {} a month for {of_all}.", rounded_usd(bill))
            }
            None => format!("The cluster has {gpus}; {which}."),
        };
        let unknown = match head.gpus_not_included {
            0.0 => String::new(),
            1.0 => " 1 more GPU is not included in any figure because its node or pod was not \
                 read, or the node lists no GPU."
                .to_owned(),
            gpus => format!(
                " {} more are not included in any figure because their nodes or pods were not \
                 read, or the nodes list no GPUs.",
                gpu_count(gpus)
            ),
        };
        let waste = format!(" {}", self.waste_sentence(of));
        [paid, waste, self.unpriced_sentence(), unknown]
    }

    /// Whether what allocated GPUs do was not measured at all: then only allocation is known, and
    /// no figure of waste is one of the whole cluster.
    pub fn is_unmeasured(&self) -> bool {
        self.measured.is_none() && self.headline.blind_share > 0.0
    }

    /// GPUs that are free, what they cost a month, and of how many that is: what is too recent has
    /// no amount of a month. A GPU that is unavailable may have its pod.
    pub fn unallocated(&self) -> (f64, Option<i64>, f64) {
        let free = || self.states.iter().filter(|state| state.state.starts_with("free"));
        let micros = free().filter_map(|state| state.usd_micros_per_month);
        let micros = micros.reduce(|sum, micros| sum + micros);
        let sum = |gpus: fn(&StateOut) -> f64| free().map(gpus).sum();
        (sum(|state| state.gpus), micros, sum(|state| state.lasting_gpus))
    }

    /// Whether no pods were read: then every GPU looks free, and none may be called so.
    pub fn lacks_pods(&self) -> bool {
        self.unseen.iter().any(|unseen| unseen.what == "pods")
    }

    /// Whether some GPUs of nodes that were read may be free or not, for all that is known.
    pub fn hides_free_gpus(&self) -> bool {
        self.unseen.iter().any(UnseenOut::hides_free_gpus)
    }

    /// Whether pods of one namespace alone were read: then GPUs of others look free.
    pub fn lacks_other_pods(&self) -> bool {
        self.unseen.iter().any(|unseen| unseen.what == OTHER_PODS)
    }

    fn waste_sentence(&self, of: &str) -> String {
        if self.lacks_pods() {
            let text = "The input has no pods, so which GPUs are allocated is unknown.";
            return text.to_owned();
        }
        if self.lacks_other_pods() {
            return self.unread_namespaces_sentence();
        }
        let head = &self.headline;
        let share = percent(head.waste_share);
        let unmeasured = percent(head.blind_share);
        if self.is_unmeasured() {
            let (gpus, micros, of_gpus) = self.unallocated();
            let is_priced = head.bill_usd_micros_per_month.is_some_and(|bill| bill > 0);
            let cost = micros.filter(|micros| is_priced && *micros > 0);
            let of_them = match (gpus - of_gpus).abs() < 0.001 {
                true => String::new(),
                false => format!("{} of them ", count(of_gpus)),
            };
            let cost = cost.map(|cost| format!(", {of_them}about {} a month", rounded_usd(cost)));
            let cost = cost.unwrap_or_default();
            // The bill names a part of the GPUs, which need not be the part that is free.
            let of_all = match self.is_partly_unpriced() {
                true => format!(" of all {}", gpu_count(head.installed_gpus)),
                false => String::new(),
            };
            return match gpus {
                // What could not be read may be a pod that holds none.
                0.0 if self.skipped_objects > 0 => {
                    "None is known to be free, and some objects could not be read. Whether GPUs are busy was not \
                     measured."
                        .to_owned()
                }
                0.0 => none_is_free(self),
                1.0 => format!("1{of_all} is allocated to no pod{cost}. {UNMEASURED}"),
                _ => format!("{}{of_all} are allocated to no pod{cost}. {UNMEASURED}", count(gpus)),
            };
        }
        let too_recent = percent(head.too_recent_share);
        let rest = match (head.blind_share > 0.0, head.too_recent_share > 0.0) {
            (true, true) => format!(
                "; {unmeasured} of the GPU time is unmeasured, {too_recent} too recent or temporary."
            ),
            (true, false) => format!("; {unmeasured} of the GPU time could not be measured."),
            (false, true) => {
                format!("; {too_recent} of the GPU time is too recent or temporary.")
            }
            (false, false) => ".".to_owned(),
        };
        // $0.00 a month beside what was wasted so far would look like a contradiction.
        if head.waste_share <= 0.0 && head.waste_gpu_hours_so_far >= LEAST_HOURS {
            return format!("No waste can be extrapolated to a month{rest}");
        }
        match (head.waste_usd_micros_per_month, head.bill_usd_micros_per_month) {
            (Some(waste), Some(bill)) if bill > 0 => {
                let of_bill = percent(waste as f64 / bill as f64) + of + &self.range();
                format!("About {} ({of_bill}) is wasted{rest}", rounded_usd(waste))
            }
            _ => format!("{share} of the GPU time is wasted{rest}"),
        }
    }

    /// Installed GPUs that pods may have that were not read.
    pub fn perhaps_allocated(&self) -> f64 {
        self.headline.unknown_gpus - self.headline.gpus_not_included
    }

    /// What is unknown where pods of one namespace alone were read, and what would show it.
    fn unread_namespaces_sentence(&self) -> String {
        let unknown = match self.perhaps_allocated() {
            0.0 => "which GPUs are free".to_owned(),
            1.0 => "whether 1 GPU is allocated or free".to_owned(),
            gpus => format!("whether {} are allocated or free", gpu_count(gpus)),
        };
        format!(
            "All pods of the input are in one namespace, so {unknown} is unknown: add the pods and service accounts of \
             all namespaces (kubectl get pods,serviceaccounts -A)."
        )
    }

    /// Which figures are those of the whole cluster, where findings of one namespace are shown.
    fn scope_sentence(&self) -> Option<String> {
        let namespace = self.namespace.as_ref()?;
        Some(format!(
            "These figures and the GPUs by state cover the whole cluster; the findings are those of namespace \
             {namespace}."
        ))
    }

    /// What follows the word "findings" where those of one namespace are shown.
    pub fn in_namespace(&self) -> String {
        let words = |namespace: &String| format!(" in namespace {namespace}");
        self.namespace.as_ref().map(words).unwrap_or_default()
    }

    /// The waste over split methods, where they differ.
    fn range(&self) -> String {
        let (Some(low), Some(high)) = (&self.headline.lowest, &self.headline.highest) else {
            return String::new();
        };
        let amount = |method: &MethodOut| rounded_usd(method.waste_usd_micros_per_month);
        format!("; {} to {} depending on the split method", amount(low), amount(high))
    }

    /// Whether amounts leave out GPUs.
    fn is_partly_unpriced(&self) -> bool {
        let head = &self.headline;
        let is_priced = head.bill_usd_micros_per_month.is_some_and(|bill| bill > 0);
        is_priced && head.unpriced_gpu_hours_per_month >= LEAST_HOURS
    }

    /// The models of GPUs without a price, in parentheses, and how many are of unknown model.
    fn unpriced_models(&self) -> String {
        let lines = || self.prices.iter().filter(|line| line.usd_micros_per_gpu_hour.is_none());
        let models: BTreeSet<String> =
            lines().filter_map(|line| line.model.as_deref()).map(plain).collect();
        let unknown: i64 = lines().filter(|line| line.model.is_none()).map(|line| line.gpus).sum();
        let unknown = (unknown > 0).then(|| format!("{unknown} of unknown model"));
        let models: Vec<String> = models.into_iter().chain(unknown).collect();
        let first: Vec<&str> = models.iter().take(MOST_MODELS).map(String::as_str).collect();
        match (first.is_empty(), models.len() - first.len()) {
            (true, _) => String::new(),
            (false, 0) => format!(" ({})", first.join(", ")),
            (false, more) => format!(" ({} and {more} more)", first.join(", ")),
        }
    }

    fn unpriced_sentence(&self) -> String {
        let head = &self.headline;
        match self.is_partly_unpriced() {
            true => format!(
                " Amounts leave out {} GPU-hours a month ({} of all), which have no price.",
                rounded(head.unpriced_gpu_hours_per_month),
                percent(1.0 - head.priced_share)
            ),
            false => String::new(),
        }
    }

    /// How to set a price, where no GPU has one.
    pub fn missing_price(&self) -> Option<String> {
        let flag = self.price_flag.as_ref()?;
        Some(format!("To see costs, set a price per GPU-hour: --gpu-price {flag}=USD."))
    }

    /// The waste in micro-dollars a month; `None` where no price is known.
    pub fn waste_usd_micros(&self) -> Option<i64> {
        let head = &self.headline;
        let is_priced = head.bill_usd_micros_per_month.is_some_and(|bill| bill > 0);
        head.waste_usd_micros_per_month.filter(|_| is_priced)
    }

    /// What fixes bring, what no finding explains, and what was wasted so far.
    pub fn outlook(&self) -> Option<String> {
        if self.lacks_pods() || self.lacks_other_pods() {
            return self.scope_sentence();
        }
        let head = &self.headline;
        let (returned, freed) = (&head.returned, &head.freed);
        let mut sentences = Vec::new();
        if returned.gpu_hours_per_month + freed.gpu_hours_per_month >= LEAST_HOURS {
            let money = self.returned_words();
            let hours = rounded(freed.gpu_hours_per_month);
            sentences.push(match freed.gpu_hours_per_month >= LEAST_HOURS {
                true => {
                    format!("Fixes {money}; they free {hours} GPU-hours a month for other work.")
                }
                false => format!("Fixes {money}."),
            });
        }
        if head.unexplained.gpu_hours_per_month >= LEAST_HOURS {
            let waste = figure_words(&head.unexplained);
            sentences.push(format!("No finding explains {waste} a month."));
        }
        if head.waste_gpu_hours_so_far >= LEAST_HOURS {
            let waste = match head.waste_usd_micros_so_far {
                Some(micros) => rounded_usd(micros),
                None => format!("{} GPU-hours", rounded(head.waste_gpu_hours_so_far)),
            };
            sentences.push(format!(
                "States too recent or temporary to extrapolate have wasted {waste} so far."
            ));
        }
        if head.estimated_gpus > 0.0 {
            let gpus = gpu_count(head.estimated_gpus);
            sentences.push(format!("The price of {gpus} is an estimate."));
        }
        sentences.extend(self.scope_sentence());
        (!sentences.is_empty()).then(|| sentences.join(" "))
    }

    /// What fixes bring at once: a smaller bill, or GPUs already paid for to pending pods.
    fn returned_words(&self) -> String {
        let returned = &self.headline.returned;
        if returned.gpu_hours_per_month < LEAST_HOURS {
            return "do not lower the bill by themselves".to_owned();
        }
        let all = figure_words(returned);
        let removed_hours = self.headline.removed_gpu_hours_per_month;
        let filled_hours = returned.gpu_hours_per_month - removed_hours;
        let pending = |amount: &str| {
            format!("let pending pods use {amount} a month of GPUs that you already pay for")
        };
        let nodes =
            |hours: f64| format!("let you remove nodes with {} GPU-hours a month", rounded(hours));
        let removed = self.headline.removed_usd_micros_per_month;
        match (removed_hours >= LEAST_HOURS, filled_hours >= LEAST_HOURS) {
            (false, _) => pending(&all),
            (true, false) if returned.usd_micros_per_month.is_none() => nodes(removed_hours),
            (true, false) => format!("lower the bill by {all} a month"),
            (true, true) => {
                let filled = returned.usd_micros_per_month.map(|all| all - removed.unwrap_or(0));
                match (removed, filled.filter(|filled| *filled > 0)) {
                    (Some(removed), Some(filled)) => format!(
                        "are worth {all} a month: {} less on the bill, {} of GPUs that pending pods then use",
                        rounded_usd(removed),
                        rounded_usd(filled)
                    ),
                    (removed, filled) => {
                        let hours = || format!("{} GPU-hours", rounded(filled_hours));
                        let filled = filled.map_or_else(hours, rounded_usd);
                        let removed = removed.map_or_else(
                            || nodes(removed_hours),
                            |removed| {
                                format!("lower the bill by about {} a month", rounded_usd(removed))
                            },
                        );
                        format!("{removed} and {}", pending(&filled))
                    }
                }
            }
        }
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
                " GPU use was measured over {} until {}.",
                duration_of_seconds(3_600.0 * measured.hours),
                measured.until
            ),
        };
        let set: Vec<String> =
            self.thresholds.iter().map(|of| format!("{} = {}", of.name, of.value)).collect();
        let set = match set.is_empty() {
            true => String::new(),
            false => format!(" Thresholds that you set: {}.", set.join(", ")),
        };
        format!(
            "Snapshot of {}, extrapolated to {} days, at list prices; split method {}.{measured} GPU time \
             that was not measured is not counted as waste.{set}",
            self.taken_at, self.month_days, self.headline.method
        )
    }
}

const UNMEASURED: &str = "Whether the others are busy was not measured.";

fn gpu_count(gpus: f64) -> String {
    if gpus == 1.0 { "1 GPU".to_owned() } else { format!("{} GPUs", count(gpus)) }
}

/// Whole where it is, else with one digit behind the point.
fn count(gpus: f64) -> String {
    if gpus.fract() == 0.0 { whole(gpus) } else { tenths(gpus) }
}

/// Whether an example of a fix is a command for a shell, and no edit of an object.
fn is_command(example: &str) -> bool {
    let program = example.split(' ').next().unwrap_or_default();
    ["kubectl", "dovetail", "gcloud", "az", "aws"].contains(&program)
}

impl FindingOut {
    /// What is edited to fix it, and how: by the patches that follow, else by an example.
    pub fn fix_words(&self) -> String {
        let edits = self.fix.edits;
        match (self.patches.len(), self.patched_with) {
            (0, Some(check)) => {
                format!("fix: the patch of {check} for this object also fixes this finding")
            }
            (0, None) => match is_command(&self.fix.example) {
                true => format!("fix: run, for example: {}", self.fix.example),
                false => format!("fix: edit the {edits}, for example: {}", self.fix.example),
            },
            (1, _) if self.patches[0].form == "command" => "fix: run this command".to_owned(),
            (1, _) => format!("fix: edit the {edits} with this patch"),
            _ => format!("fix: edit the {edits} with these patches"),
        }
    }

    /// The object as people write it.
    pub fn object_words(&self) -> String {
        object_words(&self.object)
    }

    /// What it claims, exactly: a month's dollars, or those so far, or GPU-hours without a price;
    /// `None` for a risk.
    pub fn worth_words(&self) -> Option<String> {
        let hours = self.gpu_hours_per_month.unwrap_or(0.0);
        match (self.usd_micros_per_month, self.usd_micros_so_far) {
            (Some(micros), _) => {
                let sign = sign_of_more(self.unpriced_gpu_hours_per_month);
                Some(format!("{sign}{} a month", usd(Some(micros))))
            }
            (None, _) if hours > 0.0 => Some(format!("{} GPU-hours a month", tenths(hours))),
            (None, Some(micros)) => Some(format!("{} so far", usd(Some(micros)))),
            (None, None) if self.gpu_hours_so_far > 0.0 => {
                Some(format!("{} GPU-hours so far", tenths(self.gpu_hours_so_far)))
            }
            (None, None) => None,
        }
    }
}
