//! Whatever was read from somewhere else, made harmless before it is shown.

use dovetail_objects::{MOST_CONDITION_LETTERS, shortened};

/// Longer texts are cut: no name of Kubernetes is longer.
const LONGEST: usize = 253;

/// The text without control characters, without characters that turn its direction or cannot be
/// seen, and not too long.
pub fn plain(text: &str) -> String {
    cut(text, LONGEST)
}

/// As [`plain`], for a sentence with several names in it.
pub fn plain_sentence(text: &str) -> String {
    cut(text, 8 * LONGEST)
}

fn cut(text: &str, longest: usize) -> String {
    let mut letters = text.chars().filter(|letter| is_harmless(*letter));
    let mut kept: String = letters.by_ref().take(longest).collect();
    if letters.next().is_some() {
        kept.push('…');
    }
    kept
}

/// As [`plain`], for a message that may name many objects: it is cut where the API server would cut
/// the message of a condition, behind a sentence or a word.
pub fn plain_message(text: &str) -> String {
    let text: String = text.chars().filter(|letter| is_harmless(*letter)).collect();
    shortened(&text, MOST_CONDITION_LETTERS).into_owned()
}

/// As [`plain`], but lines stay lines and nothing is cut: for texts in which something was quoted.
pub fn plain_lines(text: &str) -> String {
    text.chars().filter(|letter| *letter == '\n' || is_harmless(*letter)).collect()
}

fn is_harmless(letter: char) -> bool {
    let is_hidden = matches!(letter,
        '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}');
    !letter.is_control() && !is_hidden
}

/// For a cell of CSV: nothing begins like a formula, which spreadsheets would compute.
pub fn cell(text: &str) -> String {
    const SIGNS: [char; 8] = ['=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}'];
    let text = plain(text);
    if text.trim_start().starts_with(SIGNS) { format!("'{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_was_read_moves_the_cursor_or_hides() {
        assert_eq!(plain("a\u{1b}[31mb\n\u{202e}c\u{0}\u{200b}d"), "a[31mbcd");
        assert_eq!(plain(&"x".repeat(300)).chars().count(), LONGEST + 1);
        let long = "word ".repeat(10_000);
        let told = plain_message(&long);
        assert!(told.ends_with(" word…") && told.chars().count() <= MOST_CONDITION_LETTERS);
        assert_eq!(plain_message(&long[..20_000]), long[..20_000]);
        let cells = ["=1+1", " @x", "-team", "+1", "\t=1", "a=b"].map(cell);
        assert_eq!(cells, ["'=1+1", "' @x", "'-team", "'+1", "'=1", "a=b"]);
    }
}
