//! Which pods a GPU serves by a column: the column says how many of each profile, and pods of one
//! profile differ in what they are worth and where else they may go.
//!
//! To serve the most valuable pods first is not always best: on a GPU that pods of lower value
//! alone may use besides, they can leave other GPUs to the valuable ones.

use crate::problem::{DemandKind, Problem};

/// So many ways to serve the pods of a column are considered, and so many kinds on the way to them.
const MOST_WAYS: usize = 16;
const MOST_TRIED: usize = 256;

/// So many kinds that are tried take as long as a step of the search.
const TRIED_IN_STEP: usize = 16;

/// The kinds of demand of one profile that may go to one pool.
pub(crate) struct PoolKinds {
    /// In the order in which they are served.
    kinds: Vec<usize>,
    /// No other order is better: each kind goes before those behind it.
    is_only_order: bool,
    /// Of each kind, those that go before it; nothing if there is only one order.
    before: Vec<Vec<usize>>,
}

/// By pool and profile the kinds that may go there.
pub(crate) type KindsOfPools = Vec<Vec<PoolKinds>>;

/// The most valuable kinds first, of equal ones those with the fewest pools. `has_ways`: it is
/// told where another order can be better.
pub(crate) fn by_value(problem: &Problem, has_ways: bool) -> KindsOfPools {
    let mut order: Vec<usize> = (0..problem.kinds.len()).collect();
    order
        .sort_by_key(|kind| (-problem.kinds[*kind].value, problem.kinds[*kind].pools.len(), *kind));
    of_pools(problem, &order, has_ways)
}

/// Those first that would pay most elsewhere, of equal ones those with the fewest pools: they leave
/// room to the others. `surplus`: what one pod of each kind is worth beyond its price.
pub(crate) fn by_price(problem: &Problem, surplus: &[i128]) -> KindsOfPools {
    let mut order: Vec<usize> = (0..problem.kinds.len()).collect();
    order.sort_by_key(|number| {
        let kind = &problem.kinds[*number];
        (surplus[*number] - kind.value, kind.pools.len(), -kind.value, *number)
    });
    of_pools(problem, &order, false)
}

fn of_pools(problem: &Problem, order: &[usize], has_ways: bool) -> KindsOfPools {
    let mut by_pool = vec![vec![Vec::new(); problem.profiles]; problem.pools];
    for number in order {
        let kind = &problem.kinds[*number];
        kind.pools.iter().for_each(|pool| by_pool[*pool][kind.profile].push(*number));
    }
    let of_profile = |kinds: Vec<usize>| {
        let mut pairs = kinds.windows(2);
        let is_only_order = !has_ways || pairs.all(|pair| goes_before(problem, pair[0], pair[1]));
        let before = if is_only_order { Vec::new() } else { before_each(problem, &kinds) };
        PoolKinds { kinds, is_only_order, before }
    };
    by_pool.into_iter().map(|kinds| kinds.into_iter().map(of_profile).collect()).collect()
}

fn before_each(problem: &Problem, kinds: &[usize]) -> Vec<Vec<usize>> {
    let of = |(rank, kind): (usize, &usize)| {
        let earlier = kinds[..rank].iter().copied();
        earlier.filter(|other| goes_before(problem, *other, *kind)).collect()
    };
    kinds.iter().enumerate().map(of).collect()
}

/// Whether a kind may be served before another one wherever both may go: it is worth no less, and
/// it may go nowhere else than the other one.
fn goes_before(problem: &Problem, first: usize, other: usize) -> bool {
    let [first, other] = [first, other].map(|kind| &problem.kinds[kind]);
    first.value >= other.value
        && (first.pools == other.pools
            || first.pools.iter().all(|pool| other.pools.binary_search(pool).is_ok()))
}

/// Whether there is more than one order in which the kinds of a profile can be served.
pub(crate) fn has_ways(kinds: &KindsOfPools) -> bool {
    kinds.iter().flatten().any(|kinds| !kinds.is_only_order)
}

/// What serving a column takes of the demand.
#[derive(Clone)]
pub(crate) struct ServedDemand {
    pub(crate) value: i128,
    pub(crate) surplus: i128,
    /// Kind and count.
    pub(crate) of: Vec<(usize, u32)>,
}

impl ServedDemand {
    fn of(pods: Vec<(usize, u32)>, kinds: &[DemandKind], surplus: &[i128]) -> Self {
        let value = |(kind, count): &(usize, u32)| kinds[*kind].value * i128::from(*count);
        let beyond = |(kind, count): &(usize, u32)| surplus[*kind] * i128::from(*count);
        Self {
            value: pods.iter().map(value).sum(),
            surplus: pods.iter().map(beyond).sum(),
            of: pods,
        }
    }
}

/// Ways to serve the pods of a column.
pub(crate) struct WaysToServe {
    pub(crate) served: Vec<ServedDemand>,
    /// Every way that can be best is among them.
    pub(crate) is_all: bool,
    /// Steps of the search that they cost beside the one of the column.
    pub(crate) more_steps: u64,
}

/// Pods that still wait, and which of them a column would serve.
#[derive(Clone)]
pub(crate) struct UnservedPods {
    /// How many of each kind.
    pub(crate) left: Vec<u32>,
}

impl UnservedPods {
    /// The pods of a column on a GPU, in the order of the kinds. `None` if fewer wait. `of_pool`:
    /// the kinds that may go to its pool.
    pub(crate) fn serve(
        &self,
        of_pool: &[PoolKinds],
        kinds: &[DemandKind],
        surplus: &[i128],
        served: &[(usize, u8)],
    ) -> Option<ServedDemand> {
        let mut pods = Vec::new();
        for (profile, count) in served {
            let mut missing = u32::from(*count);
            for kind in &of_pool[*profile].kinds {
                if missing == 0 {
                    break;
                }
                let taken = missing.min(self.left[*kind]);
                if taken > 0 {
                    missing -= taken;
                    pods.push((*kind, taken));
                }
            }
            if missing > 0 {
                return None;
            }
        }
        Some(ServedDemand::of(pods, kinds, surplus))
    }

    /// The same in every way that can be best, that of [`Self::serve`] first, if they are not too
    /// many.
    pub(crate) fn ways(
        &self,
        of_pool: &[PoolKinds],
        kinds: &[DemandKind],
        surplus: &[i128],
        served: &[(usize, u8)],
    ) -> WaysToServe {
        let first = self.serve(of_pool, kinds, surplus, served);
        if first.is_none() || served.iter().all(|(profile, _)| of_pool[*profile].is_only_order) {
            let served = first.into_iter().collect();
            return WaysToServe { served, is_all: true, more_steps: 0 };
        }
        let (taken, found) = (Vec::new(), Vec::new());
        let (left, tries) = (&self.left, MOST_TRIED);
        let mut ways = Ways { left, of_pool, served, taken, found, tries };
        ways.split_profile(0);
        let is_all = ways.tries > 0 && ways.found.len() < MOST_WAYS;
        let tried = (MOST_TRIED - ways.tries) / TRIED_IN_STEP;
        let more_steps = ways.found.len().saturating_sub(1).max(tried) as u64;
        let found = ways.found.into_iter();
        let served = found.map(|pods| ServedDemand::of(pods, kinds, surplus)).collect();
        WaysToServe { served, is_all, more_steps }
    }

    pub(crate) fn take(&mut self, served: &ServedDemand) {
        served.of.iter().for_each(|(kind, count)| self.left[*kind] -= count);
    }

    pub(crate) fn give_back(&mut self, served: &ServedDemand) {
        served.of.iter().for_each(|(kind, count)| self.left[*kind] += count);
    }
}

/// The search for the ways to serve the pods of a column.
struct Ways<'w> {
    left: &'w [u32],
    of_pool: &'w [PoolKinds],
    /// Profiles with how many pods of each are served.
    served: &'w [(usize, u8)],
    /// Kinds and counts of the way that is being tried.
    taken: Vec<(usize, u32)>,
    found: Vec<Vec<(usize, u32)>>,
    /// Kinds that may still be tried.
    tries: usize,
}

impl Ways<'_> {
    /// Splits the pods of the profiles from this place on among their kinds.
    fn split_profile(&mut self, place: usize) {
        match self.served.get(place) {
            None => self.found.push(self.taken.clone()),
            Some((_, count)) => self.split(place, 0, u32::from(*count)),
        }
    }

    /// Splits so many pods of a profile among its kinds from `rank` on. A kind is passed over only
    /// if none that it goes before is served in its place.
    fn split(&mut self, place: usize, rank: usize, missing: u32) {
        if missing == 0 {
            return self.split_profile(place + 1);
        }
        let of_pool = self.of_pool;
        let PoolKinds { kinds, is_only_order, before } = &of_pool[self.served[place].0];
        let waits = |rank: &usize| self.left[kinds[*rank]] > 0;
        let Some(rank) = (rank..kinds.len()).find(waits) else { return };
        let kind = kinds[rank];
        let is_passed_over = |other: &usize| self.is_left(*other);
        let most = match !is_only_order && before[rank].iter().any(is_passed_over) {
            true => 0,
            false => missing.min(self.left[kind]),
        };
        let least = if *is_only_order { most } else { 0 };
        for count in (least..=most).rev() {
            if self.tries == 0 || self.found.len() == MOST_WAYS {
                return;
            }
            self.tries -= 1;
            if count == 0 {
                self.split(place, rank + 1, missing);
                continue;
            }
            self.taken.push((kind, count));
            self.split(place, rank + 1, missing - count);
            self.taken.pop();
        }
    }

    /// Whether pods of a kind would be left.
    fn is_left(&self, kind: usize) -> bool {
        let taken = self.taken.iter().find(|(known, _)| *known == kind);
        self.left[kind] > taken.map_or(0, |(_, count)| *count)
    }
}
