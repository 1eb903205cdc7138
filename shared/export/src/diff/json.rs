//! Changes as a JSON object.

use std::io::{self, Write};

use profile::Profile;
use profile::diff::{Change, Diff, LEVEL, Subject};
use serde::{Serialize, Serializer};

use super::{state_label, unit_name};

#[derive(Serialize)]
struct Object<'a> {
    version: u32,
    /// Unit of the rates.
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
    stack: Option<Names<'a>>,
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

/// Names of a function or stack. The serializer looks them up while it writes.
struct Names<'a>(&'a Diff, Subject);

impl Serialize for Names<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.names(self.1))
    }
}

impl<'a> Row<'a> {
    fn new(after: &Profile, diff: &'a Diff, change: &Change) -> Row<'a> {
        let subject = change.subject;
        Row {
            function: match subject {
                Subject::Function(_) => diff.names(subject).first().copied(),
                Subject::Stack(..) => None,
            },
            stack: match subject {
                Subject::Function(_) => None,
                Subject::Stack(..) => Some(Names(diff, subject)),
            },
            state: state_label(after, change.state),
            before: change.before.value,
            after: change.after.value,
            difference: change.difference(),
            deviation: change.deviation(),
            significant: change.is_significant(),
        }
    }
}

/// Writes all changes as one JSON object.
///
/// # Errors
/// Returns the errors of `writer`.
pub fn write(
    before: &Profile,
    after: &Profile,
    diff: &Diff,
    writer: &mut dyn Write,
) -> io::Result<()> {
    let rows = |changes: &[Change]| {
        let changes = changes.iter();
        changes
            .map(|change| Row::new(after, diff, change))
            .collect()
    };
    let object = Object {
        version: 1,
        unit: match unit_name(after) {
            None => "nanoseconds per second".to_owned(),
            Some(name) => format!("{name} per second"),
        },
        level: LEVEL,
        before: Window::of(before),
        after: Window::of(after),
        functions: rows(&diff.functions),
        stacks: rows(&diff.stacks),
    };
    serde_json::to_writer(&mut *writer, &object)?;
    writeln!(writer)
}
