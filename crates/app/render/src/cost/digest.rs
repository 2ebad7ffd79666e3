//! A digest as Markdown and as one HTML file that needs nothing else.

use dovetail_costing::digest::week::{TeamWeek, WeekOut, Weeks};
use dovetail_units::amount::{percent, tenths, usd, whole};

use crate::frame;
use crate::text::{html as safe_html, markdown as safe_markdown};

const STYLE: &str = "\
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid #8886; overflow-wrap: anywhere; }
td + td, th + th { text-align: right; white-space: nowrap; }
";

/// What a week has in a row.
type CellOf = dyn Fn(&WeekOut) -> String;

/// All weeks, or that there is none.
pub fn all_markdown(weeks: &Weeks) -> String {
    match weeks.of_teams.is_empty() {
        true => format!("{}\n", safe_markdown(&nobody(weeks))),
        false => weeks.of_teams.iter().map(markdown).collect::<Vec<_>>().join("\n"),
    }
}

/// One team's week.
pub fn markdown(week: &TeamWeek) -> String {
    let safe = safe_markdown;
    let mut text = format!("# GPUs of {}, {}\n\n", safe(&week.team), safe(&period(week)));
    text += &format!("**{}**\n\n", safe(&first_line(week)));
    for rows in [amounts(week), jobs(week)] {
        let Some((head, rows)) = rows.split_first() else { continue };
        let line = |cells: &[String]| {
            let cells: Vec<String> = cells.iter().map(|cell| safe(cell)).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        text += &line(head);
        text += &format!("|---{}|\n", "|--:".repeat(head.len() - 1));
        rows.iter().for_each(|row| text += &line(row));
        text.push('\n');
    }
    text + &last_lines(week).iter().map(|told| format!("{}\n", safe(told))).collect::<String>()
}

/// All weeks.
pub fn html(weeks: &Weeks) -> String {
    let safe = safe_html;
    let mut page = frame::start("GPU digest", STYLE);
    if weeks.of_teams.is_empty() {
        page += &format!("<p>{}</p>\n", safe(&nobody(weeks)));
    }
    for week in &weeks.of_teams {
        page += &format!("<h1>GPUs of {}, {}</h1>\n", safe(&week.team), safe(&period(week)));
        page += &format!("<p><strong>{}</strong></p>\n", safe(&first_line(week)));
        for rows in [amounts(week), jobs(week)] {
            let Some((head, rows)) = rows.split_first() else { continue };
            let line = |tag: &str, cells: &[String]| {
                let cells = cells.iter().map(|cell| format!("<{tag}>{}</{tag}>", safe(cell)));
                format!("<tr>{}</tr>\n", cells.collect::<String>())
            };
            page += &format!("<table>\n{}", line("th", head));
            rows.iter().for_each(|row| page += &line("td", row));
            page += "</table>\n";
        }
        last_lines(week).iter().for_each(|told| page += &format!("<p>{}</p>\n", safe(told)));
    }
    page + frame::END
}

fn day(time: &str) -> &str {
    time.split('T').next().unwrap_or_default()
}

/// Where no team has anything to be told.
fn nobody(weeks: &Weeks) -> String {
    let read = match weeks.hours_never_read {
        missing if missing >= weeks.hours => "there is no data for this time".to_owned(),
        missing if missing > 0.0 => {
            format!("{} of the {} hours have no data", tenths(missing), whole(weeks.hours))
        }
        _ => "all of this time has data".to_owned(),
    };
    format!(
        "No GPU was allocated to any team from {} to {} (UTC): {read}.",
        day(&weeks.from),
        day(&weeks.last_day)
    )
}

fn period(week: &TeamWeek) -> String {
    format!("{} to {}", day(&week.from), day(&week.last_day))
}

fn first_line(week: &TeamWeek) -> String {
    let WeekOut { gpu_hours, idle_gpu_hours, unknown_gpu_hours, .. } = week.week;
    if gpu_hours == 0.0 {
        let before = match &week.week_before {
            Some(before) if before.gpu_hours > 0.0 => {
                format!("; in the week before the team had {} GPU-hours", tenths(before.gpu_hours))
            }
            _ => String::new(),
        };
        return format!("No GPU was allocated this week{before}.");
    }
    let cost = match week.week.cost_usd_micros {
        Some(_) if week.week.is_partly_unpriced => {
            format!(" for {} (partly without a price)", usd(week.week.cost_usd_micros))
        }
        Some(_) => format!(" for {}", usd(week.week.cost_usd_micros)),
        None => ", cost unknown".to_owned(),
    };
    let held = tenths(gpu_hours);
    let idle = match (week.week.active_share, week.week.idle_usd_micros) {
        (None, _) => {
            return format!("{held} GPU-hours{cost}; their use was not measured.");
        }
        _ if idle_gpu_hours == 0.0 => "none of them idle".to_owned(),
        (_, None) => format!("{} of them idle", tenths(idle_gpu_hours)),
        (_, idle) => format!("{} of them idle, {}", tenths(idle_gpu_hours), usd(idle)),
    };
    let unknown = match unknown_gpu_hours {
        hours if hours > 0.0 => format!("; the use of {} was not measured", tenths(hours)),
        _ => String::new(),
    };
    format!("{held} GPU-hours{cost}; {idle}{unknown}.")
}

/// Dollars, with a sign that there is more where something has no price.
fn cost(usd_micros: Option<i64>, is_partly_unpriced: bool) -> String {
    let more = if usd_micros.is_some() && is_partly_unpriced { " *" } else { "" };
    format!("{}{more}", usd(usd_micros))
}

/// The first row is the head.
fn amounts(week: &TeamWeek) -> Vec<Vec<String>> {
    let share = |share: Option<f64>| share.map_or_else(|| "-".to_owned(), percent);
    let lines: [(&str, Box<CellOf>); 6] = [
        ("allocated GPU-hours", Box::new(|week| tenths(week.gpu_hours))),
        ("active share of measured GPU time", Box::new(move |week| share(week.active_share))),
        ("idle GPU-hours", Box::new(|week| tenths(week.idle_gpu_hours))),
        ("unmeasured GPU-hours", Box::new(|week| tenths(week.unknown_gpu_hours))),
        ("cost", Box::new(|week| cost(week.cost_usd_micros, week.is_partly_unpriced))),
        ("cost of idle GPUs", Box::new(|week| cost(week.idle_usd_micros, week.is_partly_unpriced))),
    ];
    let mut rows = vec![["", "this week", "the week before"].map(str::to_owned).to_vec()];
    rows.extend(lines.iter().map(|(name, cell)| {
        let before = week.week_before.as_ref().map_or_else(|| "-".to_owned(), cell);
        vec![(*name).to_owned(), cell(&week.week), before]
    }));
    rows
}

fn jobs(week: &TeamWeek) -> Vec<Vec<String>> {
    if week.idle_jobs.is_empty() {
        return Vec::new();
    }
    let head = ["most idle", "GPU-hours", "idle", "cost of idle"].map(str::to_owned).to_vec();
    let job = |job: &dovetail_costing::digest::week::JobOut| {
        vec![
            job.job.clone(),
            tenths(job.gpu_hours),
            tenths(job.idle_gpu_hours),
            cost(job.idle_usd_micros, job.is_partly_unpriced),
        ]
    };
    std::iter::once(head).chain(week.idle_jobs.iter().map(job)).collect()
}

fn last_lines(week: &TeamWeek) -> Vec<String> {
    let mut told = vec![
        "A GPU is idle in every second in which it is allocated and does no work according to the best available signal. Short pauses count \
         too, and every job has some."
            .to_owned(),
        format!(
            "Days are UTC. Prices are those in force when the usage was recorded, split by {}. A dash is an unknown value.",
            week.method
        ),
    ];
    told.extend(week.restated.map(|text| format!("Of this team: {text}.")));
    let missing = |hours: f64, which: &str| {
        let together = match week.clusters {
            ..=1 => String::new(),
            several => format!(", of {several} clusters together,"),
        };
        format!(
            "{} of the {} hours of the {which}{together} have no data and are not included in any \
             amount.",
            tenths(hours),
            whole(week.hours)
        )
    };
    let weeks = [("this week", Some(&week.week)), ("the week before", week.week_before.as_ref())];
    for (name, of) in weeks {
        if let Some(of) = of.filter(|of| of.is_partly_unpriced) {
            // Where nothing has a price no amount has a star.
            let star = if of.cost_usd_micros.is_some() { "* " } else { "" };
            told.push(format!(
                "{star}Without a price {name}: {} of {} GPU-hours; their cost is unknown and not included in any \
                 amount.",
                tenths(of.unpriced_gpu_hours),
                tenths(of.gpu_hours)
            ));
        }
    }
    if week.hours_never_read > 0.0 {
        told.push(missing(week.hours_never_read, "week"));
    }
    match week.week_before {
        None => told.push("There is no data for the week before.".to_owned()),
        Some(_) if week.hours_never_read_before > 0.0 => {
            told.push(missing(week.hours_never_read_before, "week before"));
        }
        Some(_) => {}
    }
    told
}
