//! Changes as a JSON object.

use std::io::{self, Write};

use profile::Profile;
use profile::diff::{Change, Diff, LEVEL};
use serde::Serialize;

use super::{state, unit};

#[derive(Serialize)]
struct Object<'a> {
    version: u32,
    /// What rates are in.
    unit: String,
    /// Standard deviations beyond which a change is significant.
    level: f64,
    before: Window<'a>,
    after: Window<'a>,
    functions: Vec<Row<'a>>,
    stacks: Vec<Row<'a>>,
}

#[derive(Serialize)]
struct Window<'a> {
    tool: &'a str,
    host: &'a str,
    targets: &'a str,
    start_utc_ns: u64,
    length_ns: u64,
}

#[derive(Serialize)]
struct Row<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<&'a str>,
    /// The thread's name and the frames, root first.
    #[serde(skip_serializing_if = "Option::is_none")]
    stack: Option<&'a [String]>,
    state: &'static str,
    before: f64,
    after: f64,
    difference: f64,
    /// The standard deviation of the difference.
    deviation: f64,
    significant: bool,
}

impl<'a> Window<'a> {
    fn of(profile: &'a Profile) -> Window<'a> {
        let meta = &profile.meta;
        Window {
            tool: &meta.tool,
            host: &meta.host,
            targets: &meta.targets,
            start_utc_ns: meta.window.start_utc_ns,
            length_ns: meta.window.length_ns,
        }
    }
}

impl<'a> Row<'a> {
    fn of_stack(after: &Profile, change: &'a Change) -> Row<'a> {
        Row {
            function: None,
            stack: Some(&change.names),
            state: state(after, change.state),
            before: change.before.value,
            after: change.after.value,
            difference: change.difference(),
            deviation: change.deviation(),
            significant: change.is_significant(),
        }
    }

    fn of_function(after: &Profile, change: &'a Change) -> Row<'a> {
        Row {
            function: change.names.first().map(String::as_str),
            stack: None,
            ..Row::of_stack(after, change)
        }
    }
}

/// Writes all changes.
///
/// # Errors
/// Those of the writer.
pub fn write(
    before: &Profile,
    after: &Profile,
    diff: &Diff,
    writer: &mut dyn Write,
) -> io::Result<()> {
    let functions = diff.functions.iter();
    let stacks = diff.stacks.iter();
    let object = Object {
        version: 1,
        unit: match unit(after) {
            None => "nanoseconds per second".to_owned(),
            Some(name) => format!("{name} per second"),
        },
        level: LEVEL,
        before: Window::of(before),
        after: Window::of(after),
        functions: functions
            .map(|change| Row::of_function(after, change))
            .collect(),
        stacks: stacks.map(|change| Row::of_stack(after, change)).collect(),
    };
    serde_json::to_writer(&mut *writer, &object)?;
    writeln!(writer)
}
