//! Each day says how far apart the samples were that it rests on.

use dovetail_account::device_time::Span;
use dovetail_account::rollup::HOUR_MS;
use dovetail_store::{DayResolution, Reading};

use crate::databases::{Databases, open, run};
use crate::world::{START_HOUR, START_MS, World};

#[test]
fn an_hour_rests_on_its_coarsest_part_until_it_is_read_as_a_whole() {
    let databases = Databases::start();
    for address in &databases.addresses {
        run(async {
            let mut store = open(address).await;
            let world = World::new("one", 9);
            let now_ms = world.period().to_ms;
            let half = |from: u64, to: u64| Span {
                from_ms: START_MS + from * HOUR_MS / 2,
                to_ms: START_MS + to * HOUR_MS / 2,
            };
            let day = START_HOUR / 24;
            // Hours 20 to 27 by halves: what is read, how far apart, and what the two days then
            // rest on.
            let rows = [
                (
                    half(40, 54),
                    Some(60_000),
                    [(4, 0, Some(60), Some(60)), (3, 0, Some(60), Some(60))],
                ),
                // Half of hour 21 more coarsely, half of hour 26 more finely.
                (
                    half(42, 43),
                    Some(300_000),
                    [(4, 0, Some(60), Some(300)), (3, 0, Some(60), Some(60))],
                ),
                (
                    half(53, 54),
                    Some(15_000),
                    [(4, 0, Some(60), Some(300)), (3, 0, Some(60), Some(60))],
                ),
                // Both as a whole.
                (
                    half(42, 44),
                    Some(30_000),
                    [(4, 0, Some(30), Some(60)), (3, 0, Some(60), Some(60))],
                ),
                (
                    half(52, 54),
                    Some(15_000),
                    [(4, 0, Some(30), Some(60)), (3, 0, Some(15), Some(60))],
                ),
                // By somebody who does not say.
                (half(48, 54), None, [(4, 0, Some(30), Some(60)), (3, 3, None, None)]),
            ];
            for (span, step_ms, expected) in rows {
                let reading = Reading { step_ms, ..world.reading(span) };
                store.keep(&reading, now_ms).await.unwrap();
                let found = DayResolution::of(&mut store, "one", world.period()).await.unwrap();
                let expected = expected.into_iter().zip(day..).map(|(of_day, day)| {
                    let (hours_read, hours_unknown, finest_s, coarsest_s) = of_day;
                    DayResolution {
                        day,
                        hours_read,
                        hours_unknown,
                        finest_ms: finest_s.map(|s: u64| s * 1000),
                        coarsest_ms: coarsest_s.map(|s: u64| s * 1000),
                    }
                });
                assert_eq!(found, expected.collect::<Vec<_>>(), "{span:?} {step_ms:?}");
            }
            // Only hours of the period count.
            let found = DayResolution::of(&mut store, "one", half(40, 41)).await.unwrap();
            assert_eq!((found.len(), found[0].hours_read), (1, 1));
            assert!(DayResolution::of(&mut store, "two", world.period()).await.unwrap().is_empty());
        });
    }
}
