//! Who has which device, and how much of it: pods that share a claim have equal parts of what it
//! was given; claims that share a device have what they consume of its capacity, by the counter of
//! which they take the largest share, else equal parts.

use std::collections::BTreeMap;

use super::claim::Given;
use super::offer::Hold;
use super::slice::{ClaimableDevice, DeviceKey};

/// Claims that were given a device, each with its pods.
pub(super) struct Users<'c> {
    pub(super) given: &'c Given,
    /// Numbers of the pods that have it.
    pub(super) pods: Vec<usize>,
    /// Whether these ask for the same by an extended resource.
    pub(super) is_also_asked: bool,
    /// Whether it is kept for pods that are not seen in the node.
    pub(super) is_kept: bool,
}

/// What pods have of one device.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Shares {
    pub(super) hold: Hold,
    /// By pod, in thousandths of the device.
    pub(super) of_pods: Vec<(usize, i64)>,
}

/// What pods have of a device; `None` if no pod has anything of it and it is kept for none.
pub(super) fn shares(device: &ClaimableDevice, users: &[Users<'_>]) -> Option<Shares> {
    let claims = claim_shares(device, users);
    let mut of_pods = Vec::new();
    for (claim, claim_milli) in users.iter().zip(claims) {
        let count = claim.pods.len() as i64;
        let at = |place: i64| claim_milli * place / count.max(1);
        of_pods.extend(
            claim.pods.iter().zip(0..).map(|(pod, place)| (*pod, at(place + 1) - at(place))),
        );
    }
    give_each_a_thousandth(&mut of_pods);
    let hold = match of_pods.len() {
        0 if users.iter().any(|user| user.is_kept) => Hold::Unseen,
        0 => return None,
        1 if !device.is_for_several => Hold::Alone,
        pods => Hold::Shared(pods as i64),
    };
    Some(Shares { hold, of_pods })
}

/// Whoever has less than a thousandth has one; where the device is full, those who have most give
/// it.
fn give_each_a_thousandth(of_pods: &mut [(usize, i64)]) {
    // More pods than there are thousandths have none to give.
    if of_pods.len() > 1000 {
        return;
    }
    of_pods.iter_mut().for_each(|(_, milli)| *milli = (*milli).max(1));
    let sum: i64 = of_pods.iter().map(|(_, milli)| *milli).sum();
    for _ in 1000..sum {
        let most = of_pods.iter_mut().map(|(_, milli)| milli).rev().max();
        if let Some(most) = most {
            *most -= 1;
        }
    }
}

/// What each claim has of a device, in thousandths of it.
fn claim_shares(device: &ClaimableDevice, users: &[Users<'_>]) -> Vec<i64> {
    let stated: Vec<Option<i64>> =
        users.iter().map(|user| stated_milli(device, user.given)).collect();
    let sum: i64 = stated.iter().flatten().sum();
    let unstated = stated.iter().filter(|share| share.is_none()).count() as i64;
    let left = (1000 - sum).max(0);
    let at = |place: i64| left * place / unstated.max(1);
    // Shares of different counters may add up to more than the device, which they then fill.
    let scaled = |milli: i64| if sum > 1000 { milli * 1000 / sum } else { milli };
    let (mut place, mut before) = (0, 0);
    let mut share = |stated: Option<i64>| match stated {
        Some(milli) => {
            before += milli;
            scaled(before) - scaled(before - milli)
        }
        None => {
            place += 1;
            at(place) - at(place - 1)
        }
    };
    stated.into_iter().map(&mut share).collect()
}

/// The largest share of any capacity that a claim consumes, in thousandths and at least one; `None`
/// if it consumes none that is known.
fn stated_milli(device: &ClaimableDevice, given: &Given) -> Option<i64> {
    let shares = given.consumed.iter().filter(|(_, consumed)| **consumed > 0);
    let shares = shares.filter_map(|(name, consumed)| {
        let all = device.capacity.get(name).copied().filter(|all| *all > 0)?;
        let milli = i128::from(*consumed) * 1000 / i128::from(all);
        i64::try_from(milli.clamp(1, 1000)).ok()
    });
    shares.max()
}

/// Claims by the device that they were given.
pub(super) type UsersOf<'c> = BTreeMap<&'c DeviceKey, Vec<Users<'c>>>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::claims::driver::GpuDriver;

    /// What a claim consumes, and its pods.
    type Claimed<'a> = (&'a [(&'a str, i64)], &'a [usize]);

    fn device(memory_gib: i64, is_for_several: bool) -> ClaimableDevice {
        ClaimableDevice {
            driver: GpuDriver::named("gpu.nvidia.com").unwrap(),
            name: "gpu-0".into(),
            node: "n".into(),
            model: None,
            uuid: None,
            parent: None,
            bus: None,
            part: None,
            capacity: [("memory".into(), memory_gib << 30)].into(),
            is_for_several,
            is_tainted: false,
        }
    }

    fn of(device: &ClaimableDevice, claims: &[Claimed<'_>]) -> Option<(Hold, Vec<(usize, i64)>)> {
        let given = |consumed: &[(&str, i64)]| Given {
            device: ("gpu.nvidia.com", "n".into(), "gpu-0".into()),
            consumed: consumed.iter().map(|(name, amount)| ((*name).into(), *amount)).collect(),
        };
        let given: Vec<Given> = claims.iter().map(|(consumed, _)| given(consumed)).collect();
        let users: Vec<Users<'_>> = given
            .iter()
            .zip(claims)
            .map(|(given, (_, pods))| Users {
                given,
                pods: pods.to_vec(),
                is_also_asked: false,
                is_kept: false,
            })
            .collect();
        shares(device, &users).map(|shares| (shares.hold, shares.of_pods))
    }

    #[test]
    fn pods_have_equal_parts_of_a_claim_and_claims_what_they_consume() {
        let (alone, several) = (device(80, false), device(80, true));
        let gib = |amount: i64| amount << 30;
        assert_eq!(of(&alone, &[(&[], &[])]), None);
        assert_eq!(of(&alone, &[(&[], &[7])]), Some((Hold::Alone, vec![(7, 1000)])));
        let three = Some((Hold::Shared(3), vec![(1, 333), (2, 333), (5, 334)]));
        assert_eq!(of(&alone, &[(&[], &[1, 2, 5])]), three);
        // 20 of 80 GiB, and 40 for two pods: a quarter of the device is left over.
        let memory = [("memory", gib(20))];
        let more = [("memory", gib(40)), ("unknown", 9)];
        let found = of(&several, &[(&memory, &[1]), (&more, &[2, 3])]);
        assert_eq!(found, Some((Hold::Shared(3), vec![(1, 250), (2, 250), (3, 250)])));
        // Who states nothing has an equal part of what others leave.
        let none = [("memory", 0)];
        let found = of(&several, &[(&memory, &[1]), (&none, &[2]), (&[], &[3])]);
        assert_eq!(found, Some((Hold::Shared(3), vec![(1, 250), (2, 375), (3, 375)])));
        // Who states less than a thousandth has one, whatever is left.
        let least = [("memory", 1)];
        let found = of(&several, &[(&memory, &[1]), (&least, &[2]), (&[], &[3])]);
        assert_eq!(found, Some((Hold::Shared(3), vec![(1, 250), (2, 1), (3, 749)])));
        // Nobody has more than there is.
        let most = [("memory", gib(60))];
        let found = of(&several, &[(&most, &[1]), (&most, &[2])]);
        assert_eq!(found, Some((Hold::Shared(2), vec![(1, 500), (2, 500)])));
        assert_eq!(of(&several, &[(&[], &[4])]), Some((Hold::Shared(1), vec![(4, 1000)])));
    }

    #[test]
    fn whoever_has_a_device_has_a_thousandth_of_it_and_a_full_device_is_given_away_whole() {
        let several = device(80, true);
        let shares = |claims: &[Claimed<'_>]| -> Vec<i64> {
            let (_, of_pods) = of(&several, claims).unwrap();
            of_pods.into_iter().map(|(_, milli)| milli).collect()
        };
        let (all, most, least) =
            ([("memory", 80 << 30)], [("memory", 60 << 30)], [("memory", 1 << 20)]);
        assert_eq!(shares(&[(&all, &[1]), (&least, &[2])]), [999, 1]);
        assert_eq!(shares(&[(&all, &[1]), (&[], &[2])]), [999, 1]);
        assert_eq!(shares(&[(&least, &[1, 2, 3]), (&all, &[4])]), [1, 1, 1, 997]);
        assert_eq!(shares(&[(&most, &[1]), (&most, &[2]), (&least, &[3])]), [499, 500, 1]);
        // Half of it is left.
        assert_eq!(shares(&[(&least, &[1, 2]), (&[("memory", 40 << 30)], &[3])]), [1, 1, 500]);
    }
}
