//! Results of other profilers, parsed from their output.

use systemscope_tests::programs::peers::{Attached, Profiler};
use systemscope_tests::{Folded, Line};

/// Profilers that are attached to a process at the same time.
pub(crate) struct Peers(Vec<(Profiler, Attached)>);

impl Peers {
    /// Attaches the `profilers` that are installed.
    pub(crate) fn attach(profilers: impl IntoIterator<Item = Option<Profiler>>, pid: u32) -> Peers {
        let attach = |profiler: Profiler| {
            let attached = profiler.attach(pid);
            (profiler, attached)
        };
        Peers(profilers.into_iter().flatten().map(attach).collect())
    }

    /// Stops the profilers. Returns the name and the stacks of each, or `None` if the profiler
    /// failed.
    pub(crate) fn stop(self) -> Vec<(String, Option<Folded>)> {
        let stop = |(profiler, attached): (Profiler, Attached)| {
            let folded = stacks_of(&profiler, attached);
            (profiler.name, folded)
        };
        self.0.into_iter().map(stop).collect()
    }
}

/// Joins the texts that `figure` returns for each profiler.
pub(crate) fn describe(
    seen: &[(String, Option<Folded>)],
    figure: impl Fn(&str, &Folded) -> String,
) -> String {
    let describe = |(name, folded): &(String, Option<Folded>)| match folded {
        None => format!("{name}: did not end"),
        Some(folded) if folded.lines.is_empty() => format!("{name}: nothing"),
        Some(folded) => format!("{name}: {}", figure(name, folded)),
    };
    let said: Vec<String> = seen.iter().map(describe).collect();
    said.join("; ")
}

/// Stops a profiler, and returns its stacks, or `None` if it failed.
fn stacks_of(profiler: &Profiler, attached: Attached) -> Option<Folded> {
    let (finished, recording) = attached.stop()?;
    let text = String::from_utf8_lossy(&finished.stdout);
    if profiler.name.starts_with("perf") {
        let text = recording.perf("script --no-inline -F comm,tid,ip,sym")?;
        return Some(perf_script(&text));
    }
    Some(if profiler.name.starts_with("bpftrace") {
        bpftrace(&text)
    } else if profiler.name.starts_with("py-spy") {
        py_spy(&recording.text())
    } else {
        libbpf_tools(&text)
    })
}

fn line(comm: &str, tid: u32, mut frames: Vec<String>, value: u64) -> Line {
    frames.reverse();
    Line {
        comm: comm.to_owned(),
        thread: Some((0, tid)),
        frames,
        value,
    }
}

/// Parses perf's samples: `comm tid`, a line with the address and the name of each frame from the
/// leaf on, and an empty line.
fn perf_script(text: &str) -> Folded {
    let sample = |part: &str| {
        let (head, frames) = part.trim_start_matches('\n').split_once('\n')?;
        let (comm, tid) = head.trim().rsplit_once(' ')?;
        let name = |line: &str| Some(line.trim().split_once(' ')?.1.to_owned());
        let frames: Vec<String> = frames.lines().filter_map(name).collect();
        Some(line(comm.trim(), tid.trim().parse().ok()?, frames, 1))
    };
    Folded {
        lines: text.split("\n\n").filter_map(sample).collect(),
    }
}

/// Parses lines of frames from the root on, separated by `;`, and followed by a space and the
/// number of samples. Python frames have the form `function (file:line)`.
fn py_spy(text: &str) -> Folded {
    let name = |frame: &str| frame.split(" (").next().unwrap_or(frame).to_owned();
    let stack = |row: &str| {
        let (frames, value) = row.rsplit_once(' ')?;
        let leaf_first = frames.rsplit(';').map(name).collect();
        Some(line("", 0, leaf_first, value.parse().ok()?))
    };
    Folded {
        lines: text.lines().filter_map(stack).collect(),
    }
}

/// Parses maps of the form `@map[`, frames from the leaf on, `, tid]: value`.
fn bpftrace(text: &str) -> Folded {
    let mut lines = Vec::new();
    let mut frames: Vec<String> = Vec::new();
    for row in text.lines() {
        if row.starts_with('@') {
            frames.clear();
        }
        if let Some((tid, value)) = row
            .rsplit_once(", ")
            .and_then(|(_, rest)| rest.split_once("]: "))
            && let (Ok(tid), Ok(value)) = (tid.parse(), value.parse())
        {
            lines.push(line("", tid, std::mem::take(&mut frames), value));
        } else if row.starts_with(' ') {
            let name = row.trim();
            let name = name.rsplit_once('+').map_or(name, |(name, _)| name);
            frames.push(name.to_owned());
        }
    }
    Folded { lines }
}

/// Parses stacks: a line for each frame from the leaf on, with kernel frames first, then `- comm
/// (tid)`, and the value.
fn libbpf_tools(text: &str) -> Folded {
    let mut lines = Vec::new();
    let mut frames: Vec<String> = Vec::new();
    let mut thread = None;
    for row in text.lines().map(str::trim) {
        if let Some(name) = row.strip_prefix("- ")
            && let Some((comm, tid)) = name.trim().rsplit_once(" (")
        {
            thread = tid
                .trim_end_matches(')')
                .parse()
                .ok()
                .map(|tid: u32| (comm.to_owned(), tid));
        } else if let Some((comm, tid)) = thread.take() {
            if let Ok(value) = row.parse() {
                lines.push(line(&comm, tid, std::mem::take(&mut frames), value));
            }
        } else if row.is_empty() {
            frames.clear();
        } else {
            frames.push(row.to_owned());
        }
    }
    Folded { lines }
}

/// Stops libbpf-tools' wakeuptime. Returns the names of each sleeper and its waker, and the time in
/// us.
pub(crate) fn wakeuptime(attached: Attached) -> Vec<(String, String, u64)> {
    let printed = attached.stop().map(|(finished, _)| finished.stdout);
    let printed = printed.unwrap_or_default();
    let text = String::from_utf8_lossy(&printed);
    let mut found = Vec::new();
    let (mut target, mut waker) = (String::new(), String::new());
    for row in text.lines().map(str::trim) {
        if let Some(name) = row.strip_prefix("target:") {
            name.trim().clone_into(&mut target);
        } else if let Some(name) = row.strip_prefix("waker:") {
            name.trim().clone_into(&mut waker);
        } else if let Ok(value) = row.parse() {
            found.push((target.clone(), waker.clone(), value));
        }
    }
    found
}
