//! Texts in the forms of output whose letters may act: HTML, Markdown, SARIF.

/// For HTML, in text and in quoted attributes.
pub fn html(text: &str) -> String {
    escaped(text, |safe, letter| match letter {
        '&' => *safe += "&amp;",
        '<' => *safe += "&lt;",
        '>' => *safe += "&gt;",
        '"' => *safe += "&quot;",
        '\'' => *safe += "&#39;",
        letter => safe.push(letter),
    })
}

/// For Markdown, in a paragraph or a cell of a table: nothing in it is markup, a mention or a link.
pub fn markdown(text: &str) -> String {
    escaped(text, |safe, letter| match letter {
        '&' => *safe += "&amp;",
        '<' => *safe += "&lt;",
        '>' => *safe += "&gt;",
        '@' => *safe += "&#64;",
        ':' => *safe += "&#58;",
        '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '(' | ')' | '#' | '+' | '!' | '|'
        | '~' | '$' => safe.extend(['\\', letter]),
        letter => safe.push(letter),
    })
}

/// For the text of a SARIF message, in which braces are places for arguments and brackets are
/// links.
pub fn sarif(text: &str) -> String {
    escaped(text, |safe, letter| match letter {
        '{' => *safe += "{{",
        '}' => *safe += "}}",
        '[' | ']' | '\\' => safe.extend(['\\', letter]),
        letter => safe.push(letter),
    })
}

fn escaped(text: &str, write: impl Fn(&mut String, char)) -> String {
    let mut safe = String::with_capacity(text.len());
    text.chars().for_each(|letter| write(&mut safe, letter));
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_was_read_acts_where_it_is_shown() {
        let hostile = "<script>alert('x')</script>";
        assert_eq!(html(hostile), "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;");
        let link = "[a](http://x) | @all `b` <i>";
        let safe = r"\[a\]\(http&#58;//x\) \| &#64;all \`b\` &lt;i&gt;";
        assert_eq!(markdown(link), safe);
        assert_eq!(sarif("{0} [a](1)"), r"{{0}} \[a\](1)");
    }
}
