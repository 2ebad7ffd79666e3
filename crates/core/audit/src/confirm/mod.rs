//! What a ledger confirms of findings that are fixed: what their objects wasted before, and what
//! they waste since.
//!
//! Both are run rates over equal periods. A row of the ledger belongs to one finding: the narrowest
//! that reaches it, then by layer and catalogue, so no second is confirmed twice. Findings together
//! confirm at most what the waste of the whole ledger fell by, since waste that only moved to
//! somebody else is not saved. Time of which nobody knows any more whether it computes counts as if
//! it were wasted.

mod periods;
mod reach;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;

use dovetail_account::device_time::DeviceState;
use dovetail_facts::{MONTH_MS, ObjectRef};

use crate::catalogue::{CATALOGUE, Reach, check};
pub use periods::equal_periods;
use reach::reach;

/// A finding of an earlier audit that is gone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FixedFinding {
    /// Its check, by id.
    pub id: String,
    /// What it was about.
    pub object: ObjectRef,
}

/// What a ledger has of one period.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LedgerPeriod {
    /// How much of the period was read: amounts are of so long.
    pub read_ms: u64,
    /// All GPU-time, in rows of any order.
    pub rows: Vec<LedgerRow>,
}

/// GPU-time of one holder in one state on nodes of one pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerRow {
    /// The top owner of its pods; its kind is empty where nobody knows. `None` is nobody.
    pub holder: Option<ObjectRef>,
    /// The pool of the nodes; of empty kind where nobody knows.
    pub pool: ObjectRef,
    /// The node; empty where it was not asked for.
    pub node: String,
    /// What the GPUs were.
    pub state: DeviceState,
    pub gpu_milli_ms: i128,
    /// What it cost; `None` if nobody knows.
    pub usd_micros: Option<i64>,
}

/// GPU-time and money as they would be in a month.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rate {
    /// In milli-GPU × ms of a month, cut off.
    pub gpu_milli_ms: i128,
    /// Micro-USD a month; `None` if some of it has no price.
    pub usd_micros: Option<i64>,
    /// Micro-USD a month of what has a price.
    pub priced_usd_micros: i64,
    /// The time that has none, in the same unit as all of it.
    pub unpriced_gpu_milli_ms: i128,
}

impl Rate {
    fn of(gpu_milli_ms: i128, unpriced_gpu_milli_ms: i128, usd_micros: i128) -> Self {
        let usd_micros = i64::try_from(usd_micros);
        Self {
            gpu_milli_ms,
            usd_micros: usd_micros.ok().filter(|_| unpriced_gpu_milli_ms == 0),
            priced_usd_micros: usd_micros.unwrap_or(i64::MAX),
            unpriced_gpu_milli_ms,
        }
    }
}

/// What is said of one finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Confirmed {
    /// Whether, or why not.
    pub verdict: FixVerdict,
    /// What the seconds that are its own came to before; `None` if it has none.
    pub before: Option<Rate>,
    /// What they come to since.
    pub after: Option<Rate>,
    /// The part of the fall that it accounts for; nothing unless it is confirmed.
    pub confirmed: Rate,
}

/// What a ledger says of a finding that is fixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FixVerdict {
    /// Its objects waste less, and so does the cluster.
    Confirmed,
    /// Its objects waste as before.
    Unchanged,
    /// Its objects waste less, others as much more.
    Moved,
    /// The ledger saw no waste of its objects before.
    NoneBefore,
    /// The ledger knows nothing of its objects before.
    NotInLedger,
    /// Nobody knows what they did, before or since.
    Blind,
    /// An earlier finding has these seconds; its place in the list.
    CountedWith(usize),
    /// It lowered a risk: no wasted time would have ended with it.
    OfRisk,
}

/// What a ledger says of all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Confirmation {
    /// All waste of the cluster before.
    pub waste_before: Rate,
    /// All waste since.
    pub waste_after: Rate,
    /// What findings account for together: at most the fall.
    pub confirmed: Rate,
    /// GPU-time free for a cause that nobody kept: by so much it rose.
    pub free_of_unknown_cause_rose_gpu_milli_ms: i128,
    /// In the order of the findings.
    pub findings: Vec<Confirmed>,
}

/// A fall by less is not told from chance.
const LEAST_FALL_PERCENT: i128 = 10;

/// Holds a ledger against findings that are gone.
pub fn confirm(
    fixed: &[FixedFinding],
    before: &LedgerPeriod,
    after: &LedgerPeriod,
) -> Confirmation {
    let reaches: Vec<Reach> = fixed.iter().map(reach).collect();
    let order = order(fixed, &reaches);
    let own_before = own(fixed, &reaches, &order, before);
    let own_after = own(fixed, &reaches, &order, after);
    let cluster = Fall { before: total(before), after: total(after) };
    let fall = |(was, is): (&Own, &Own)| Fall { before: was.amounts, after: is.amounts };
    let falls: Vec<Fall> = own_before.iter().zip(&own_after).map(fall).collect();
    let verdict = |place: usize| match reaches[place] {
        Reach::Nothing => FixVerdict::OfRisk,
        _ => verdict(&own_before[place], &falls[place], &cluster),
    };
    let verdicts: Vec<FixVerdict> = (0..fixed.len()).map(verdict).collect();
    let shares = shares(&verdicts, &falls, &cluster);
    let finding = |place: usize| {
        let Fall { before, after } = falls[place];
        let has_own = own_before[place].is_known && own_before[place].counted_with.is_none();
        let (mut verdict, mut confirmed) = (verdicts[place], shares[place]);
        if verdict == FixVerdict::Confirmed
            && is_little(confirmed.gpu_milli_ms, before.wasted_gpu_milli_ms)
        {
            (verdict, confirmed) = (FixVerdict::Moved, Rate::default());
        }
        Confirmed {
            verdict,
            before: has_own.then(|| before.rate()),
            after: has_own.then(|| after.rate()),
            confirmed,
        }
    };
    let findings: Vec<Confirmed> = (0..fixed.len()).map(finding).collect();
    let sum = findings.iter().filter(|found| found.verdict == FixVerdict::Confirmed);
    let rose = free_of_unknown_cause(after) - free_of_unknown_cause(before);
    Confirmation {
        waste_before: cluster.before.rate(),
        waste_after: cluster.after.rate(),
        confirmed: Rate {
            gpu_milli_ms: sum.clone().map(|found| found.confirmed.gpu_milli_ms).sum(),
            usd_micros: sum.clone().map(|found| found.confirmed.usd_micros).sum(),
            priced_usd_micros: sum.clone().map(|found| found.confirmed.priced_usd_micros).sum(),
            unpriced_gpu_milli_ms: sum.map(|found| found.confirmed.unpriced_gpu_milli_ms).sum(),
        },
        free_of_unknown_cause_rose_gpu_milli_ms: rose.max(0),
        findings,
    }
}

/// Places in the order in which rows are given away: narrow before wide, then as claims are served.
fn order(fixed: &[FixedFinding], reaches: &[Reach]) -> Vec<usize> {
    let rank = |id: &str| {
        let place = CATALOGUE.into_iter().flatten().position(|known| known.id == id);
        check(id).map(|check| (check.layer, Reverse(check.severity), place))
    };
    let mut order: Vec<usize> = (0..fixed.len()).collect();
    order.sort_by_key(|place| {
        let FixedFinding { id, object } = &fixed[*place];
        (reaches[*place].width(object), rank(id), object, *place)
    });
    order
}

/// Amounts of one period as those of a month.
#[derive(Clone, Copy, Debug, Default)]
struct MonthlyAmounts {
    wasted_gpu_milli_ms: i128,
    /// The part without a price.
    unpriced_gpu_milli_ms: i128,
    usd_micros: i128,
    /// Nobody knows whether it is wasted.
    blind_gpu_milli_ms: i128,
}

impl MonthlyAmounts {
    fn add_wasted(&mut self, row: &LedgerRow) {
        self.wasted_gpu_milli_ms += row.gpu_milli_ms;
        match row.usd_micros {
            Some(usd_micros) => self.usd_micros += i128::from(usd_micros),
            None => self.unpriced_gpu_milli_ms += row.gpu_milli_ms,
        }
    }

    /// As if it went on for a month.
    fn of_month(self, read_ms: u64) -> Self {
        let month = |amount| of_month(amount, read_ms);
        Self {
            wasted_gpu_milli_ms: month(self.wasted_gpu_milli_ms),
            unpriced_gpu_milli_ms: month(self.unpriced_gpu_milli_ms),
            usd_micros: month(self.usd_micros),
            blind_gpu_milli_ms: month(self.blind_gpu_milli_ms),
        }
    }

    fn rate(&self) -> Rate {
        Rate::of(self.wasted_gpu_milli_ms, self.unpriced_gpu_milli_ms, self.usd_micros)
    }
}

fn of_month(amount: i128, read_ms: u64) -> i128 {
    match read_ms {
        0 => 0,
        read_ms => amount * i128::from(MONTH_MS) / i128::from(read_ms),
    }
}

/// What is a finding's own.
#[derive(Clone, Copy, Debug, Default)]
struct Own {
    amounts: MonthlyAmounts,
    /// Whether the ledger has anything of its objects.
    is_known: bool,
    /// Who has what it would have, where it has nothing.
    counted_with: Option<usize>,
}

/// Gives each row to the first finding that reaches it; what nobody knows is told to all.
fn own(
    fixed: &[FixedFinding],
    reaches: &[Reach],
    order: &[usize],
    period: &LedgerPeriod,
) -> Vec<Own> {
    let mut own = vec![Own::default(); fixed.len()];
    for row in &period.rows {
        let mut taken_by = None;
        for place in order.iter().copied() {
            let reach = reaches[place];
            if !reach.is_about(row, &fixed[place].object) {
                continue;
            }
            let of = &mut own[place];
            of.is_known = true;
            if reach.blind() == Some(row.state) {
                of.amounts.blind_gpu_milli_ms += row.gpu_milli_ms;
            }
            match taken_by {
                _ if !reach.ends(row.state) => {}
                Some(other) => of.counted_with = of.counted_with.or(Some(other)),
                None => {
                    of.amounts.add_wasted(row);
                    taken_by = Some(place);
                }
            }
        }
    }
    for of in &mut own {
        of.amounts = of.amounts.of_month(period.read_ms);
        of.counted_with = of.counted_with.filter(|_| of.amounts.wasted_gpu_milli_ms == 0);
    }
    own
}

/// The whole ledger.
fn total(period: &LedgerPeriod) -> MonthlyAmounts {
    let mut all = MonthlyAmounts::default();
    for row in &period.rows {
        match row.state {
            DeviceState::Unknown => all.blind_gpu_milli_ms += row.gpu_milli_ms,
            state if state.is_waste() => all.add_wasted(row),
            _ => {}
        }
    }
    all.of_month(period.read_ms)
}

fn free_of_unknown_cause(period: &LedgerPeriod) -> i128 {
    let free = period.rows.iter().filter(|row| row.state == DeviceState::Free(None));
    of_month(free.map(|row| row.gpu_milli_ms).sum(), period.read_ms)
}

/// From one period to the next.
#[derive(Clone, Copy, Debug)]
struct Fall {
    before: MonthlyAmounts,
    after: MonthlyAmounts,
}

impl Fall {
    /// Less waste, in milli-GPU × ms of a month, whatever became blind.
    fn seen(&self) -> i128 {
        (self.before.wasted_gpu_milli_ms - self.after.wasted_gpu_milli_ms).max(0)
    }

    /// The same, where what became blind is taken for waste.
    fn certain(&self) -> i128 {
        let blind = self.after.blind_gpu_milli_ms - self.before.blind_gpu_milli_ms;
        (self.seen() - blind.max(0)).max(0)
    }
}

fn is_little(part: i128, whole: i128) -> bool {
    part == 0 || part * 100 < whole * LEAST_FALL_PERCENT
}

/// What one finding comes to before all of them share the fall of the cluster.
fn verdict(of: &Own, fall: &Fall, cluster: &Fall) -> FixVerdict {
    let before = fall.before.wasted_gpu_milli_ms;
    match () {
        () if !of.is_known => FixVerdict::NotInLedger,
        () if before == 0 => match of.counted_with {
            Some(other) => FixVerdict::CountedWith(other),
            None if fall.before.blind_gpu_milli_ms > 0 => FixVerdict::Blind,
            None => FixVerdict::NoneBefore,
        },
        () if is_little(fall.seen(), before) => FixVerdict::Unchanged,
        () if is_little(fall.certain(), before) => FixVerdict::Blind,
        () if cluster.seen() == 0 => FixVerdict::Moved,
        () if cluster.certain() == 0 => FixVerdict::Blind,
        () => FixVerdict::Confirmed,
    }
}

/// The fall of the cluster, shared by those that are confirmed: each has its own, or where these
/// are more than there is, a part of it in proportion. Dollars are those of the seconds, at the
/// prices before.
fn shares(verdicts: &[FixVerdict], falls: &[Fall], cluster: &Fall) -> Vec<Rate> {
    let time = |(verdict, fall): (&FixVerdict, &Fall)| match verdict {
        FixVerdict::Confirmed => fall.certain(),
        _ => 0,
    };
    let times: Vec<i128> = verdicts.iter().zip(falls).map(time).collect();
    let times = cut(&times, cluster.certain());
    let dollars = |(fall, time): (&Fall, &i128)| match fall.before.wasted_gpu_milli_ms {
        0 => 0,
        wasted => fall.before.usd_micros * time / wasted,
    };
    let usd_micros: Vec<i128> = falls.iter().zip(&times).map(dollars).collect();
    let fell = cluster.before.usd_micros - cluster.after.usd_micros;
    let usd_micros = cut(&usd_micros, fell.max(0));
    let rate = |((gpu_milli_ms, usd_micros), fall): ((i128, i128), &Fall)| {
        let MonthlyAmounts { wasted_gpu_milli_ms, unpriced_gpu_milli_ms, .. } = fall.before;
        let unpriced = match wasted_gpu_milli_ms {
            0 => 0,
            wasted => unpriced_gpu_milli_ms * gpu_milli_ms / wasted,
        };
        let rate = Rate::of(gpu_milli_ms, unpriced, usd_micros);
        let is_priced = unpriced_gpu_milli_ms == 0;
        Rate { usd_micros: rate.usd_micros.filter(|_| is_priced), ..rate }
    };
    times.into_iter().zip(usd_micros).zip(falls).map(rate).collect()
}

/// Amounts that are together no more than there is.
fn cut(amounts: &[i128], most: i128) -> Vec<i128> {
    let all: i128 = amounts.iter().sum();
    let part = |amount: i128| if all > most { amount * most / all } else { amount };
    amounts.iter().copied().map(part).collect()
}
