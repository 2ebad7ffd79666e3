//! One stream of JSON values as objects, one at a time.

use std::cell::Cell;
use std::io::{self, BufRead, Cursor, Read};
use std::rc::Rc;

use dovetail_objects::Strange;
use dovetail_units::place::without_position;
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::head::ObjectHeader;
use super::lines::{DumpLine, LineBatch};
use super::{DumpError, Skipped};

/// The largest object that is read. Servers refuse objects of a few MiB.
pub const MAX_OBJECT_BYTES: u64 = 64 << 20;

/// Lists inside of lists that are read: programs that join dumps make one or two levels.
const MOST_NESTED: usize = 16;

/// One object as it was written.
#[derive(Clone, Debug)]
pub struct RawObject<'a> {
    /// Kind, for example `Pod`.
    pub kind: &'a str,
    /// Group and version, for example `apps/v1`; empty if it does not say.
    pub api_version: &'a str,
    /// Namespace; empty for objects of the cluster.
    pub namespace: &'a str,
    pub name: &'a str,
    /// Its `resourceVersion`, if that is a number.
    pub version: Option<u64>,
    /// The whole object.
    pub json: &'a str,
    /// The file, or the server.
    pub file: &'a str,
}

impl RawObject<'_> {
    /// The object as one that is left out.
    pub fn skipped(&self, field: &str, problem: &str) -> Skipped {
        let slash = if self.namespace.is_empty() { "" } else { "/" };
        Skipped {
            file: self.file.to_owned(),
            object: format!("{} {}{slash}{}", self.kind, self.namespace, self.name),
            field: field.to_owned(),
            problem: problem.to_owned(),
        }
    }

    /// The object as one with a field of the wrong shape.
    pub(crate) fn strange(&self, strange: &Strange) -> Skipped {
        self.skipped(&strange.field, &strange.problem)
    }
}

/// Who takes the objects of a dump.
pub trait Sink {
    /// Takes an object.
    fn object(&mut self, object: &RawObject<'_>);
    /// Takes many, in their order: whoever can read them side by side does.
    fn objects(&mut self, objects: &[RawObject<'_>]) {
        objects.iter().for_each(|object| self.object(object));
    }
    /// Hears of one that is no object at all.
    fn skipped(&mut self, skipped: Skipped);
    /// Hears of a list without objects; `kind` is that of its objects, empty for a list of several.
    fn empty_list(&mut self, _kind: &str) {}
    /// Forgets all objects, which are handed over again without old versions of others; false if it
    /// cannot. What is handed over later replaces what was there before.
    fn begin_again(&mut self) -> bool {
        false
    }
}

/// Reads all objects of one stream: objects and lists of objects, one behind the other or inside of
/// each other. `file` is its name in messages. Answers with the number of objects.
///
/// # Errors
/// Text that is no JSON, or one object that is too large; objects before it have been handed on.
pub fn read_objects(
    mut input: impl BufRead,
    file: &str,
    sink: &mut dyn Sink,
) -> Result<u64, DumpError> {
    let left = Rc::new(Cell::new(MAX_OBJECT_BYTES));
    skip_mark(&mut input, file)?;
    let mut state =
        DumpState { file, left: Rc::clone(&left), number: 0, lines: 0, nested: 0, sink };
    let Some(begun) = state.take_lines(&mut input)? else { return Ok(state.number) };
    let limited = Limited { inner: begun.chain(input), left };
    let mut json = serde_json::Deserializer::from_reader(limited);
    loop {
        state.begin();
        // Anything but blanks is the next value, or an error that reading it will tell.
        if json.end().is_ok() {
            return Ok(state.number);
        }
        if let Err(error) = (Top { state: &mut state }).deserialize(&mut json) {
            return Err(state.told(&error));
        }
    }
}

/// Windows programs begin UTF-8 with this mark, and UTF-16 with one of the others.
const UTF_8_MARK: &[u8] = b"\xef\xbb\xbf";
const UTF_16_MARKS: [&[u8]; 2] = [b"\xff\xfe", b"\xfe\xff"];

/// How objects begin that kubectl writes as YAML.
const YAML_BEGINS: [&[u8]; 4] = [b"---", b"apiVersion:", b"items:", b"kind:"];

/// Skips the byte order mark of UTF-8.
///
/// # Errors
/// UTF-16 and YAML, which are no JSON.
fn skip_mark(input: &mut impl BufRead, file: &str) -> Result<(), DumpError> {
    let broken = |problem: String| {
        let file = file.to_owned();
        DumpError::Json { file, line: 1, column: 0, problem }
    };
    let begin = input.fill_buf().map_err(|error| broken(error.to_string()))?;
    if UTF_16_MARKS.iter().any(|mark| begin.starts_with(mark)) {
        return Err(broken("the text is UTF-16, but JSON must be UTF-8".to_owned()));
    }
    if begin.starts_with(UTF_8_MARK) {
        input.consume(UTF_8_MARK.len());
    }
    let begin = input.fill_buf().map_err(|error| broken(error.to_string()))?;
    if YAML_BEGINS.iter().any(|yaml| begin.starts_with(yaml)) {
        return Err(broken("the text is YAML, but dumps must be JSON".to_owned()));
    }
    Ok(())
}

/// What goes on while a stream is read.
struct DumpState<'s> {
    file: &'s str,
    left: Rc<Cell<u64>>,
    number: u64,
    /// Lines before what is read as one stream.
    lines: usize,
    /// Lists around the objects, without the outermost.
    nested: usize,
    sink: &'s mut dyn Sink,
}

impl DumpState<'_> {
    fn begin(&self) {
        self.left.set(MAX_OBJECT_BYTES);
    }

    /// Takes objects as long as each stands on a line of its own, as in a collection: a whole line
    /// is several times faster to read than a stream. Answers with what is to be read as a stream,
    /// behind it the rest; `None` at the end.
    fn take_lines(&mut self, input: &mut impl BufRead) -> Result<Option<Begun>, DumpError> {
        let mut lines = LineBatch::default();
        loop {
            let taken = lines.take(input);
            let read = lines.read();
            let objects = read.iter().take_while(|line| !matches!(line, DumpLine::Other));
            let count = self.hand_on_lines(objects);
            if count < lines.count() {
                let begun = Cursor::new(lines.text_from(count).to_vec());
                return Ok(Some(begun.chain(Failed(taken.err()))));
            }
            taken.map_err(|error| self.broken(&error))?;
            if count == 0 {
                return Ok(None);
            }
        }
    }

    /// Hands on objects that stand on a line each; answers with the number of lines.
    fn hand_on_lines<'l>(&mut self, lines: impl Iterator<Item = &'l DumpLine<'l>>) -> usize {
        let mut objects = Vec::new();
        let before = self.lines;
        for line in lines {
            self.lines += 1;
            let DumpLine::Object(head, json) = line else { continue };
            self.number += 1;
            match head.object(json, self.file, ("", "")) {
                Some(object) => objects.push(object),
                None => {
                    self.sink.objects(&std::mem::take(&mut objects));
                    self.skip("kind", "it is missing");
                }
            }
        }
        self.sink.objects(&objects);
        self.lines - before
    }

    fn broken(&self, error: &io::Error) -> DumpError {
        let (file, line) = (self.file.to_owned(), self.lines + 1);
        DumpError::Json { file, line, column: 0, problem: error.to_string() }
    }

    fn told(&self, error: &serde_json::Error) -> DumpError {
        let file = self.file.to_owned();
        if error.is_io() && self.left.get() == 0 {
            return DumpError::TooLarge { file, number: self.number + 1 };
        }
        let text = error.to_string();
        let problem = without_position(&text).0.to_owned();
        DumpError::Json { file, line: self.lines + error.line(), column: error.column(), problem }
    }

    /// Hands on one object; `kind` and `api_version` are those of the list where it says none
    /// itself.
    fn take(&mut self, json: &str, kind: &str, api_version: &str) {
        self.number += 1;
        self.begin();
        match serde_json::from_str::<ObjectHeader<'_>>(json) {
            Ok(head) => match (head.listed(), head.object(json, self.file, (kind, api_version))) {
                (Some(of), _) => self.take_list(json, of),
                (None, Some(object)) => self.sink.object(&object),
                (None, None) => self.skip("kind", "it is missing"),
            },
            Err(error) => self.skip(".", &format!("it is not an object: {error}")),
        }
    }

    /// Hands on the objects of a list inside of a list.
    fn take_list(&mut self, json: &str, (kind, api_version): (&str, &str)) {
        #[derive(Deserialize)]
        struct List<'a> {
            #[serde(borrow)]
            items: &'a RawValue,
        }
        if self.nested == MOST_NESTED {
            return self.skip("items", "lists are nested too deeply");
        }
        // It is no object itself.
        self.number -= 1;
        let before = self.number;
        self.nested += 1;
        let read = serde_json::from_str::<List<'_>>(json).and_then(|list| {
            let mut items = serde_json::Deserializer::from_str(list.items.get());
            Items { state: &mut *self, kind, api_version }.deserialize(&mut items)
        });
        self.nested -= 1;
        match read {
            Err(error) => {
                self.number += 1;
                self.skip("items", without_position(&error.to_string()).0);
            }
            Ok(()) if self.number == before => self.sink.empty_list(kind),
            Ok(()) => {}
        }
    }

    fn skip(&mut self, field: &str, problem: &str) {
        let object = format!("object {}", self.number);
        let (file, field) = (self.file.to_owned(), field.to_owned());
        self.sink.skipped(Skipped { file, object, field, problem: problem.to_owned() });
    }
}

/// A value at the top: an object, a list of objects, or a bare array of either.
struct Top<'t, 's> {
    state: &'t mut DumpState<'s>,
}

impl<'de> DeserializeSeed<'de> for Top<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<(), D::Error> {
        input.deserialize_any(self)
    }
}

/// The fields of an object that turned out to be no list.
#[derive(Default, Serialize)]
#[serde(transparent)]
struct Fields(std::collections::BTreeMap<String, Box<RawValue>>);

impl Fields {
    /// A field that is a text; empty if it is missing or something else.
    fn text(&self, field: &str) -> String {
        let raw = self.0.get(field).map(|raw| raw.get());
        raw.and_then(|raw| serde_json::from_str(raw).ok()).unwrap_or_default()
    }
}

impl<'de> Visitor<'de> for Top<'_, '_> {
    type Value = ();

    fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("a Kubernetes object or a list of them")
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut items: S) -> Result<(), S::Error> {
        let mut is_empty = true;
        while items.next_element_seed(Top { state: &mut *self.state })?.is_some() {
            is_empty = false;
        }
        if is_empty {
            self.state.sink.empty_list("");
        }
        Ok(())
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        let mut fields = Fields::default();
        let mut has_items = false;
        let before = self.state.number;
        while let Some(key) = map.next_key::<String>()? {
            if key == "items" {
                let (kind, api_version) = (fields.text("kind"), fields.text("apiVersion"));
                let kind = kind.strip_suffix("List").unwrap_or_default();
                let state = &mut *self.state;
                map.next_value_seed(Items { state, kind, api_version: &api_version })?;
                has_items = true;
            } else {
                fields.0.insert(key, map.next_value()?);
            }
        }
        if !has_items {
            let json = serde_json::to_string(&fields).map_err(de::Error::custom)?;
            self.state.take(&json, "", "");
        } else if self.state.number == before
            // kubectl writes the kind behind the objects.
            && let Some(kind) = fields.text("kind").strip_suffix("List")
        {
            self.state.sink.empty_list(kind);
        }
        Ok(())
    }
}

/// The objects of a list.
struct Items<'t, 's> {
    state: &'t mut DumpState<'s>,
    kind: &'t str,
    api_version: &'t str,
}

impl<'de> DeserializeSeed<'de> for Items<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<(), D::Error> {
        input.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Items<'_, '_> {
    type Value = ();

    fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("a list of objects in the field `items`")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut items: S) -> Result<(), S::Error> {
        while let Some(item) = items.next_element::<Box<RawValue>>()? {
            self.state.take(item.get(), self.kind, self.api_version);
        }
        Ok(())
    }
}

/// What was read ahead of a stream.
type Begun = io::Chain<Cursor<Vec<u8>>, Failed>;

/// What went wrong when a stream was read ahead, told where whoever reads it has come so far.
struct Failed(Option<io::Error>);

impl Read for Failed {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

/// Ends when one object has used up its bytes.
struct Limited<R> {
    inner: R,
    left: Rc<Cell<u64>>,
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.left.get();
        if left == 0 {
            return Err(io::Error::other("one object is too large"));
        }
        let most = usize::try_from(left).map_or(buffer.len(), |left| left.min(buffer.len()));
        let read = self.inner.read(&mut buffer[..most])?;
        self.left.set(left - read as u64);
        Ok(read)
    }
}
