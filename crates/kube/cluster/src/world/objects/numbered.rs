//! Names that end in numbers, or have some in them, as people count: of pods with an index that is
//! its order.

use std::cmp::Ordering;

/// A name; `w-10` comes after `w-9`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Numbered(pub(crate) Box<str>);

impl Ord for Numbered {
    fn cmp(&self, other: &Self) -> Ordering {
        // Names that differ in leading zeros alone are still two.
        parts(&self.0).cmp(parts(&other.0)).then_with(|| self.0.cmp(&other.0))
    }
}

impl PartialOrd for Numbered {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A stretch of digits by its value: without leading zeros the longer one is the larger. Or one
/// without any.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum NamePart<'n> {
    Number(usize, &'n str),
    Text(&'n str),
}

fn parts(name: &str) -> impl Iterator<Item = NamePart<'_>> {
    let mut rest = name;
    std::iter::from_fn(move || {
        let is_number = rest.starts_with(|one: char| one.is_ascii_digit());
        let end = rest.find(|one: char| one.is_ascii_digit() != is_number).unwrap_or(rest.len());
        let (part, after) = rest.split_at(end);
        rest = after;
        let digits = part.trim_start_matches('0');
        match (part, is_number) {
            ("", _) => None,
            (_, true) => Some(NamePart::Number(digits.len(), digits)),
            (text, false) => Some(NamePart::Text(text)),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_the_order_of_their_numbers() {
        let sorted = ["7", "a-2-b", "a-10-a", "a-10-b", "w", "w-0", "w-00", "w-2", "w-010", "w-11"];
        let mut names = sorted.map(|name| Numbered(name.into()));
        names.reverse();
        names.sort();
        assert_eq!(names.map(|name| name.0.to_string()), sorted.map(str::to_owned));
    }
}
