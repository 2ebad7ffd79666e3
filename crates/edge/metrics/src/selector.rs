//! Names of objects in a question: as patterns that never leave their quotes, in lines that are not
//! too long.

/// Names in one question, in bytes: between here and a server stand proxies that refuse long lines.
const MOST_NAMES_BYTES: usize = 600;

/// Names as patterns, in groups of which each is short enough.
pub(crate) fn chunks(names: &[&str]) -> Vec<Vec<String>> {
    let mut chunks: Vec<Vec<String>> = Vec::new();
    let mut length = usize::MAX;
    for name in names {
        let name = pattern(name);
        if length.saturating_add(name.len()) > MOST_NAMES_BYTES {
            chunks.push(Vec::new());
            length = 0;
        }
        length += name.len() + 1;
        chunks.last_mut().expect("one was pushed").push(name);
    }
    chunks
}

/// A name as a pattern. What is no letter of an object's name becomes any one letter: the answers
/// are compared with the whole name.
pub(crate) fn pattern(name: &str) -> String {
    let letter =
        |letter: char| if letter.is_ascii_alphanumeric() || letter == '-' { letter } else { '.' };
    name.chars().map(letter).collect()
}
