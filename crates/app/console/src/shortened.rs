//! Notes that end in a list, for people: its first parts and how many more there are. JSON has all
//! of them.

/// So many parts are shown.
const MOST: usize = 5;

/// Between two parts of a list in a note.
pub const BETWEEN: &str = "; ";

/// A note without the parts of its list beyond the first.
pub fn shortened(note: &str) -> String {
    let mut parts = note.split(BETWEEN);
    let shown: Vec<&str> = parts.by_ref().take(MOST).collect();
    match parts.count() {
        0 => note.to_owned(),
        more => format!("{}{BETWEEN}and {more} more", shown.join(BETWEEN)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_is_cut_and_a_short_one_is_not() {
        assert_eq!(shortened("odd: a; b; c; d; e"), "odd: a; b; c; d; e");
        assert_eq!(shortened("odd: a; b; c; d; e; f; g"), "odd: a; b; c; d; e; and 2 more");
        assert_eq!(shortened(""), "");
    }
}
