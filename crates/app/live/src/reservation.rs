//! Reservations from one time to another, for people.

use dovetail_console::app::App;
use dovetail_console::style::OutputStream;
use dovetail_console::table::{counted, narrow_table, wrapped};
use dovetail_control::ask::ReservationLine;
use dovetail_objects::harmless;

/// A table, and why reservations are refused or have less than they should.
pub(crate) fn text(app: &App, reservations: &[ReservationLine]) -> String {
    if reservations.is_empty() {
        return String::new();
    }
    let title = counted(reservations.len(), "reservation");
    let row = |line: &ReservationLine| {
        vec![
            harmless(&line.name).into_owned(),
            harmless(&beneficiary(line)).into_owned(),
            format!("{} of {}", line.reserved_pods, line.pods),
            harmless(&line.from).into_owned(),
            harmless(&line.to).into_owned(),
            harmless(&line.phase).into_owned(),
        ]
    };
    let header = ["reservation", "for", "pods", "from", "to", "phase"];
    let table = narrow_table(&header, reservations.iter().map(row).collect());
    let mut text = format!("\n{}\n\n{table}", app.style(OutputStream::Result).strong(&title));
    for line in reservations.iter().filter(|line| !line.message.is_empty()) {
        let told = format!("reservation {}: {}", line.name, line.message);
        text += &wrapped(&harmless(&told), 0);
        text.push('\n');
    }
    text
}

/// Whose jobs may use it.
fn beneficiary(line: &ReservationLine) -> String {
    match (&line.queue, &line.job) {
        (Some(queue), _) => format!("queue {queue}"),
        (None, Some(job)) => format!("job {job}"),
        (None, None) => "nobody".to_owned(),
    }
}
