//! Texts in the forms of output whose letters may act: HTML, Markdown, SARIF.

/// For HTML, in text and in quoted attributes.
pub fn html(text: &str) -> String {
    escaped(text, |safe, letter, _| match letter {
        '&' => *safe += "&amp;",
        '<' => *safe += "&lt;",
        '>' => *safe += "&gt;",
        '"' => *safe += "&quot;",
        '\'' => *safe += "&#39;",
        letter => safe.push(letter),
    })
}

/// For Markdown, in a paragraph or a cell of a table: nothing in it is markup, a mention or a link.
/// What reads the same without an escape has none: people look at the source, too.
pub fn markdown(text: &str) -> String {
    // A link needs a scheme, a symbol a word after its colon, a formula no digit behind it.
    let acts = |letter, next: Option<char>| match letter {
        ':' => next.is_some_and(|next| !next.is_whitespace() && !next.is_ascii_digit()),
        _ => !next.is_some_and(|next| next.is_ascii_digit()),
    };
    escaped(text, |safe, letter, next| match letter {
        '&' => *safe += "&amp;",
        '<' => *safe += "&lt;",
        '>' => *safe += "&gt;",
        '@' => *safe += "&#64;",
        ':' if acts(letter, next) => *safe += "&#58;",
        '$' if !acts(letter, next) => safe.push(letter),
        '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '#' | '+' | '!' | '|' | '~' | '$' => {
            safe.extend(['\\', letter]);
        }
        letter => safe.push(letter),
    })
}

/// For the text of a SARIF message, in which braces are places for arguments and brackets are
/// links.
pub fn sarif(text: &str) -> String {
    escaped(text, |safe, letter, _| match letter {
        '{' => *safe += "{{",
        '}' => *safe += "}}",
        '[' | ']' | '\\' => safe.extend(['\\', letter]),
        letter => safe.push(letter),
    })
}

/// `write` is told each letter and the next one.
fn escaped(text: &str, write: impl Fn(&mut String, char, Option<char>)) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        write(&mut safe, letter, letters.peek().copied());
    }
    safe
}
