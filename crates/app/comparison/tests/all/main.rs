//! Tests of what documents look like.

mod arena;
mod axis;
mod comparison;
mod number;
