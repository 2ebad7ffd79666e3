//! What the TOML reader says is wrong, in words for people: it names types of the program.

/// Types by name, and what is expected where one of them is.
const TYPES: [(&str, &str); 14] = [
    ("u8", "a whole number from 0 to 255"),
    ("u16", "a whole number from 0 to 65535"),
    ("u32", "a whole number from 0 to 4294967295"),
    ("u64", "a whole number from 0 to 9223372036854775807"),
    ("usize", "a whole number from 0 to 9223372036854775807"),
    ("i8", "a whole number from -128 to 127"),
    ("i16", "a whole number from -32768 to 32767"),
    ("i32", "a whole number from -2147483648 to 2147483647"),
    ("i64", "a whole number from -9223372036854775808 to 9223372036854775807"),
    ("f32", "a number"),
    ("f64", "a number"),
    ("a string", "text in quotes"),
    ("a boolean", "true or false"),
    ("a map", "a table"),
];

/// Kinds of what was found, as the reader names them, and in words.
const FOUND: [(&str, &str); 8] = [
    ("integer ", ""),
    ("floating point ", ""),
    ("boolean ", ""),
    ("string ", "the text "),
    ("map", "a table"),
    ("sequence", "a list"),
    ("datetime", "a time"),
    ("unit value", "nothing"),
];

/// The message of the reader in words.
pub(crate) fn in_words(message: &str) -> String {
    let message = message.trim_end().replace('\n', ": ");
    let value = ["invalid type: ", "invalid value: "];
    let value = value.iter().find_map(|begin| message.strip_prefix(begin));
    let Some((found, expected)) = value.and_then(|value| value.rsplit_once(", expected ")) else {
        return message;
    };
    format!("{}: expected {}", of_found(found), of_type(expected))
}

fn of_type(expected: &str) -> &str {
    let expected = expected.trim_start_matches("any value of type ");
    TYPES.iter().find(|(name, _)| *name == expected).map_or(expected, |(_, words)| words)
}

fn of_found(found: &str) -> String {
    let found = found.split(" as i128").next().unwrap_or(found);
    let found = found.split(" as u128").next().unwrap_or(found);
    let known = FOUND.iter().find_map(|(name, words)| Some((words, found.strip_prefix(name)?)));
    let Some((words, value)) = known else { return found.to_owned() };
    format!("{words}{}", shortened(value))
}

/// A number of hundreds of digits as a program writes it, in a form that people read.
fn shortened(value: &str) -> String {
    let number = value.trim_matches('`');
    match number.parse::<f64>() {
        Ok(number) if value.len() > 40 => format!("`{number:?}`"),
        _ => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_the_program_have_words() {
        for (message, words) in [
            (
                "invalid type: integer `4294967296` as i128, expected u16",
                "`4294967296`: expected a whole number from 0 to 65535",
            ),
            ("invalid type: map, expected a string", "a table: expected text in quotes"),
            ("invalid value: integer `-1`, expected f64", "`-1`: expected a number"),
            ("invalid type: string \"a, expected b\", expected u8", {
                "the text \"a, expected b\": expected a whole number from 0 to 255"
            }),
            ("missing field `a`", "missing field `a`"),
        ] {
            assert_eq!(in_words(message), words);
        }
        let long = format!("invalid type: floating point `{}.0`, expected i32", "1".repeat(300));
        assert!(in_words(&long).starts_with("`1.1111"), "{}", in_words(&long));
    }
}
