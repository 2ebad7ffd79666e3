//! SPDX licence expressions, as far as package manifests use them.

/// Whether a set of accepted licences satisfies an expression such as
/// `(MIT OR Apache-2.0) AND Unicode-3.0`. `accepts` is asked for each licence, with its exception
/// as in `Apache-2.0 WITH LLVM-exception`. The old form `MIT/Apache-2.0` means `OR`.
///
/// # Errors
/// Says what in the expression cannot be read.
pub(super) fn satisfied(expression: &str, accepts: &dyn Fn(&str) -> bool) -> Result<bool, String> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut parser = Parser { words: &words, accepts };
    let satisfied = parser.any_of()?;
    match parser.words.first() {
        None => Ok(satisfied),
        Some(word) => Err(format!("`{word}` is not expected")),
    }
}

struct Parser<'a> {
    words: &'a [&'a str],
    accepts: &'a dyn Fn(&str) -> bool,
}

impl Parser<'_> {
    /// `OR` binds weaker than `AND`.
    fn any_of(&mut self) -> Result<bool, String> {
        let mut satisfied = self.all_of()?;
        while self.take("OR") {
            satisfied |= self.all_of()?;
        }
        Ok(satisfied)
    }

    fn all_of(&mut self) -> Result<bool, String> {
        let mut satisfied = self.single()?;
        while self.take("AND") {
            satisfied &= self.single()?;
        }
        Ok(satisfied)
    }

    fn single(&mut self) -> Result<bool, String> {
        if self.take("(") {
            let satisfied = self.any_of()?;
            return if self.take(")") { Ok(satisfied) } else { Err("`)` is missing".to_owned()) };
        }
        let Some((licence, rest)) = self.words.split_first() else {
            return Err("a licence is missing at the end".to_owned());
        };
        if matches!(*licence, ")" | "OR" | "AND" | "WITH") {
            return Err(format!("`{licence}` stands where a licence should"));
        }
        self.words = rest;
        if !self.take("WITH") {
            return Ok((self.accepts)(licence));
        }
        let Some((exception, rest)) = self.words.split_first() else {
            return Err("an exception is missing at the end".to_owned());
        };
        self.words = rest;
        // An exception only adds rights.
        Ok((self.accepts)(licence) || (self.accepts)(&format!("{licence} WITH {exception}")))
    }

    fn take(&mut self, word: &str) -> bool {
        match self.words.split_first() {
            Some((first, rest)) if *first == word => {
                self.words = rest;
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_read_with_their_precedence() {
        let accepts = |licence: &str| matches!(licence, "MIT" | "Zlib");
        let cases = [
            ("MIT", true),
            ("GPL-3.0-only", false),
            ("MIT/Apache-2.0", true),
            ("GPL-3.0-only OR MIT", true),
            ("GPL-3.0-only AND MIT", false),
            ("(GPL-3.0-only OR MIT) AND Zlib", true),
            ("GPL-3.0-only AND MIT OR Zlib", true),
            ("GPL-3.0-only AND (MIT OR Zlib)", false),
            ("MIT WITH Some-exception", true),
            ("GPL-3.0-only WITH Some-exception", false),
        ];
        for (expression, expected) in cases {
            assert_eq!(satisfied(expression, &accepts), Ok(expected), "{expression}");
        }
    }

    #[test]
    fn what_is_no_expression_is_an_error() {
        for expression in ["", "MIT OR", "(MIT", "MIT)", "MIT Zlib", "AND MIT", "MIT WITH"] {
            assert!(satisfied(expression, &|_| true).is_err(), "{expression}");
        }
    }
}
