//! Tests of reading objects.

mod objects;
