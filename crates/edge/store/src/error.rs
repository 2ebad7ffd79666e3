//! What can go wrong with a ledger, and what to do about it.

use thiserror::Error;

/// One for each thing that a caller, or the person at the screen, can do.
#[derive(Debug, Error)]
pub enum StoreError {
    /// Nothing can be opened there.
    #[error("ledger {address}: {why}")]
    Address { address: String, why: String },
    /// What stands there is something else.
    #[error("ledger {address} is not a dovetail ledger: {why}; name another file or database")]
    Foreign { address: String, why: String },
    /// A later version of dovetail has written it.
    #[error(
        "ledger {address} has table version {found}, but this version of dovetail supports \
         {known}: use a newer dovetail"
    )]
    Newer { address: String, found: i64, known: i64 },
    /// No room is left.
    #[error(
        "ledger {address}: the disk is full ({why}); earlier data is intact: free disk space, then \
         retry"
    )]
    Full {
        address: String,
        /// In the database's words.
        why: String,
    },
    /// Somebody else writes and does not end.
    #[error("ledger {address}: another program is writing ({why}): retry when it has finished")]
    Busy {
        address: String,
        /// In the database's words.
        why: String,
    },
    /// The connection is gone, or never came.
    #[error(
        "ledger {address}: no connection ({why}); earlier data is intact: retry when the server is \
         back"
    )]
    Lost { address: String, why: String },
    /// The database refuses for another reason.
    #[error("ledger {address}: {why}")]
    Database {
        address: String,
        /// In the database's words.
        why: String,
    },
    /// Rows that nobody can have written.
    #[error("ledger {address} is damaged: {what}; restore it from a copy")]
    Damaged {
        address: String,
        /// Which row, and what is wrong with it.
        what: String,
    },
    /// What was handed in cannot be.
    #[error("the data of cluster `{cluster}` is invalid: {what}")]
    Reading {
        cluster: String,
        /// What cannot be, of which object.
        what: String,
    },
    /// It ends in the future: a clock is wrong.
    #[error(
        "the data of cluster `{cluster}` ends {ahead_s} s in the future: correct the clock of this \
         machine or of {source_name}"
    )]
    Future {
        cluster: String,
        /// Who was read.
        source_name: String,
        /// How far ahead, in seconds, rounded up.
        ahead_s: u64,
    },
    /// The devices of that time are no longer kept, so it cannot be added up anew.
    #[error(
        "cluster `{cluster}`: GPU time before {floor} is no longer stored per GPU, so data for \
         {from} cannot be added; use a --period that starts at {floor} or later"
    )]
    TooOld {
        cluster: String,
        /// Begin of the reading.
        from: String,
        /// First moment that can still be written.
        floor: String,
    },
    /// The answer needs hours that are no longer kept.
    #[error(
        "cluster `{cluster}`: hours before {floor} are stored only as whole days; start at \
         {floor}, or request whole days (UTC), grouped neither by pod nor by node"
    )]
    NoLongerKept {
        cluster: String,
        /// First hour that is kept.
        floor: String,
    },
    /// Devices so far back were forgotten.
    #[error(
        "cluster `{cluster}`: states of single GPUs are available only from {floor} on; use a \
         --period that starts at or after that time"
    )]
    DevicesForgotten {
        cluster: String,
        /// First hour that is kept.
        floor: String,
    },
    /// Nobody wrote anything of it.
    #[error("ledger {address} has no data for cluster `{cluster}`; it has {known}")]
    UnknownCluster { address: String, cluster: String, known: String },
}

impl StoreError {
    /// Whether the same again may go well without anybody doing anything.
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Busy { .. } | Self::Lost { .. })
    }

    /// An error of the database.
    pub(crate) fn of(address: &str, error: &sqlx::Error) -> Self {
        let (address, why) = (address.to_owned(), error.to_string());
        let sqlx::Error::Database(database) = error else {
            return match error {
                sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => {
                    Self::Damaged { address, what: why }
                }
                sqlx::Error::Configuration(_) => Self::Address { address, why },
                _ => Self::Lost { address, why },
            };
        };
        let (code, why) =
            (database.code().unwrap_or_default().into_owned(), database.message().to_owned());
        // PostgreSQL's are five letters or digits, SQLite's are shorter numbers.
        match code.parse::<u32>() {
            Ok(number) if code.len() < 5 => Self::of_sqlite(address, number & 0xff, why),
            _ => Self::of_postgres(address, &code, why),
        }
    }

    /// By primary result code, <https://sqlite.org/rescode.html>.
    fn of_sqlite(address: String, code: u32, why: String) -> Self {
        match code {
            // BUSY, LOCKED
            5 | 6 => Self::Busy { address, why },
            // FULL
            13 => Self::Full { address, why },
            // CANTOPEN, READONLY, PERM, AUTH
            14 | 8 | 3 | 23 => Self::Address { address, why },
            // NOTADB
            26 => Self::Foreign { address, why },
            // CORRUPT
            11 => Self::Damaged { address, what: why },
            _ => Self::Database { address, why },
        }
    }

    /// By SQLSTATE, <https://www.postgresql.org/docs/15/errcodes-appendix.html>.
    fn of_postgres(address: String, code: &str, why: String) -> Self {
        match code {
            "53100" => Self::Full { address, why },
            // Ended by an administrator, a crash, a start.
            "57P01" | "57P02" | "57P03" | "53300" => Self::Lost { address, why },
            // A deadlock, a lock not available.
            "40001" | "40P01" | "55P03" => Self::Busy { address, why },
            code if code.starts_with("08") => Self::Lost { address, why },
            // Unknown password, role or database.
            code if code.starts_with("28") || code.starts_with("3D") => {
                Self::Address { address, why }
            }
            code if code.starts_with("XX") => Self::Damaged { address, what: why },
            _ => Self::Database { address, why },
        }
    }
}

/// Something failed inside; the address is added where it is known.
#[derive(Debug)]
pub(crate) enum Failure {
    Database(sqlx::Error),
    /// Rows that nobody can have written.
    Damaged(String),
    /// Complete as it is.
    Told(StoreError),
}

impl From<sqlx::Error> for Failure {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Told(error)
    }
}

impl Failure {
    pub(crate) fn at(self, address: &str) -> StoreError {
        match self {
            Self::Database(error) => StoreError::of(address, &error),
            Self::Damaged(what) => StoreError::Damaged { address: address.to_owned(), what },
            Self::Told(error) => error,
        }
    }
}
