//! Unbounded one-dimensional knapsack: the dearest filling of one device.

/// Value of the dearest filling of `capacity` units, each item as often as wanted, and how often
/// each is used.
///
/// `size[i] >= 1` and `value[i] >= 0`, both in whole units: the result is exact. Time and memory
/// grow with `capacity` times the number of items.
pub(crate) fn dearest_filling(capacity: usize, size: &[usize], value: &[i128]) -> (i128, Vec<u32>) {
    let mut best = vec![0; capacity + 1];
    let mut last_item: Vec<Option<usize>> = vec![None; capacity + 1];
    for room in 1..=capacity {
        best[room] = best[room - 1];
        for item in 0..size.len() {
            if size[item] <= room && best[room - size[item]] + value[item] > best[room] {
                best[room] = best[room - size[item]] + value[item];
                last_item[room] = Some(item);
            }
        }
    }
    let mut used = vec![0; size.len()];
    let mut room = capacity;
    while room > 0 {
        match last_item[room] {
            Some(item) => {
                used[item] += 1;
                room -= size[item];
            }
            None => room -= 1,
        }
    }
    (best[capacity], used)
}

/// The largest unit that divides both; 0 divides nothing and is divided by all.
#[must_use]
pub fn greatest_common_divisor(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}
