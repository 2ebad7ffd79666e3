#![no_main]

#[path = "../readers.rs"]
mod readers;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    // What is refused is as good as what is taken; a panic is not.
    let _ = readers::exporter(bytes);
});
