//! Whatever was read from a cluster, made harmless for where it is shown.

/// Longer texts are cut: no name of Kubernetes is longer.
const LONGEST: usize = 253;

/// The text without control characters, without characters that turn its direction or cannot be seen, and not
/// too long.
pub(super) fn plain(text: &str) -> String {
    let harmless = |letter: &char| {
        let is_hidden = matches!(letter,
            '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}');
        !letter.is_control() && !is_hidden
    };
    let mut letters = text.chars().filter(harmless);
    let mut kept: String = letters.by_ref().take(LONGEST).collect();
    if letters.next().is_some() {
        kept.push('…');
    }
    kept
}

/// For HTML, in text and in quoted attributes.
pub(super) fn html(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe += "&amp;",
            '<' => safe += "&lt;",
            '>' => safe += "&gt;",
            '"' => safe += "&quot;",
            '\'' => safe += "&#39;",
            letter => safe.push(letter),
        }
    }
    safe
}

/// For Markdown, in a paragraph or a cell of a table: nothing in it is markup, a mention or a link.
pub(super) fn markdown(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe += "&amp;",
            '<' => safe += "&lt;",
            '>' => safe += "&gt;",
            '@' => safe += "&#64;",
            ':' => safe += "&#58;",
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '(' | ')' | '#' | '+' | '!' | '|'
            | '~' | '$' => {
                safe.push('\\');
                safe.push(letter);
            }
            letter => safe.push(letter),
        }
    }
    safe
}

/// For the text of a SARIF message, in which braces are places for arguments and brackets are links.
pub(super) fn sarif(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '{' => safe += "{{",
            '}' => safe += "}}",
            '[' | ']' | '\\' => {
                safe.push('\\');
                safe.push(letter);
            }
            letter => safe.push(letter),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_was_read_acts_where_it_is_shown() {
        assert_eq!(plain("a\u{1b}[31mb\n\u{202e}c\u{0}\u{200b}d"), "a[31mbcd");
        assert_eq!(plain(&"x".repeat(300)).chars().count(), LONGEST + 1);
        let hostile = "<script>alert('x')</script>";
        assert_eq!(html(hostile), "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;");
        let link = "[a](http://x) | @all `b` <i>";
        let safe = r"\[a\]\(http&#58;//x\) \| &#64;all \`b\` &lt;i&gt;";
        assert_eq!(markdown(link), safe);
        assert_eq!(sarif("{0} [a](1)"), r"{{0}} \[a\](1)");
    }
}
