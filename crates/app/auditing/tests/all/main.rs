//! Tests of audits as documents.

mod figures;
mod ignore_file;
mod spot;
mod unconfirmed;
