//! Lines in.

use std::collections::BTreeMap;
use std::io::Read;

use dovetail_model::Money;
use dovetail_table::{Record, Style, Table, TableError};

use super::identity::Machines;
use super::layout::Layout;
use crate::amount::{PICO, micros, pico};
use crate::focus::Pricing;

/// What was billed for machines.
#[derive(Clone, Debug, Default)]
pub struct Bill {
    /// Lines by the number of their machine.
    pub of_machines: BTreeMap<usize, Vec<BillLine>>,
    /// Machine time of machines that nobody knows, by resource: how many lines, and their cost in 10⁻¹².
    unmatched: BTreeMap<String, (u64, i128)>,
    /// Lines read.
    pub lines: u64,
    /// Lines left out because they split another one.
    pub split_lines: u64,
    /// Lines that are no machine time: taxes, credits, purchases, fees.
    pub other_lines: u64,
    /// Lines of known machines of which the file does not say what they cost.
    pub unsaid: Unsaid,
    /// Code of the currency, where the file says one.
    pub currency: Option<String>,
}

/// Machine time of which a file does not say what it cost: nothing is written there, or a commitment covers it and the
/// file has only the invoice, on which the commitment is paid elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unsaid {
    /// How many lines.
    pub count: u64,
    /// Where the first of them stand in the file, at most [`MOST_UNSAID`].
    pub lines: Vec<u64>,
    /// What the first of them says it is.
    pub kind: String,
    /// How many more there are of machines that nobody knows.
    pub elsewhere: u64,
}

/// So many lines without a cost are listed.
pub const MOST_UNSAID: usize = 5;

/// Machine time as billed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BillLine {
    /// Begin, in ms since 1970.
    pub from_ms: u64,
    /// End, exclusive.
    pub to_ms: u64,
    /// In 10⁻¹² of the currency; `None` where the file does not say it.
    pico: Option<i128>,
    /// How the machine is bought, where the file says it.
    bought: Option<Pricing>,
}

/// More than any bill comes to, in 10⁻¹².
const MOST_PICO: i128 = 1_000_000_000_000 * PICO;

/// Reads a bill; `file` is its name in messages.
///
/// # Errors
/// Names file, line and column of the first cell that cannot be read.
pub fn read(input: impl Read, file: &str, machines: &Machines) -> Result<Bill, TableError> {
    let mut table = Table::open(input, file, Style::Export)?;
    let layout =
        Layout::of(|name| table.column(name)).map_err(|problem| table.bad_header(problem))?;
    let mut bill = Bill::default();
    while let Some(record) = table.next_record()? {
        bill.take(&Cells { layout: &layout, record }, machines)?;
    }
    Ok(bill)
}

impl Unsaid {
    fn note(&mut self, line: u64, kind: &str) {
        if self.count == 0 {
            self.kind = kind.to_owned();
        }
        if self.lines.len() < MOST_UNSAID {
            self.lines.push(line);
        }
        self.count += 1;
    }
}

impl BillLine {
    /// The cost of this many of its ms; rounded towards zero.
    fn pico_of(&self, inside_ms: u64) -> Option<i128> {
        let pico = self.pico?;
        let (length, inside) = (i128::from(self.to_ms - self.from_ms), i128::from(inside_ms));
        // Parted first: a trillion over eight thousand years has more digits than the product can hold.
        Some(pico / length * inside + pico % length * inside / length)
    }

    /// How much of it lies in a span of time.
    fn inside_ms(&self, from_ms: u64, to_ms: u64) -> u64 {
        self.to_ms.min(to_ms).saturating_sub(self.from_ms.max(from_ms))
    }
}

impl Bill {
    /// What a machine cost in a span of time: of a line that lies partly in it, its share of that time. `None`
    /// if no line touches the span, and if one does of which the file does not say what it cost.
    pub fn cost(&self, machine: usize, from_ms: u64, to_ms: u64) -> Option<Money> {
        let lines = self.of_machines.get(&machine)?.iter();
        let mut inside = lines.filter(|line| line.inside_ms(from_ms, to_ms) > 0).peekable();
        inside.peek()?;
        let costs = inside.map(|line| line.pico_of(line.inside_ms(from_ms, to_ms)));
        costs.sum::<Option<i128>>().map(|sum| Money::micros(micros(sum)))
    }

    /// What a machine cost on average for `span_ms` of the time it was billed for; `None` if it was not, and if the file
    /// does not say of all of it what it cost.
    pub fn run_rate(&self, machine: usize, span_ms: u64) -> Option<Money> {
        let lines = self.of_machines.get(&machine)?;
        // Lines of one hour (machine, licence, traffic) are one hour.
        let mut spans: Vec<(u64, u64)> = lines.iter().map(|l| (l.from_ms, l.to_ms)).collect();
        spans.sort_unstable();
        let (mut billed_ms, mut end_ms) = (0, 0);
        for (from_ms, to_ms) in spans {
            billed_ms += to_ms.saturating_sub(from_ms.max(end_ms));
            end_ms = end_ms.max(to_ms);
        }
        let sum: i128 = lines.iter().map(|line| line.pico).sum::<Option<i128>>()?;
        if billed_ms == 0 {
            return None;
        }
        let (billed_ms, span_ms) = (i128::from(billed_ms), i128::from(span_ms));
        // Beyond what any machine costs the order of the steps is what keeps it in its bits.
        let whole = sum.checked_mul(span_ms).map(|product| product / billed_ms);
        Some(Money::micros(micros(
            whole.unwrap_or_else(|| (sum / billed_ms).saturating_mul(span_ms)),
        )))
    }

    /// Whether the file leaves out what some of a machine's time cost.
    pub fn lacks_costs_of(&self, machine: usize) -> bool {
        let lines = self.of_machines.get(&machine);
        lines.is_some_and(|lines| lines.iter().any(|line| line.pico.is_none()))
    }

    /// How a machine is bought: what most of its billed time says; of as much time the committed. `None` where no line
    /// of it says anything.
    pub fn bought(&self, machine: usize) -> Option<Pricing> {
        let kinds = [Pricing::Standard, Pricing::Dynamic, Pricing::Committed];
        let lines = self.of_machines.get(&machine)?;
        let told = kinds.map(|kind| {
            let of_kind = lines.iter().filter(|line| line.bought == Some(kind));
            of_kind.map(|line| u128::from(line.to_ms - line.from_ms)).sum::<u128>()
        });
        let most = kinds.into_iter().zip(told).max_by_key(|(_, ms)| *ms)?;
        (most.1 > 0).then_some(most.0)
    }

    /// Turns all amounts into USD, at so many 10⁻¹² USD for one unit of the bill's currency, rounded towards zero.
    ///
    /// # Errors
    /// If a line comes to more than any bill.
    pub fn in_usd(mut self, usd_pico_per_unit: i128) -> Result<Self, String> {
        let usd = |pico: i128| {
            let whole = (pico / PICO).checked_mul(usd_pico_per_unit)?;
            let rest = (pico % PICO).checked_mul(usd_pico_per_unit)? / PICO;
            whole.checked_add(rest).filter(|usd| usd.abs() <= MOST_PICO)
        };
        let too_much = || "a line is above a trillion USD at this rate: check the rate".to_owned();
        for line in self.of_machines.values_mut().flatten() {
            line.pico = line.pico.map(|pico| usd(pico).ok_or_else(too_much)).transpose()?;
        }
        for (_, pico) in self.unmatched.values_mut() {
            *pico = usd(*pico).ok_or_else(too_much)?;
        }
        Ok(self)
    }

    /// Machine time of machines that nobody knows, dearest first: resource, lines, cost.
    pub fn unmatched(&self) -> Vec<(&str, u64, Money)> {
        let found = self.unmatched.iter();
        let found =
            found.map(|(id, (lines, pico))| (id.as_str(), *lines, Money::micros(micros(*pico))));
        let mut found: Vec<(&str, u64, Money)> = found.collect();
        found.sort_by_key(|(_, _, cost)| std::cmp::Reverse(*cost));
        found
    }

    fn take(&mut self, cells: &Cells<'_>, machines: &Machines) -> Result<(), TableError> {
        self.lines += 1;
        let layout = cells.layout;
        if layout.parent.is_some_and(|parent| !cells.text(parent).is_empty()) {
            self.split_lines += 1;
            return Ok(());
        }
        let kind = layout.kind.map(|kind| cells.text(kind));
        let resource = cells.text(layout.resource);
        if kind.is_some_and(|kind| !layout.usage.contains(&kind)) || resource.is_empty() {
            self.other_lines += 1;
            return Ok(());
        }
        let (from_ms, to_ms) = (cells.time(layout.from)?, cells.time(layout.to)?);
        if to_ms <= from_ms {
            return Err(cells.record.bad_cell(layout.to, "it ends before it begins"));
        }
        let bought = cells.bought(kind);
        let pico = cells.cost(kind, bought)?;
        if let Some(column) = layout.currency {
            let currency = cells.text(column);
            match &self.currency {
                Some(known) if known != currency => {
                    let problem = format!("{currency} beside {known}: split the file by currency");
                    return Err(cells.record.bad_cell(column, problem));
                }
                _ if currency.is_empty() => {
                    let problem = "empty: say in what the line is, such as USD";
                    return Err(cells.record.bad_cell(column, problem));
                }
                _ => self.currency = Some(currency.to_owned()),
            }
        }
        match machines.of(resource) {
            Some(machine) => {
                if pico.is_none() {
                    self.unsaid.note(cells.record.line(), kind.unwrap_or_default());
                }
                self.of_machines.entry(machine).or_default().push(BillLine {
                    from_ms,
                    to_ms,
                    pico,
                    bought,
                });
            }
            None => {
                let unmatched = self.unmatched.entry(resource.to_owned()).or_default();
                unmatched.0 += 1;
                unmatched.1 += pico.unwrap_or(0);
                self.unsaid.elsewhere += u64::from(pico.is_none());
            }
        }
        Ok(())
    }
}

/// One line by column.
struct Cells<'c> {
    layout: &'c Layout,
    record: Record<'c>,
}

impl<'c> Cells<'c> {
    fn text(&self, column: usize) -> &'c str {
        self.record.text(column)
    }

    fn time(&self, column: usize) -> Result<u64, TableError> {
        let text = self.text(column);
        // Reports of Athena write a blank and no zone.
        let iso = match text.split_once(' ') {
            Some((day, time)) => format!("{day}T{}Z", time.trim_end_matches('Z')),
            None => text.to_owned(),
        };
        let ms = iso.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_millisecond);
        let ms = ms.and_then(|ms| u64::try_from(ms).ok());
        ms.ok_or_else(|| {
            self.record
                .bad_cell(column, format!("`{text}` is no time such as 2026-11-20T10:00:00Z"))
        })
    }

    /// How the machine of a line is bought, as far as it says.
    fn bought(&self, kind: Option<&str>) -> Option<Pricing> {
        let layout = self.layout;
        let says =
            |column: Option<usize>| column.map(|column| self.text(column)).unwrap_or_default();
        if kind.is_some_and(|kind| layout.covered.contains(&kind))
            || !says(layout.commitment).is_empty()
        {
            return Some(Pricing::Committed);
        }
        match says(layout.bought) {
            "Standard" | "OnDemand" => Some(Pricing::Standard),
            "Dynamic" | "Spot" => Some(Pricing::Dynamic),
            "Committed" | "Reserved" => Some(Pricing::Committed),
            _ => None,
        }
    }

    /// What a line cost; `None` where the file does not say it.
    fn cost(
        &self,
        kind: Option<&str>,
        bought: Option<Pricing>,
    ) -> Result<Option<i128>, TableError> {
        let layout = self.layout;
        let is_covered = kind.is_some_and(|kind| layout.covered.contains(&kind));
        let mut costs = layout.costs.iter();
        let fits = |cost: &&super::layout::Cost| {
            // What the invoice has for time that a commitment covers is not what it cost.
            let of_kind = if is_covered { cost.kind == kind } else { cost.kind.is_none() };
            of_kind && !self.text(cost.column).is_empty()
        };
        let Some(cost) = costs.find(fits) else { return Ok(None) };
        let text = self.text(cost.column);
        let pico = pico(text).ok_or_else(|| {
            self.record.bad_cell(cost.column, format!("`{text}` is no amount such as 55.04"))
        })?;
        let is_paid_elsewhere =
            layout.is_invoiced && bought == Some(Pricing::Committed) && pico == 0;
        Ok((!is_paid_elsewhere).then_some(pico))
    }
}
