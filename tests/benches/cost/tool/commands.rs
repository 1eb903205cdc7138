//! Duration of a command that a tool runs.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use systemscope_tests::printed::output::median;
use systemscope_tests::printed::table::{Table, Verdict};
use systemscope_tests::programs::binaries::binary;
use systemscope_tests::programs::tool::TOOLS;
use systemscope_tests::programs::workload::scratch;

use crate::figures::{WALL_CLOCK, format_spread, in_turn};

const ROUNDS: usize = 20;
const COMMAND: &str = "true";

/// Measures `true` alone and under tools. Each row shows by how much a tool prolongs it.
pub(crate) fn times(table: &mut Table) {
    let folder = scratch();
    let ours = TOOLS.map(|tool| {
        let words = format!("{} -o out.json -- {COMMAND}", binary(tool).display());
        (format!("{tool} -- {COMMAND}"), words)
    });
    let others = [
        COMMAND.to_owned(),
        format!("perf record -g -o perf.data -- {COMMAND}"),
        format!("strace -f -o strace.out {COMMAND}"),
    ];
    let others = others.map(|words| (words.clone(), words));
    let all = others.into_iter().chain(ours);
    let all: Vec<_> = all
        .filter(|(_, words)| run(words, folder.path()).is_some())
        .collect();
    let figures = in_turn(ROUNDS, all, |(_, words)| {
        run(words, folder.path()).expect("as before")
    });
    for figure in &figures {
        let measured = format!("{} ms", format_spread(&figure.values, 1));
        let added = median(figure.added_to(&figures[0]));
        let measured = if figure.subject.0 == COMMAND {
            measured
        } else {
            format!("{measured}, {added:.0} ms more than alone")
        };
        let cells = [
            "a command from start to end",
            &figure.subject.0,
            &measured,
            WALL_CLOCK,
            "",
        ];
        table.row(&cells, Verdict::Figure);
    }
}

/// Returns the time until the command ends, in ms, or `None` if it cannot run.
fn run(words: &str, folder: &Path) -> Option<f64> {
    let mut words = words.split(' ');
    let mut command = Command::new(words.next()?);
    command.args(words).current_dir(folder);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let begun = Instant::now();
    let status = command.status().ok()?;
    status
        .success()
        .then(|| begun.elapsed().as_secs_f64() * 1e3)
}
