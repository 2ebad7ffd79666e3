//! Objects from files: what `kubectl get … -A -o json` writes.
//!
//! A file holds one or many JSON values, each an object or a list of objects and lists, plain or
//! gzip. They are read one object at a time, so memory does not depend on the size of a file; a
//! list inside of a list is read as one object is. What is no JSON ends the reading with file, line
//! and column; an object that cannot be understood is skipped, and told apart from the others. An
//! object that is there several times is read once, in its newest version.
//!
//! A [`Keeper`] says what of an object is needed at all; [`Pseudonyms`] replace what it is called.

mod anonymous;
mod described;
mod devices;
mod domains;
mod fields;
mod head;
mod keep;
mod lines;
mod once;
mod reader;
mod source;

pub use anonymous::{NamesError, Pseudonyms};
pub use keep::Keeper;
pub use once::SeveralVersions;
pub use reader::{MAX_OBJECT_BYTES, RawObject, Sink, read_objects};
pub use source::{ReadDump, STDIN, collected_at, dump_files, read_file, read_paths};

use std::path::PathBuf;

use dovetail_units::place::FilePosition;
use thiserror::Error;

/// Kind of the object with which a collection begins and ends.
pub const COLLECTION: &str = "Collection";

/// An object that was left out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Error)]
#[error("{file}: {object}: field `{field}`: {problem}")]
pub struct Skipped {
    /// The file, or the server.
    pub file: String,
    /// Kind, namespace and name as far as they are known, else its number in the file.
    pub object: String,
    /// Path of the field that cannot be read.
    pub field: String,
    /// What is wrong with it.
    pub problem: String,
}

/// Why a dump cannot be read.
#[derive(Debug, Error)]
pub enum DumpError {
    /// A file or folder that cannot be opened or read.
    #[error("{}: cannot read the file: check the path and its permissions", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Text that is no JSON, or is cut off.
    #[error(
        "{}: invalid JSON ({problem}); create the file again with `kubectl get nodes,pods,... -A -o json`",
        FilePosition::line(.file, *.line as u64).character(*.column as u64)
    )]
    Json {
        file: String,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// What is wrong.
        problem: String,
    },
    /// One object is larger than any that a server would keep.
    #[error(
        "{file}: object {number} is larger than {} MiB, more than any API server stores: check that the file is a \
         dump",
        MAX_OBJECT_BYTES >> 20
    )]
    TooLarge {
        file: String,
        /// Number of the object in the file, from 1.
        number: u64,
    },
    /// A folder without files that could be a dump.
    #[error("{}: no file name ends in .json, .jsonl, .ndjson or one of these plus .gz: pass the files by \
             name", .path.display())]
    NothingThere {
        /// The folder.
        path: PathBuf,
    },
}
