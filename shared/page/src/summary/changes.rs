//! The changes from one profile to another.

use std::collections::BTreeMap;
use std::io::{self, Write};

use export::text::brief::short_name;
use export::text::numbers::count;
use profile::diff::{Change, Diff, LEVEL};
use profile::{Profile, State, Unit};

use super::head::title_of_changes;
use crate::html::Escaped;

/// Maximum rows of the table.
const LISTED: usize = 20;
/// Minimum rows of the table, also if chance may explain them.
const LEAST_LISTED: usize = 5;

/// Writes the sentence and the table.
pub(super) fn write(
    before: &Profile,
    after: &Profile,
    changes: &Diff,
    writer: &mut dyn Write,
) -> io::Result<()> {
    let scale = Scale::new(after);
    let functions = &changes.functions;
    let significant = functions.iter().filter(|change| change.is_significant());
    let significant = significant.count();
    write!(
        writer,
        "<h1>{}</h1>\n<p class=\"answer\">{}",
        Escaped(&title_of_changes(after)),
        sentence(before, after, changes, &scale)
    )?;
    let number = match significant {
        0 => "No function changed beyond what chance does".to_owned(),
        1 => "1 function changed beyond what chance does".to_owned(),
        number => format!("{number} functions changed beyond what chance does"),
    };
    write!(writer, " {number}")?;
    if let Some(largest) = functions.first().filter(|_| significant > 0) {
        let names = changes.names(largest.subject);
        write!(
            writer,
            "; the largest change: <b>{}</b> {} in <code>{}</code>",
            scale.difference(largest),
            state_name(largest.state),
            Escaped(&short_name(names.first().copied().unwrap_or_default()))
        )?;
    }
    writer.write_all(b".</p>\n")?;
    if functions.is_empty() {
        return Ok(());
    }
    let listed = significant.clamp(LEAST_LISTED, LISTED).min(functions.len());
    write!(
        writer,
        "<h2>Changes of functions</h2>\n\
         <div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Changes of functions\">\n\
         <table class=\"changes\">\n\
         <caption>{unit} per second of the window, with what the function calls. ± is what chance \
         does in 99 of 100 cases. Rows marked “maybe chance” may have no cause. Functions marked \
         “new” or “gone” are in one of the two captures only.</caption>\n\
         <thead><tr><th scope=\"col\">Function</th><th scope=\"col\">State</th>\
         <th scope=\"col\" class=\"number\">Change</th><th scope=\"col\" class=\"number\">Before</th>\
         <th scope=\"col\" class=\"number\">After</th><th scope=\"col\">Note</th></tr></thead>\n<tbody>\n",
        unit = scale.unit_in_words(),
    )?;
    for change in functions.iter().take(listed) {
        let names = changes.names(change.subject);
        let note = match (
            change.is_significant(),
            change.before.value > 0.0,
            change.after.value > 0.0,
        ) {
            (false, ..) => "maybe chance",
            (true, false, _) => "new",
            (true, _, false) => "gone",
            (true, true, true) => "",
        };
        let class = if change.difference() > 0.0 {
            "more"
        } else {
            "less"
        };
        writeln!(
            writer,
            "<tr class=\"{class}\"><th scope=\"row\"><code>{}</code></th><td>{}</td>\
             <td class=\"number\">{}</td><td class=\"number\">{}</td><td class=\"number\">{}</td><td>{note}</td></tr>",
            Escaped(&short_name(names.first().copied().unwrap_or_default())),
            state_name(change.state),
            scale.difference(change),
            scale.value(change.before.value),
            scale.value(change.after.value),
        )?;
    }
    writer.write_all(b"</tbody>\n</table>\n</div>\n")?;
    let rest = functions.len() - listed;
    if rest > 0 {
        let beyond = significant.saturating_sub(listed);
        writeln!(
            writer,
            "<p>{}, {beyond} of them beyond chance.</p>",
            count(rest as u64, "more row")
        )?;
    }
    Ok(())
}

/// Returns the sentence on the states: the sums of all stacks.
fn sentence(before: &Profile, after: &Profile, changes: &Diff, scale: &Scale) -> String {
    let mut states: BTreeMap<Option<State>, (f64, f64)> = BTreeMap::new();
    for change in &changes.stacks {
        let (difference, variance) = states.entry(change.state).or_default();
        *difference += change.difference();
        *variance += change.deviation().powi(2);
    }
    let parts: Vec<String> = (states.into_iter())
        .map(|(state, (difference, variance))| {
            let deviation = variance.sqrt();
            let note = if difference.abs() > LEVEL * deviation {
                ""
            } else {
                " (maybe chance)"
            };
            let text = scale.with_error(difference, deviation);
            format!("{} <b>{text}</b>{note}", state_name(state))
        })
        .collect();
    let threads = |profile: &Profile| profile.threads.len();
    let mut text = format!("Per second of the window: {}.", parts.join(", "));
    if threads(before) != threads(after) {
        text.push_str(&format!(
            " There were {} before and {} after.",
            count(threads(before) as u64, "thread"),
            threads(after)
        ));
    }
    text
}

fn state_name(state: Option<State>) -> &'static str {
    match state {
        Some(State::Running) => "running",
        Some(State::Runnable) => "waiting for a CPU",
        Some(State::Blocked) => "blocked",
        None => "counted",
    }
}

/// The unit of the figures.
enum Scale {
    /// Milliseconds; the values are ns.
    Time,
    /// Events.
    Events(String),
}

impl Scale {
    fn new(profile: &Profile) -> Scale {
        match (profile.unit, &profile.meta.sampling) {
            (Unit::Samples, Some(sampling)) if sampling.nanoseconds().is_none() => {
                Scale::Events(sampling.event.to_string())
            }
            _ => Scale::Time,
        }
    }

    fn unit(&self) -> &str {
        match self {
            Scale::Time => "ms",
            Scale::Events(_) => "events",
        }
    }

    fn unit_in_words(&self) -> String {
        match self {
            Scale::Time => "Milliseconds".to_owned(),
            Scale::Events(event) => format!("Events ({})", Escaped(event)),
        }
    }

    fn scaled(&self, value: f64) -> f64 {
        match self {
            Scale::Time => value / 1e6,
            Scale::Events(_) => value,
        }
    }

    fn value(&self, value: f64) -> String {
        format!("{:.1}", self.scaled(value))
    }

    fn with_error(&self, difference: f64, deviation: f64) -> String {
        let unit = self.unit();
        let [difference, error] = [difference, LEVEL * deviation].map(|value| self.scaled(value));
        format!("{difference:+.1} ± {error:.1} {unit}")
    }

    fn difference(&self, change: &Change) -> String {
        self.with_error(change.difference(), change.deviation())
    }
}
