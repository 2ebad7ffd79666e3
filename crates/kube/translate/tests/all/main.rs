//! Tests of translating objects.

mod translate;
