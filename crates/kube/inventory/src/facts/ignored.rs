//! Checks that an object asks to ignore.

use std::collections::BTreeSet;

/// Ids in an annotation, separated by commas or blanks.
pub(super) fn ignores(annotation: Option<&str>) -> BTreeSet<String> {
    let words = annotation.unwrap_or_default().split([',', ' ']);
    words.map(str::trim).filter(|word| !word.is_empty()).map(str::to_uppercase).collect()
}
