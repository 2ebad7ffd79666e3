//! The phases of a job as rows of a bill.

use dovetail_account::device_time::Span;
use dovetail_account::split::split_money;
use dovetail_model::{Money, in_proportion};

use super::outcome::{Confidence, Evidence, MemberPhases, PhasePart, Stretch};
use super::phase::{PHASES, Phase};

/// One member's place in a bill.
#[derive(Clone, Copy, Debug)]
pub struct BilledMember<'a> {
    /// Its allocated time in the bill, in milli-GPU × ms.
    pub gpu_milli_ms: i128,
    /// Who pays for it: a place in the list of costs.
    pub payer: usize,
    /// What it did, which may be of another length than what is billed: then the bill's time is
    /// split in the same proportion.
    pub phases: &'a MemberPhases,
}

/// All of one phase of a job. Times are milli-GPU × ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhaseRow {
    pub phase: Phase,
    /// How long.
    pub gpu_milli_ms: i128,
    /// What it cost, as far as it has a price; `None` if nothing of it has one.
    pub cost: Option<Money>,
    /// The time that has a price.
    pub priced_gpu_milli_ms: i128,
    /// The time by [`Confidence`], in its order.
    pub by_confidence: [i128; 3],
    /// The time that has a place; the rest is a share of stretches of other phases.
    pub placed_gpu_milli_ms: i128,
    /// Means over the stretches that it filled; over all that it had a share in where it filled
    /// none.
    pub evidence: Evidence,
}

impl PhaseRow {
    /// What at least half of the time is as sure as.
    pub fn confidence(&self) -> Confidence {
        let [low, medium, high] = self.by_confidence;
        match () {
            () if 2 * high >= low + medium + high => Confidence::High,
            () if 2 * (high + medium) >= low + medium + high => Confidence::Medium,
            () => Confidence::Low,
        }
    }
}

impl MemberPhases {
    /// A member that did one thing all the time, known from elsewhere than samples.
    pub fn all(phase: Phase, confidence: Confidence, span: Span) -> Self {
        let length_ms = span.to_ms.saturating_sub(span.from_ms);
        let part = PhasePart { phase, length_ms, confidence, is_place: true };
        let stretch = Stretch { span, parts: vec![part], evidence: Evidence::default() };
        Self { gpu_milli: 0, stretches: vec![stretch] }
    }
}

/// The rows of a job, in the order of phases; only phases that it had. Times together are those of
/// the members exactly, costs those of the payers exactly. `costs` are of the members' device-time,
/// by payer; `None` where a price is not known.
pub fn phase_rows(members: &[BilledMember<'_>], costs: &[Option<Money>]) -> Vec<PhaseRow> {
    let mut rows = Phase::ALL.map(Gathering::new);
    let mut weights = vec![[0_i128; PHASES]; costs.len()];
    for member in members {
        let parts = || {
            let stretches = member.phases.stretches.iter();
            stretches.flat_map(|stretch| stretch.parts.iter().map(move |part| (stretch, part)))
        };
        let lengths: Vec<i128> = parts().map(|(_, part)| i128::from(part.length_ms)).collect();
        if lengths.iter().all(|length| *length == 0) {
            // It was held and nothing is said of it.
            rows[Phase::Unknown as usize].add_time(Confidence::Low, member.gpu_milli_ms);
            weights[member.payer][Phase::Unknown as usize] += member.gpu_milli_ms;
            continue;
        }
        let times = in_proportion(member.gpu_milli_ms, &lengths);
        for ((stretch, part), time) in parts().zip(times) {
            rows[part.phase as usize].add(stretch, part, time);
            weights[member.payer][part.phase as usize] += time;
        }
    }
    for (cost, weights) in costs.iter().zip(&weights) {
        let Some(cost) = cost else { continue };
        for ((row, part), time) in rows.iter_mut().zip(split_over(*cost, weights)).zip(weights) {
            if part != Money::ZERO || *time > 0 {
                *row.row.cost.get_or_insert_default() += part;
                row.row.priced_gpu_milli_ms += time;
            }
        }
    }
    let had = |row: &PhaseRow| row.gpu_milli_ms > 0 || row.cost.is_some();
    rows.into_iter().map(Gathering::finish).filter(had).collect()
}

/// A cost by time; what was paid for no time at all was for nothing that is known.
fn split_over(cost: Money, weights: &[i128; PHASES]) -> Vec<Money> {
    if weights.iter().any(|weight| *weight > 0) {
        return split_money(cost, weights);
    }
    let mut parts = vec![Money::ZERO; PHASES];
    parts[Phase::Unknown as usize] = cost;
    parts
}

/// A row with what its means are made of.
struct Gathering {
    row: PhaseRow,
    /// Of stretches that it filled, and of all.
    means: [Means; 2],
}

impl Gathering {
    fn new(phase: Phase) -> Self {
        let row = PhaseRow {
            phase,
            gpu_milli_ms: 0,
            cost: None,
            priced_gpu_milli_ms: 0,
            by_confidence: [0; 3],
            placed_gpu_milli_ms: 0,
            evidence: Evidence::default(),
        };
        Self { row, means: [Means::default(), Means::default()] }
    }

    fn add(&mut self, stretch: &Stretch, part: &PhasePart, time: i128) {
        self.add_time(part.confidence, time);
        self.means[1].add(&stretch.evidence, part.length_ms);
        if part.is_place {
            self.row.placed_gpu_milli_ms += time;
            self.means[0].add(&stretch.evidence, part.length_ms);
        }
    }

    fn add_time(&mut self, confidence: Confidence, time: i128) {
        self.row.gpu_milli_ms += time;
        self.row.by_confidence[confidence as usize] += time;
    }

    fn finish(mut self) -> PhaseRow {
        let [placed, all] = self.means;
        self.row.evidence = if placed.samples > 0 { placed.mean() } else { all.mean() };
        self.row
    }
}

/// Number of means in an evidence.
const FIELDS: usize = 10;

/// Means, weighted by time.
#[derive(Clone, Copy, Debug, Default)]
struct Means {
    samples: u64,
    sums: [u128; FIELDS],
    weights: [u128; FIELDS],
}

impl Means {
    fn add(&mut self, evidence: &Evidence, length_ms: u64) {
        self.samples += evidence.samples;
        let Evidence {
            samples: _,
            busy_micro_percent,
            sm_micro_percent,
            tensor_micro_percent,
            dram_micro_percent,
            nvlink_bytes_per_s,
            power_milliwatts,
            cpu_milli,
            disk_busy_micro_percent,
            in_bytes_per_s,
            out_bytes_per_s,
        } = *evidence;
        let fields = [
            busy_micro_percent,
            sm_micro_percent,
            tensor_micro_percent,
            dram_micro_percent,
            nvlink_bytes_per_s,
            power_milliwatts,
            cpu_milli,
            disk_busy_micro_percent,
            in_bytes_per_s,
            out_bytes_per_s,
        ];
        for (place, field) in fields.into_iter().enumerate() {
            let Some(value) = field else { continue };
            self.sums[place] = self.sums[place]
                .saturating_add(u128::from(value).saturating_mul(u128::from(length_ms)));
            self.weights[place] += u128::from(length_ms);
        }
    }

    fn mean(&self) -> Evidence {
        let mut means = self.sums.iter().zip(self.weights).map(|(sum, weight)| {
            let mean = sum.checked_div(weight)?;
            u64::try_from(mean).ok()
        });
        let mut next = || means.next().flatten();
        Evidence {
            samples: self.samples,
            busy_micro_percent: next(),
            sm_micro_percent: next(),
            tensor_micro_percent: next(),
            dram_micro_percent: next(),
            nvlink_bytes_per_s: next(),
            power_milliwatts: next(),
            cpu_milli: next(),
            disk_busy_micro_percent: next(),
            in_bytes_per_s: next(),
            out_bytes_per_s: next(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dovetail_cases::cases;
    use proptest::prelude::*;

    fn confidence(number: u8) -> Confidence {
        [Confidence::Low, Confidence::Medium, Confidence::High][usize::from(number % 3)]
    }

    prop_compose! {
        fn member()(
            parts in prop::collection::vec((0usize..PHASES, 0u64..100_000, 0u8..3, any::<bool>()), 0..8),
            time in 0i128..1_000_000_000_000,
            payer in 0usize..3,
        ) -> (MemberPhases, i128, usize) {
            let part = |(phase, length_ms, sure, is_place): (usize, u64, u8, bool)| PhasePart {
                phase: Phase::ALL[phase], length_ms, confidence: confidence(sure), is_place,
            };
            let stretch = |part: PhasePart| Stretch {
                span: Span::default(), parts: vec![part], evidence: Evidence::default(),
            };
            let stretches = parts.into_iter().map(part).map(stretch).collect();
            (MemberPhases { gpu_milli: 1000, stretches }, time, payer)
        }
    }

    proptest! {
        #![proptest_config(cases(256))]

        #[test]
        fn rows_are_the_time_and_the_money_exactly(
            members in prop::collection::vec(member(), 0..6),
            costs in prop::collection::vec(prop::option::of(0i64..1_000_000_000_000), 3),
        ) {
            let billed: Vec<BilledMember<'_>> = members
                .iter()
                .map(|(phases, gpu_milli_ms, payer)| BilledMember {
                    gpu_milli_ms: *gpu_milli_ms, payer: *payer, phases,
                })
                .collect();
            let costs: Vec<Option<Money>> = costs.into_iter().map(|cost| cost.map(Money::micros)).collect();
            let rows = phase_rows(&billed, &costs);
            let time: i128 = members.iter().map(|member| member.1).sum();
            prop_assert_eq!(rows.iter().map(|row| row.gpu_milli_ms).sum::<i128>(), time);
            let sure: i128 = rows.iter().flat_map(|row| row.by_confidence).sum();
            prop_assert_eq!(sure, time);
            let paid: i64 = rows.iter().filter_map(|row| row.cost).map(|cost| cost.usd_micros).sum();
            let owed: i64 = costs.iter().flatten().map(|cost| cost.usd_micros).sum();
            prop_assert_eq!(paid, owed);
            let priced: i128 = members.iter().filter(|m| costs[m.2].is_some()).map(|m| m.1).sum();
            prop_assert_eq!(rows.iter().map(|row| row.priced_gpu_milli_ms).sum::<i128>(), priced);
        }
    }

    /// Of $3 for ten minutes seven are work: $2.10; the bill's month is split as the ten minutes
    /// were.
    #[test]
    fn a_month_is_split_as_the_samples_were() {
        let stretch = |phase, minutes: u64, busy: u64| Stretch {
            span: Span::default(),
            parts: vec![PhasePart {
                phase,
                length_ms: minutes * 60_000,
                confidence: Confidence::Medium,
                is_place: true,
            }],
            evidence: Evidence {
                samples: minutes,
                busy_micro_percent: Some(busy),
                ..Evidence::default()
            },
        };
        let stretches = vec![
            stretch(Phase::Compute, 4, 90),
            stretch(Phase::LongPause, 3, 0),
            stretch(Phase::Compute, 3, 97),
        ];
        let phases = MemberPhases { gpu_milli: 1000, stretches };
        let member = BilledMember { gpu_milli_ms: 720_000_000, payer: 0, phases: &phases };
        let rows = phase_rows(&[member], &[Some(Money::micros(3_000_000))]);
        let [compute, pause] = [&rows[1], &rows[0]];
        assert_eq!((compute.phase, pause.phase), (Phase::Compute, Phase::LongPause));
        assert_eq!((compute.gpu_milli_ms, pause.gpu_milli_ms), (504_000_000, 216_000_000));
        assert_eq!(compute.cost, Some(Money::micros(2_100_000)));
        assert_eq!(compute.evidence.busy_micro_percent, Some((4 * 90 + 3 * 97) / 7));
        assert_eq!((compute.evidence.samples, compute.confidence()), (7, Confidence::Medium));
    }
}
