use std::cell::Cell;
use std::io::{self, Read};

use super::*;

/// All records, as `line: cells`.
fn read(input: impl Read, style: Style) -> Result<Vec<String>, TableError> {
    let mut table = Table::open(input, "t.csv", style)?;
    let columns = table.header().count();
    let mut found = Vec::new();
    while let Some(record) = table.next_record()? {
        let cells: Vec<&str> = (0..columns).map(|column| record.text(column)).collect();
        found.push(format!("{}: {}", record.line(), cells.join("|")));
    }
    Ok(found)
}

#[test]
fn records_have_their_lines_however_lines_end() {
    let text = "\u{feff}a, b\n1 ,\"x\ny\"\n\n# 3,c\n4,d";
    for ends in ["\n", "\r\n", "\r"] {
        let text = text.replace('\n', ends);
        let records = |style| read(text.as_bytes(), style).unwrap();
        assert_eq!(records(Style::Handwritten), ["2: 1|x\ny", "6: 4|d"], "{ends:?}");
        assert_eq!(records(Style::Export), ["2: 1|x\ny", "5: # 3|c", "6: 4|d"], "{ends:?}");
    }
    assert!(read(&b""[..], Style::Export).unwrap().is_empty());
    let table = Table::open(text.as_bytes(), "t.csv", Style::Export).unwrap();
    assert_eq!([table.column("a"), table.column("b"), table.column("c")], [Some(0), Some(1), None]);
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    for (text, told) in [
        (&b"a,b\n1,2\r\n1,2,3\n"[..], "t.csv:3: the row has 3 fields; expected 2 as in the header"),
        (b"a,b\n\n1,\"\n\xff\"\n", "t.csv:3: cell 2 is not UTF-8"),
        (b"a,\xff\n1,2\n", "t.csv:1: cell 2 is not UTF-8"),
        (b"a,b\n1,\"2\n", "t.csv:2: a quote is never closed"),
        (b"a,b\n\n1,2\n\n\"3,4\n5,6", "t.csv:5: a quote is never closed"),
        (b"a,\"b", "t.csv:1: a quote is never closed"),
    ] {
        let error = read(text, Style::Export).unwrap_err().to_string();
        assert!(error.starts_with(told), "{error}");
    }
    let mut table = Table::open(&b"a,b\n1,2\n"[..], "t.csv", Style::Export).unwrap();
    let header = table.bad_header("column `c` is missing: add it".to_owned()).to_string();
    assert_eq!(header, "t.csv:1: column `c` is missing: add it");
    let long = table.bad_header("ü".repeat(100_000)).to_string();
    assert_eq!(long.chars().count(), "t.csv:1: ".len() + 401);
    let record = table.next_record().unwrap().unwrap();
    assert_eq!(
        record.bad_cell(1, "`2` is no name").to_string(),
        "t.csv:2: column `b`: `2` is no name"
    );
}

/// A line, or a quote, without an end: no more of it is read than a record may have.
#[test]
fn a_record_without_an_end_is_not_read_to_its_end() {
    struct Counted<'c, R>(R, &'c Cell<u64>);
    impl<R: Read> Read for Counted<'_, R> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = self.0.read(buffer)?;
            self.1.set(self.1.get() + count as u64);
            Ok(count)
        }
    }
    for (begin, repeated, line) in
        [("", b'a', 1), ("a,b\n1,2\n", b'x', 3), ("a,b\n1,2\n1,\"", b'\n', 3), ("a,b\n\"", b',', 2)]
    {
        let count = Cell::new(0);
        let endless = begin.as_bytes().chain(io::repeat(repeated));
        let error = read(Counted(endless, &count), Style::Export).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("t.csv:{line}: a row is longer than 1024 KiB")),
            "{error}"
        );
        assert!(count.get() <= 2 * MAX_RECORD_BYTES, "{} bytes were read", count.get());
    }
}
