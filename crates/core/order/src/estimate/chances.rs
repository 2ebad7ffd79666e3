//! Chances to end, from those who ended and those who have not yet.

/// Makes the chances of a wider group those of a narrower one. For each bucket: the chance that
/// who reaches it ends in it, among the jobs of the group and, as far as they are few, as if
/// `weight` jobs more were known to do as the wider group says (Kaplan and Meier 1958, with the
/// wider chances as prior). `jobs` are, from the longest bucket to the shortest, who ended there
/// and who is known to have reached it only.
pub(super) fn narrow(chances: &mut [f64], weight: f64, jobs: impl Iterator<Item = (f64, f64)>) {
    let mut reach = 0.0;
    for (chance, (ended, only_reached)) in chances.iter_mut().rev().zip(jobs) {
        reach += ended;
        *chance = (ended + weight * *chance) / (reach + weight);
        // Whoever is there has not shown yet whether it ends there.
        reach += only_reached;
    }
}
