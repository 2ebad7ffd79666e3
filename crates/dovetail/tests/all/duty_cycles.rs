//! Published duty cycles of 143 pods with one GPU each, as a usage file.

use std::io::Read as _;
use std::path::Path;

use flate2::read::GzDecoder;

/// The published table with the columns of `--usage`.
pub(crate) fn as_usage_file(traces: &Path) -> String {
    let published = only_file_of_tar_gz(&traces.join("genai/pod_gpu_duty_cycle_anon.tar.gz"));
    let mut lines = published.lines();
    assert_eq!(lines.next(), Some("value,timestamp_anon,container_ip"));
    let row = |line: &str| {
        let [value, time, pod] = line.split(',').collect::<Vec<_>>()[..] else { panic!("{line}") };
        format!("{time},{pod},0,{value}\n")
    };
    lines.map(row).fold("timestamp_s,pod,gpu,activity_percent\n".to_owned(), |all, row| all + &row)
}

/// The only file in a tar archive: a header of 512 bytes with the size in octal digits, then the
/// file.
fn only_file_of_tar_gz(archive: &Path) -> String {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(archive).expect("the archive");
    GzDecoder::new(file).read_to_end(&mut bytes).expect("a whole gzip stream");
    let size = std::str::from_utf8(&bytes[124..135]).expect("octal digits");
    let size = usize::from_str_radix(size, 8).expect("octal digits");
    String::from_utf8(bytes[512..512 + size].to_vec()).expect("a CSV file")
}
