//! Lines in.

use std::cell::RefCell;
use std::io::Read;

use dovetail_table::{CsvRecord, Style, Table, TableError};

use super::bill::{Bill, BillLine, COSTS, Commitment};
use super::identity::BilledMachines;
use super::layout::{Discount, Layout, MACHINE_USAGE};
use crate::amount::{PICO, pico};
use crate::focus::Pricing;

/// What a line may come to for an hour, in 10⁻¹² of its currency. No machine comes near it in any
/// currency: at 100,000 to the dollar it is $10,000. A month of it stays far from what a sum of
/// money holds.
const MOST_HOURLY_PICO: i128 = 1_000_000_000 * PICO;

/// What a line of a time may come to; credits of a moment have an hour's.
fn most_pico(from_ms: u64, to_ms: u64) -> i128 {
    const HOUR_MS: u64 = 3_600_000;
    // A trillion is the most that an amount is, and a thousand hours of a billion each.
    let ms = to_ms.saturating_sub(from_ms).clamp(HOUR_MS, 1_000 * HOUR_MS);
    MOST_HOURLY_PICO * i128::from(ms) / i128::from(HOUR_MS)
}

/// Reads a bill; `file` is its name in messages.
///
/// # Errors
/// Names file, line and column of the first cell that cannot be read.
pub fn read(input: impl Read, file: &str, machines: &BilledMachines) -> Result<Bill, TableError> {
    let mut table = Table::open(input, file, Style::Export)?;
    let layout = layout_of(&table).map_err(|problem| table.bad_header(problem))?;
    let mut bill = Bill::default();
    while let Some(record) = table.next_record()? {
        bill.take(Cells { layout: &layout, record, most_pico: MOST_HOURLY_PICO }, machines)?;
    }
    // What stands in lines and in columns of a machine is one discount.
    for (machine, lines) in std::mem::take(&mut bill.net_discounts) {
        if !bill.has_discount_lines.contains(&machine) {
            bill.discounts.entry(machine).or_default().extend(lines);
        }
    }
    Ok(bill)
}

/// The layout of a table whose columns stand once, as far as they are read.
fn layout_of<R: Read>(table: &Table<R>) -> Result<Layout, String> {
    let twice = RefCell::new(None);
    let layout = Layout::of(|name| {
        let mut places = table.header().enumerate().filter(|(_, column)| *column == name);
        let first = places.next();
        if let Some((again, _)) = places.next() {
            twice.replace(Some((name.to_owned(), again + 1)));
        }
        first.map(|(place, _)| place)
    })?;
    match twice.into_inner() {
        Some((name, again)) => {
            Err(format!("column `{name}`: duplicate, again as column number {again}; keep one"))
        }
        None => Ok(layout),
    }
}

impl Bill {
    fn take(&mut self, mut cells: Cells<'_>, machines: &BilledMachines) -> Result<(), TableError> {
        self.lines += 1;
        let layout = cells.layout;
        if layout.parent.is_some_and(|parent| !cells.text(parent).is_empty()) {
            self.split_lines += 1;
            return Ok(());
        }
        let kind = layout.kind.map(|kind| cells.text(kind));
        let resource = cells.text(layout.resource);
        let discount = cells.discount_of(kind).filter(|_| !resource.is_empty());
        if let Some(discount) = discount {
            return self.take_discount(cells, machines.of(resource), discount);
        }
        if kind.is_some_and(|kind| !layout.usage.contains(&kind)) || resource.is_empty() {
            self.other_lines += 1;
            return Ok(());
        }
        let (from_ms, to_ms) = (cells.time(layout.from)?, cells.time(layout.to)?);
        if to_ms <= from_ms {
            return Err(cells.record.bad_cell(layout.to, "it ends before it starts"));
        }
        cells.most_pico = most_pico(from_ms, to_ms);
        let bought = cells.bought(kind);
        let pico = cells.costs(kind, bought)?;
        self.take_currency(&cells)?;
        match machines.of(resource) {
            Some(machine) => {
                if pico[0].is_none() {
                    self.unsaid.note(cells.record.line(), kind.unwrap_or_default());
                }
                let commitment = cells.commitment(kind).map(|named| self.place_of(named));
                self.spans.entry(machine).or_default().add(from_ms, to_ms);
                let is_of_machine = cells.is_of_machine(kind);
                let line = BillLine { from_ms, to_ms, pico, bought, is_of_machine, commitment };
                self.of_machines.entry(machine).or_default().push(line);
                if let Some(pico) = cells.net_discount(kind, bought, pico[0])? {
                    let line = BillLine { pico, bought: None, commitment: None, ..line };
                    self.net_discounts.entry(machine).or_default().push(line);
                }
            }
            None => {
                let unmatched = self.unmatched.entry(resource.to_owned()).or_default();
                unmatched.lines += 1;
                unmatched.spans.add(from_ms, to_ms);
                unmatched.pico += pico[0].unwrap_or(0);
                self.unsaid.elsewhere += u64::from(pico[0].is_none());
            }
        }
        Ok(())
    }
}

impl Bill {
    /// What a line takes off the costs of a machine. It is no machine time: neither how long the
    /// machine was billed nor how it is bought is to be seen from it.
    fn take_discount(
        &mut self,
        mut cells: Cells<'_>,
        machine: Option<usize>,
        discount: Discount,
    ) -> Result<(), TableError> {
        let layout = cells.layout;
        let (from_ms, to_ms) = (cells.time(layout.from)?, cells.time(layout.to)?);
        cells.most_pico = most_pico(from_ms, to_ms);
        let Some(pico) = cells.discount_costs(discount)? else {
            self.other_lines += 1;
            return Ok(());
        };
        self.take_currency(&cells)?;
        let Some(machine) = machine else {
            let resource = cells.text(layout.resource).to_owned();
            let unmatched = self.unmatched.entry(resource).or_default();
            unmatched.lines += 1;
            unmatched.pico += pico[0].unwrap_or(0);
            return Ok(());
        };
        let is_in_columns_too = matches!(discount, Discount::Negotiated | Discount::Other);
        if is_in_columns_too && pico[0] != Some(0) {
            self.has_discount_lines.insert(machine);
        }
        // Some are of one moment.
        let to_ms = to_ms.max(from_ms.saturating_add(1));
        let line =
            BillLine { from_ms, to_ms, pico, bought: None, is_of_machine: false, commitment: None };
        self.discounts.entry(machine).or_default().push(line);
        Ok(())
    }

    /// One currency for the whole file.
    fn take_currency(&mut self, cells: &Cells<'_>) -> Result<(), TableError> {
        let Some(column) = cells.layout.currency else { return Ok(()) };
        let currency = cells.text(column);
        match &self.currency {
            Some(known) if known != currency => {
                let problem =
                    format!("the file mixes {known} and {currency}; split it by currency");
                return Err(cells.record.bad_cell(column, problem));
            }
            _ if currency.is_empty() => {
                let problem = "empty: write the currency of the line, such as USD";
                return Err(cells.record.bad_cell(column, problem));
            }
            _ => self.currency = Some(currency.to_owned()),
        }
        Ok(())
    }
}

/// One line by column.
struct Cells<'c> {
    layout: &'c Layout,
    record: CsvRecord<'c>,
    /// An amount may come to so much, in 10⁻¹², either way.
    most_pico: i128,
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
                .bad_cell(column, format!("`{text}` is not a time such as 2026-11-20T10:00:00Z"))
        })
    }

    /// How the machine of a line is bought, as far as it says.
    fn bought(&self, kind: Option<&str>) -> Option<Pricing> {
        let layout = self.layout;
        let says =
            |column: Option<usize>| column.map(|column| self.text(column)).unwrap_or_default();
        if kind.is_some_and(|kind| layout.covered.contains(&kind))
            || self.commitment(kind).is_some()
        {
            return Some(Pricing::Committed);
        }
        // Such as `USE1-SpotUsage:p5.48xlarge`; the term of such a line is empty or that of any
        // other.
        if says(layout.usage_type).contains("SpotUsage") {
            return Some(Pricing::Dynamic);
        }
        match says(layout.bought) {
            "Standard" | "OnDemand" => Some(Pricing::Standard),
            "Dynamic" | "Spot" => Some(Pricing::Dynamic),
            "Committed" | "Reserved" => Some(Pricing::Committed),
            _ => None,
        }
    }

    /// Whether a line says that it is for the machine itself.
    fn is_of_machine(&self, kind: Option<&str>) -> bool {
        let layout = self.layout;
        let says =
            |column: Option<usize>| column.map(|column| self.text(column)).unwrap_or_default();
        // Such as `USE1-BoxUsage:p5.48xlarge` and, of what the provider did not cut by region,
        // `BoxUsage:p5.48xlarge`.
        let code = says(layout.usage_type).split(':').next().unwrap_or_default();
        let code = code.rsplit('-').next().unwrap_or_default();
        kind.is_some_and(|kind| layout.covered.contains(&kind))
            || self.commitment(kind).is_some()
            || MACHINE_USAGE.contains(&code)
            || says(layout.product_family).starts_with("Compute Instance")
    }

    /// The commitment that covers a line, where it names one.
    fn commitment(&self, kind: Option<&str>) -> Option<Commitment> {
        let named = self.layout.commitments.iter().find(|named| {
            named.of_kind.is_none_or(|of| kind == Some(of)) && !self.text(named.id).is_empty()
        })?;
        let says = |column: Option<usize>, else_is: &str| {
            column.map_or(else_is, |column| self.text(column)).to_owned()
        };
        Some(Commitment {
            id: self.text(named.id).to_owned(),
            category: says(named.category, named.category_of_kind),
            kind: says(named.kind, named.name_of_kind),
        })
    }

    /// What a line cost, in the order of [`super::Cost`]; `None` where the file does not say it.
    fn costs(
        &self,
        kind: Option<&str>,
        bought: Option<Pricing>,
    ) -> Result<[Option<i128>; COSTS], TableError> {
        let layout = self.layout;
        let is_covered = kind.is_some_and(|kind| layout.covered.contains(&kind));
        let effective = self.effective(kind, is_covered, bought)?;
        let billed = match layout.billed {
            // An AWS report has such time beside the invoice: the commitment is what is paid.
            _ if is_covered => Some(0),
            column => self.amount(column)?.or(effective),
        };
        let list = self.amount(layout.list)?;
        // Without a negotiated price the list price holds; a commitment takes its part off behind
        // both.
        let contracted = match self.amount(layout.contracted)? {
            None if is_covered && kind == Some("SavingsPlanCoveredUsage") => {
                self.amount(layout.billed)?
            }
            None if bought == Some(Pricing::Committed) => list,
            None => effective,
            said => said,
        };
        Ok([effective, billed, list, contracted])
    }

    /// What a kind of line takes off machine time, if it does.
    fn discount_of(&self, kind: Option<&str>) -> Option<Discount> {
        let mut known = self.layout.discounts.iter();
        known.find(|(name, _)| kind == Some(*name)).map(|(_, discount)| *discount)
    }

    /// What a line takes off, in the order of [`super::Cost`]; `None` where it says no amount.
    fn discount_costs(
        &self,
        discount: Discount,
    ) -> Result<Option<[Option<i128>; COSTS]>, TableError> {
        let layout = self.layout;
        let billed = self.amount(layout.billed)?;
        // What is given back covers no other time: where nothing else is said, it is the amount on
        // the invoice.
        let effective = self.effective(None, false, None)?.or(billed);
        let Some(effective) = effective else { return Ok(None) };
        let billed = billed.unwrap_or(effective);
        let (list, contracted) = match discount {
            Discount::Negotiated => (0, effective),
            Discount::Other | Discount::Credit => (0, 0),
            Discount::AsWritten => (
                self.amount(layout.list)?.unwrap_or(0),
                self.amount(layout.contracted)?.unwrap_or(0),
            ),
        };
        Ok(Some([effective, billed, list, contracted].map(Some)))
    }

    /// What the columns after discounts take off machine time that cost so much, in the order of
    /// [`super::Cost`]; `None` where there are none, and where they take off nothing. On the price
    /// of what a commitment covers nobody knows what of it was negotiated.
    fn net_discount(
        &self,
        kind: Option<&str>,
        bought: Option<Pricing>,
        effective: Option<i128>,
    ) -> Result<Option<[Option<i128>; COSTS]>, TableError> {
        let is_covered = kind.is_some_and(|kind| self.layout.covered.contains(&kind));
        let net = self.amortised(&self.layout.nets, kind, is_covered, bought)?;
        let off = net.zip(effective).map(|(net, effective)| net - effective);
        let [billed, contracted] = match is_covered {
            true => [Some(0); 2],
            false => [off; 2],
        };
        Ok(off.filter(|off| *off != 0).map(|off| [Some(off), billed, Some(0), contracted]))
    }

    /// The amount of a cell, if it says one.
    fn amount(&self, column: Option<usize>) -> Result<Option<i128>, TableError> {
        let Some(column) = column.filter(|column| !self.text(*column).is_empty()) else {
            return Ok(None);
        };
        let text = self.text(column);
        let bad =
            || self.record.bad_cell(column, format!("`{text}` is not an amount such as 55.04"));
        let amount = pico(text).ok_or_else(bad)?;
        if amount.abs() > self.most_pico {
            let problem = format!(
                "`{text}` is more than a billion per hour in the period of the line: check the amount and its decimal \
                 point"
            );
            return Err(self.record.bad_cell(column, problem));
        }
        Ok(Some(amount))
    }

    /// What a line cost, amortised.
    fn effective(
        &self,
        kind: Option<&str>,
        is_covered: bool,
        bought: Option<Pricing>,
    ) -> Result<Option<i128>, TableError> {
        self.amortised(&self.layout.costs, kind, is_covered, bought)
    }

    /// The same by these columns.
    fn amortised(
        &self,
        columns: &[super::layout::CostColumn],
        kind: Option<&str>,
        is_covered: bool,
        bought: Option<Pricing>,
    ) -> Result<Option<i128>, TableError> {
        let layout = self.layout;
        let mut costs = columns.iter();
        let fits = |cost: &&super::layout::CostColumn| {
            // What the invoice has for time that a commitment covers is not what it cost.
            let of_kind = if is_covered { cost.kind == kind } else { cost.kind.is_none() };
            of_kind && !self.text(cost.column).is_empty()
        };
        let Some(cost) = costs.find(fits) else { return Ok(None) };
        let pico = self.amount(Some(cost.column))?;
        let is_paid_elsewhere =
            layout.is_invoiced && bought == Some(Pricing::Committed) && pico == Some(0);
        Ok(pico.filter(|_| !is_paid_elsewhere))
    }
}
