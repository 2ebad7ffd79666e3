//! Lines in.

use std::collections::BTreeMap;
use std::io::Read;

use dovetail_model::Money;
use dovetail_table::{Record, Style, Table, TableError};

use super::identity::Machines;
use super::layout::Layout;
use crate::amount::{micros, pico};

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
    /// Code of the currency, where the file says one.
    pub currency: Option<String>,
}

/// Machine time as billed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BillLine {
    /// Begin, in ms since 1970.
    pub from_ms: u64,
    /// End, exclusive.
    pub to_ms: u64,
    /// In 10⁻¹² of the currency.
    pico: i128,
}

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

impl BillLine {
    /// The cost of this many of its ms; rounded towards zero.
    fn pico_of(&self, inside_ms: u64) -> i128 {
        let (length, inside) = (i128::from(self.to_ms - self.from_ms), i128::from(inside_ms));
        // Parted first: a trillion over eight thousand years has more digits than the product can hold.
        self.pico / length * inside + self.pico % length * inside / length
    }
}

impl Bill {
    /// What a machine cost in a span of time: of a line that lies partly in it, its share of that time. `None`
    /// if no line touches the span.
    pub fn cost(&self, machine: usize, from_ms: u64, to_ms: u64) -> Option<Money> {
        let lines = self.of_machines.get(&machine)?;
        let mut sum: Option<i128> = None;
        for line in lines {
            let inside = line.to_ms.min(to_ms).saturating_sub(line.from_ms.max(from_ms));
            if inside > 0 {
                *sum.get_or_insert(0) += line.pico_of(inside);
            }
        }
        sum.map(|sum| Money::micros(micros(sum)))
    }

    /// What a machine cost on average for `span_ms` of the time it was billed for; `None` if it was not.
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
        let sum: i128 = lines.iter().map(|line| line.pico).sum();
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
        let pico = cells.cost(kind)?;
        if let Some(column) = layout.currency {
            let currency = cells.text(column);
            match &self.currency {
                Some(known) if known != currency => {
                    let problem = format!("{currency} beside {known}: split the file by currency");
                    return Err(cells.record.bad_cell(column, problem));
                }
                _ => self.currency = Some(currency.to_owned()),
            }
        }
        match machines.of(resource) {
            Some(machine) => {
                self.of_machines.entry(machine).or_default().push(BillLine {
                    from_ms,
                    to_ms,
                    pico,
                });
            }
            None => {
                let unmatched = self.unmatched.entry(resource.to_owned()).or_default();
                unmatched.0 += 1;
                unmatched.1 += pico;
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

    fn cost(&self, kind: Option<&str>) -> Result<i128, TableError> {
        let mut costs = self.layout.costs.iter();
        let fits = |cost: &&super::layout::Cost| {
            let of_kind = cost.kind.is_none() || cost.kind == kind;
            of_kind && !self.text(cost.column).is_empty()
        };
        let Some(cost) = costs.find(fits) else { return Ok(0) };
        let text = self.text(cost.column);
        pico(text).ok_or_else(|| {
            self.record.bad_cell(cost.column, format!("`{text}` is no amount such as 55.04"))
        })
    }
}
