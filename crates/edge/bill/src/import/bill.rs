//! What machines cost by a bill, in any span of time.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_model::Money;

use super::spans::Spans;
use crate::amount::{PICO, micros};
use crate::focus::Pricing;

/// What was billed for machines.
#[derive(Clone, Debug, Default)]
pub struct Bill {
    /// Lines by the number of their machine.
    pub of_machines: BTreeMap<usize, Vec<BillLine>>,
    /// Credits and discounts of machines, by the same number: what they take off, and over which
    /// time.
    pub(super) discounts: BTreeMap<usize, Vec<BillLine>>,
    /// What columns of their own take off, of a file that may have the same as lines.
    pub(super) net_discounts: BTreeMap<usize, Vec<BillLine>>,
    /// Machines that have discounts as lines: their columns after discounts have the same ones.
    pub(super) has_discount_lines: BTreeSet<usize>,
    /// When each of them was billed.
    pub(super) spans: BTreeMap<usize, Spans>,
    /// Machine time of machines that nobody knows, by resource.
    pub(super) unmatched: BTreeMap<String, Elsewhere>,
    /// Commitments that lines name; lines have their places in this list.
    commitments: Vec<Commitment>,
    /// Places by identity.
    commitment_places: BTreeMap<String, usize>,
    pub lines: u64,
    /// Lines left out because they split another one.
    pub split_lines: u64,
    /// Lines that are no machine time: taxes, purchases, fees, and credits that name no machine.
    pub other_lines: u64,
    /// Lines of known machines of which the file does not say what they cost.
    pub unsaid: Unsaid,
    /// Code of the currency, where the file says one.
    pub currency: Option<String>,
}

/// Which cost of a line, in the words of FOCUS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// Amortised: of what was paid in advance the part that the line used. This is what a machine
    /// costs.
    Effective,
    /// On the invoice, without what was paid in advance.
    Billed,
    /// At list prices.
    List,
    /// At negotiated prices, before what commitments take off.
    Contracted,
}

pub(super) const COSTS: usize = 4;

/// Machine time of which a file does not say what it cost: nothing is written there, or a
/// commitment covers it and the file has only the invoice, on which the commitment is paid
/// elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unsaid {
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
    /// In 10⁻¹² of the currency, in the order of [`Cost`]; `None` where the file does not say it.
    pub(super) pico: [Option<i128>; COSTS],
    /// How what it is for is bought, where the file says it.
    pub(super) bought: Option<Pricing>,
    /// Whether the file says that it is for the machine itself, and not for its traffic, its disks
    /// or the like.
    pub(super) is_of_machine: bool,
    /// Place of the commitment that covers it, where it names one.
    pub(super) commitment: Option<usize>,
}

/// A reservation, a savings plan or the like, as a bill names it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Commitment {
    /// Its identity to the provider.
    pub id: String,
    /// `Usage` or `Spend`: what was committed to; empty where the bill does not say it.
    pub category: String,
    /// The provider's word for its kind; empty where the bill does not say it.
    pub kind: String,
}

/// Machine time of a machine that nobody knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unmatched<'b> {
    /// The machine as the bill has it.
    pub resource: &'b str,
    pub lines: u64,
    /// For how long it was billed.
    pub billed_ms: u64,
    pub cost: Money,
}

/// The same while it is read.
#[derive(Clone, Debug, Default)]
pub(super) struct Elsewhere {
    pub(super) lines: u64,
    pub(super) spans: Spans,
    pub(super) pico: i128,
}

/// More than any bill comes to, in 10⁻¹².
const MOST_PICO: i128 = 1_000_000_000_000 * PICO;

/// What all machines may come to for an hour, in 10⁻¹² USD: a month of it is below a trillion
/// dollars, and a count of micro-dollars holds nine.
const MOST_HOURLY_PICO: i128 = 1_000_000_000 * PICO;

impl Unsaid {
    pub(super) fn note(&mut self, line: u64, kind: &str) {
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
    /// One of its costs until a moment; rounded towards zero. Nothing of what the file does not
    /// say.
    fn pico_until(&self, cost: Cost, until_ms: u64) -> i128 {
        self.pico_of(cost, until_ms.min(self.to_ms).saturating_sub(self.from_ms))
    }

    /// One of its costs for a part of its time.
    fn pico_of(&self, cost: Cost, inside_ms: u64) -> i128 {
        let pico = self.pico[cost as usize].unwrap_or(0);
        let (length, inside) = (i128::from(self.to_ms - self.from_ms), i128::from(inside_ms));
        // Parted first: a trillion over eight thousand years has more digits than the product can
        // hold.
        pico / length * inside + pico % length * inside / length
    }

    pub(super) fn touches(&self, from_ms: u64, to_ms: u64) -> bool {
        self.from_ms.max(from_ms) < self.to_ms.min(to_ms)
    }
}

impl Bill {
    /// What a machine cost in a span of time: [`Self::amount`] of its amortised cost.
    pub fn cost(&self, machine: usize, from_ms: u64, to_ms: u64) -> Option<Money> {
        self.amount(Cost::Effective, machine, from_ms, to_ms)
    }

    /// A cost of a machine in a span of time: of a line that lies partly in it, its share of that
    /// time. `None` if no line touches the span, and if one does of which the file does not say it.
    ///
    /// It is the difference of two sums from the begin of the bill on, each rounded to the
    /// micro-dollar: spans that follow each other have what the bill has, however it is cut.
    pub fn amount(&self, cost: Cost, machine: usize, from_ms: u64, to_ms: u64) -> Option<Money> {
        let lines = self.of_machines.get(&machine)?;
        let mut inside = lines.iter().filter(|line| line.touches(from_ms, to_ms)).peekable();
        inside.peek()?;
        if inside.any(|line| line.pico[cost as usize].is_none()) {
            return None;
        }
        let until = |ms| {
            let billed: i128 = lines.iter().map(|line| line.pico_until(cost, ms)).sum();
            billed + self.discount_until(cost, machine, ms)
        };
        Some(Money::micros(micros(until(to_ms)) - micros(until(from_ms))))
    }

    /// A cost of a machine on average for `span_ms` of the time it was billed for; `None` if it was
    /// not, and if the file does not say it of all of that time.
    pub fn rate(&self, cost: Cost, machine: usize, span_ms: u64) -> Option<Money> {
        let lines = self.of_machines.get(&machine)?;
        // Lines of one hour (machine, licence, traffic) are one hour.
        let billed_ms = self.spans.get(&machine)?.all_ms();
        let sum: i128 = lines.iter().map(|line| line.pico[cost as usize]).sum::<Option<i128>>()?;
        let sum = sum + self.discount_until(cost, machine, u64::MAX);
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

    /// What is taken off a cost of a machine until a moment: of each discount the part of its time
    /// for which the machine was billed, or a month's credit would be taken off one day.
    fn discount_until(&self, cost: Cost, machine: usize, until_ms: u64) -> i128 {
        let Some(spans) = self.spans.get(&machine) else { return 0 };
        let lines = self.discounts.get(&machine).into_iter().flatten();
        let part = |line: &BillLine| {
            let inside_ms = spans.inside_ms(line.from_ms, line.to_ms.min(until_ms));
            line.pico_of(cost, inside_ms)
        };
        lines.map(part).sum()
    }

    /// What credits and discounts take off the amortised cost of a machine in a span of time, and
    /// which ones do: their places among those of the machine.
    pub fn discounts(&self, machine: usize, from_ms: u64, to_ms: u64) -> (Vec<usize>, Money) {
        let Some(spans) = self.spans.get(&machine) else { return (Vec::new(), Money::ZERO) };
        let inside =
            |line: &BillLine| spans.inside_ms(line.from_ms.max(from_ms), line.to_ms.min(to_ms)) > 0;
        let lines = self.discounts.get(&machine).into_iter().flatten().enumerate();
        let places = lines.filter(|(_, line)| inside(line)).map(|(place, _)| place).collect();
        let until = |ms| micros(self.discount_until(Cost::Effective, machine, ms));
        (places, Money::micros(until(to_ms) - until(from_ms)))
    }

    /// What credits and discounts of machines come to of which no time was billed, and how many
    /// machines these are.
    pub fn discounts_of_no_time(&self) -> (usize, Money) {
        let of_none =
            self.discounts.iter().filter(|(machine, _)| !self.spans.contains_key(machine));
        let sums = of_none.map(|(_, lines)| {
            lines.iter().filter_map(|line| line.pico[Cost::Effective as usize]).sum::<i128>()
        });
        let sums: Vec<i128> = sums.filter(|sum| *sum != 0).collect();
        (sums.len(), Money::micros(micros(sums.iter().sum())))
    }

    /// For how much of a span of time a machine was billed.
    pub fn billed_ms(&self, machine: usize, from_ms: u64, to_ms: u64) -> u64 {
        self.spans.get(&machine).map_or(0, |spans| spans.inside_ms(from_ms, to_ms))
    }

    /// When a machine was billed first and last.
    pub fn bounds(&self, machine: usize) -> Option<(u64, u64)> {
        self.spans.get(&machine)?.bounds()
    }

    /// Whether the file leaves out what some of a machine's time cost.
    pub fn lacks_costs_of(&self, machine: usize) -> bool {
        let mut lines = self.of_machines.get(&machine).into_iter().flatten();
        lines.any(|line| line.pico[Cost::Effective as usize].is_none())
    }

    /// The commitment that covers most of a machine's time in a span, of those that lines name, and
    /// how many they are.
    pub fn commitment_in(
        &self,
        machine: usize,
        from_ms: u64,
        to_ms: u64,
    ) -> Option<(&Commitment, usize)> {
        let mut covered: BTreeMap<usize, u128> = BTreeMap::new();
        for line in self.of_machines.get(&machine)? {
            if let Some(place) = line.commitment.filter(|_| line.touches(from_ms, to_ms)) {
                let ms = line.to_ms.min(to_ms) - line.from_ms.max(from_ms);
                *covered.entry(place).or_default() += u128::from(ms);
            }
        }
        // Of as much time the one that stands first in the file.
        let most = covered.iter().max_by_key(|(place, ms)| (**ms, std::cmp::Reverse(**place)))?;
        Some((self.commitments.get(*most.0)?, covered.len()))
    }

    /// Turns all amounts into USD, at so many 10⁻¹² USD for one unit of the bill's currency,
    /// rounded towards zero.
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
        let lines = self.of_machines.values_mut().chain(self.discounts.values_mut()).flatten();
        for pico in lines.flat_map(|line| &mut line.pico) {
            *pico = pico.map(|pico| usd(pico).ok_or_else(too_much)).transpose()?;
        }
        for elsewhere in self.unmatched.values_mut() {
            elsewhere.pico = usd(elsewhere.pico).ok_or_else(too_much)?;
        }
        Ok(self)
    }

    /// What is wrong with a bill in USD that comes to more than sums of money can hold; `None`
    /// where nothing is.
    pub fn is_too_much(&self) -> Option<String> {
        let all = |cost: Cost| {
            let elsewhere: i128 = self.unmatched.values().map(|of| of.pico.abs()).sum();
            let [sum, hourly] = self.most_of_known(cost);
            sum + elsewhere > MOST_PICO || hourly > MOST_HOURLY_PICO
        };
        let costs = [Cost::Effective, Cost::Billed, Cost::List, Cost::Contracted];
        costs.into_iter().any(all).then(|| {
            "its lines add up to more than a trillion USD, or its machines to more than a billion USD per hour: check \
             the amounts"
                .to_owned()
        })
    }

    /// What a cost of known machines comes to with all lines in one direction, in sum and for an
    /// hour on average of the time that each was billed.
    fn most_of_known(&self, cost: Cost) -> [i128; 2] {
        const HOUR_MS: i128 = 3_600_000;
        let mut most = [0_i128; 2];
        for (machine, lines) in &self.of_machines {
            let discounts = self.discounts.get(machine).into_iter().flatten();
            let of_lines = lines.iter().chain(discounts);
            let sum: i128 =
                of_lines.filter_map(|line| line.pico[cost as usize]).map(i128::abs).sum();
            let billed_ms = self.spans.get(machine).map_or(0, Spans::all_ms).max(1);
            most[0] += sum;
            most[1] += sum / i128::from(billed_ms) * HOUR_MS;
        }
        most
    }

    /// Machine time of machines that nobody knows, dearest first.
    pub fn unmatched(&self) -> Vec<Unmatched<'_>> {
        let found = self.unmatched.iter().map(|(resource, elsewhere)| Unmatched {
            resource,
            lines: elsewhere.lines,
            billed_ms: elsewhere.spans.all_ms(),
            cost: Money::micros(micros(elsewhere.pico)),
        });
        let mut found: Vec<Unmatched<'_>> = found.collect();
        found.sort_by_key(|unmatched| std::cmp::Reverse(unmatched.cost));
        found
    }

    /// The place of a commitment among those that were named before, or behind them.
    pub(super) fn place_of(&mut self, commitment: Commitment) -> usize {
        if let Some(place) = self.commitment_places.get(&commitment.id) {
            return *place;
        }
        let place = self.commitments.len();
        self.commitment_places.insert(commitment.id.clone(), place);
        self.commitments.push(commitment);
        place
    }
}
