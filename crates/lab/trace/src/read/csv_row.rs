//! Splits one CSV line into its fields, strictly.
//!
//! RFC 4180 with two limits: a quoted field has no line break, so that a stray quote spoils only
//! its own line; and quotes stand at both ends of a field or nowhere. Parsers that accept
//! `"a"b` as `ab` would change a value without saying so.

/// The fields of one line, in one buffer.
#[derive(Debug, Default)]
pub(crate) struct Fields {
    text: String,
    ends: Vec<usize>,
}

impl Fields {
    pub(crate) fn count(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn get(&self, index: usize) -> &str {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start..self.ends[index]]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.count()).map(|index| self.get(index))
    }

    /// Replaces the fields by those of a CSV line; an error says what is wrong with the quotes.
    pub(crate) fn split_csv(&mut self, line: &str) -> Result<(), &'static str> {
        self.clear();
        let mut rest = line;
        loop {
            rest = match rest.strip_prefix('"') {
                Some(quoted) => self.take_quoted(quoted)?,
                None => self.take_plain(rest)?,
            };
            self.ends.push(self.text.len());
            match rest.strip_prefix(',') {
                Some(next) => rest = next,
                None => return Ok(()),
            }
        }
    }

    /// Replaces the fields by the words of a line.
    pub(crate) fn split_blanks(&mut self, line: &str) {
        self.clear();
        for word in line.split_ascii_whitespace() {
            self.text.push_str(word);
            self.ends.push(self.text.len());
        }
    }

    fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }

    fn take_plain<'a>(&mut self, line: &'a str) -> Result<&'a str, &'static str> {
        let end = line.find(',').unwrap_or(line.len());
        let (field, rest) = line.split_at(end);
        if field.contains('"') {
            return Err("has a quote inside a field that does not start with one");
        }
        self.text.push_str(field);
        Ok(rest)
    }

    fn take_quoted<'a>(&mut self, mut line: &'a str) -> Result<&'a str, &'static str> {
        loop {
            let end = line.find('"').ok_or("has a quote that is not closed on its line")?;
            self.text.push_str(&line[..end]);
            line = &line[end + 1..];
            match line.chars().next() {
                None | Some(',') => return Ok(line),
                Some('"') => self.text.push('"'),
                Some(_) => return Err("has text after a closing quote"),
            }
            line = &line[1..];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes() {
        let mut fields = Fields::default();
        fields.split_csv(r#"a,,"b,""c""","",d"#).expect("good line");
        assert_eq!(fields.iter().collect::<Vec<_>>(), ["a", "", r#"b,"c""#, "", "d"]);
        for bad in [r#"a"b"#, r#""a"b"#, r#""a"#, r#"a,"b"c"d""#] {
            assert!(fields.split_csv(bad).is_err(), "{bad}");
        }
    }
}
