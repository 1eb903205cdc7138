//! Reader for folded stacks.

use std::collections::HashSet;
use std::fmt;

/// One folded line.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Line {
    /// Thread name without the IDs.
    pub comm: String,
    /// PID and TID, if the first field is `comm-PID/TID`.
    pub thread: Option<(u32, u32)>,
    /// Frames from the root to the leaf.
    pub frames: Vec<String>,
    /// Value in samples, microseconds or nanoseconds.
    pub value: u64,
}

impl Line {
    /// Returns the innermost frame; empty if there is none.
    pub fn leaf(&self) -> &str {
        self.frames.last().map_or("", String::as_str)
    }

    /// Returns whether a frame has this name. Annotations such as `_[k]` do not count.
    pub fn has(&self, function: &str) -> bool {
        self.frames.iter().any(|frame| bare(frame) == function)
    }

    /// Returns whether these functions call each other directly, outermost first.
    pub fn has_path(&self, path: &[&str]) -> bool {
        has_path(&self.frames, path)
    }
}

impl fmt::Display for Line {
    /// Writes the line as the tool printed it, without the IDs of the thread.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{};{} {}",
            self.comm,
            self.frames.join(";"),
            self.value
        )
    }
}

impl fmt::Display for Folded {
    /// Writes one line of text for each folded line. The precision limits their number.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let most = formatter.precision().unwrap_or(usize::MAX);
        let mut lines = self.lines.iter().take(most);
        lines.try_for_each(|line| write!(formatter, "\n  {line}"))
    }
}

/// Returns whether these functions call each other directly, outermost first.
pub(crate) fn has_path(frames: &[String], path: &[&str]) -> bool {
    frames.windows(path.len()).any(|part| {
        part.iter()
            .map(|frame| bare(frame))
            .eq(path.iter().copied())
    })
}

/// Returns the reason and the resource of a wait from the frame that names them, without the
/// idleness.
pub fn reason(frame: &str) -> Option<&str> {
    let said = bare(frame).strip_prefix('[')?.strip_suffix(']')?;
    let idle = [" (idle)", " (dormant)"];
    let without = idle.iter().find_map(|mark| said.strip_suffix(mark));
    Some(without.unwrap_or(said))
}

/// Returns a frame's name without annotations.
pub fn bare(frame: &str) -> &str {
    let annotations = ["_[k]", "_[o]", "_[r]", "_[c]"];
    let mut name = frame;
    while let Some(shorter) = annotations.iter().find_map(|mark| name.strip_suffix(mark)) {
        name = shorter;
    }
    name
}

/// The lines of a whole output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Folded {
    /// The lines in their order.
    pub lines: Vec<Line>,
}

impl Folded {
    /// Parses folded text strictly. The text must be UTF-8, and sorted by stack without duplicates.
    /// Each line must have one value, no empty name and no control character. No frame may belong
    /// to the profiler itself.
    ///
    /// # Panics
    ///
    /// Panics with the first line that is not folded text.
    pub fn parse(text: &[u8]) -> Folded {
        Folded::try_parse(text, false).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Parses output of `--per-thread` as [`parse`](Folded::parse) does.
    ///
    /// # Panics
    ///
    /// Panics with the first line that is not folded text.
    pub fn parse_per_thread(text: &[u8]) -> Folded {
        Folded::try_parse(text, true).unwrap_or_else(|error| panic!("{error}"))
    }

    fn try_parse(text: &[u8], per_thread: bool) -> Result<Folded, String> {
        let text = str::from_utf8(text).map_err(|error| format!("output is not UTF-8: {error}"))?;
        if !text.is_empty() && !text.ends_with('\n') {
            return Err("output ends in the middle of a line".to_owned());
        }
        let mut lines = Vec::new();
        let mut stacks: Vec<&str> = Vec::new();
        for line in text.split_terminator('\n') {
            lines.push(parse_line(line, per_thread).map_err(|why| format!("{why}: {line:?}"))?);
            stacks.push(line.rsplit_once(' ').map_or(line, |(stack, _)| stack));
        }
        if let Some(pair) = stacks.windows(2).find(|pair| pair[0] >= pair[1]) {
            return Err(format!(
                "{:?} comes before {:?}: not sorted, or not summed",
                pair[0], pair[1]
            ));
        }
        Ok(Folded { lines })
    }

    /// Returns the sum of all values.
    pub fn total(&self) -> u64 {
        self.lines.iter().map(|line| line.value).sum()
    }

    /// Returns the lines for which `condition` holds.
    pub fn only(&self, condition: impl Fn(&Line) -> bool) -> Folded {
        Folded {
            lines: self
                .lines
                .iter()
                .filter(|line| condition(line))
                .cloned()
                .collect(),
        }
    }

    /// Returns the lines that contain a function.
    pub fn under(&self, function: &str) -> Folded {
        self.only(|line| line.has(function))
    }

    /// Returns the lines of a thread. The output must be of `--per-thread`.
    pub fn of_thread(&self, tid: u32) -> Folded {
        self.only(|line| line.thread.is_some_and(|(_, own)| own == tid))
    }

    /// Returns the lines whose leaf ends with an annotation such as `_[o]`.
    pub fn marked(&self, mark: &str) -> Folded {
        self.only(|line| line.leaf().ends_with(mark))
    }

    /// Returns all thread names.
    pub fn comms(&self) -> HashSet<&str> {
        self.lines.iter().map(|line| line.comm.as_str()).collect()
    }

    /// Iterates over all frames, as printed.
    pub fn frames(&self) -> impl Iterator<Item = &str> {
        self.lines
            .iter()
            .flat_map(|line| line.frames.iter().map(String::as_str))
    }

    /// Asserts that no stack was lost.
    ///
    /// # Panics
    ///
    /// Panics if a frame says that a stack was lost.
    pub fn assert_no_stack_missed(&self) {
        let missed = self.frames().find(|frame| frame.contains("[Missed"));
        assert_eq!(missed, None, "a stack was lost");
    }
}

/// Returns whether a frame is a BPF program or a kernel function that calls one. The kernel names a
/// BPF program by `bpf_prog_`, the 16 hex digits of the program's tag, and the program's name.
/// Functions such as `bpf_prog_load` of libbpf and the kernel do not count. A program that a
/// workload runs with `BPF_PROG_TEST_RUN` is the workload's own.
fn has_profilers_own(frames: &[String]) -> bool {
    let is_program = |frame: &String| {
        let mut tags = frame.split("bpf_prog_").skip(1);
        tags.any(|rest| {
            rest.len() >= 16 && rest.bytes().take(16).all(|byte| byte.is_ascii_hexdigit())
        })
    };
    let is_hook =
        |frame: &String| frame.contains("bpf_trace_run") || frame.contains("__traceiter_");
    let by_hand = frames
        .iter()
        .any(|frame| frame.starts_with("__bpf_prog_test_run"));
    frames.iter().any(is_hook) || !by_hand && frames.iter().any(is_program)
}

fn parse_line(line: &str, per_thread: bool) -> Result<Line, &'static str> {
    if line.chars().any(char::is_control) {
        return Err("a control character");
    }
    let (stack, value) = line.rsplit_once(' ').ok_or("no value")?;
    let value = value.parse().map_err(|_| "the value is not a number")?;
    let mut fields = stack.split(';').map(str::to_owned);
    let first = fields.next().ok_or("no thread")?;
    let (comm, thread) = if per_thread {
        parse_thread(&first).ok_or("no comm-PID/TID")?
    } else {
        (first, None)
    };
    if comm.is_empty() {
        return Err("an empty thread name");
    }
    let frames: Vec<String> = fields.collect();
    if frames.iter().any(String::is_empty) {
        return Err("an empty frame");
    }
    if has_profilers_own(&frames) {
        return Err("a frame of the profiler itself");
    }
    Ok(Line {
        comm,
        thread,
        frames,
        value,
    })
}

/// Parses `comm-PID/TID`.
pub(crate) fn parse_thread(field: &str) -> Option<(String, Option<(u32, u32)>)> {
    let (comm, ids) = field.rsplit_once('-')?;
    let (pid, tid) = ids.split_once('/')?;
    Some((
        comm.to_owned(),
        Some((pid.parse().ok()?, tid.parse().ok()?)),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_is_what_follows_the_last_space() {
        let folded = Folded::parse(b"a b;main;operator new(unsigned long) 12\n");
        assert_eq!(folded.lines[0].comm, "a b");
        assert_eq!(folded.lines[0].leaf(), "operator new(unsigned long)");
        assert_eq!(folded.total(), 12);
    }

    #[test]
    fn a_thread_is_named_from_the_right() {
        let folded = Folded::parse_per_thread(b"a-1/2:x 9-10/11;main 3\n");
        assert_eq!(folded.lines[0].comm, "a-1/2:x 9");
        assert_eq!(folded.lines[0].thread, Some((10, 11)));
        assert_eq!(folded.of_thread(11).total(), 3);
        assert_eq!(folded.of_thread(2).total(), 0);
    }

    #[test]
    fn annotations_do_not_hide_a_function() {
        let folded = Folded::parse(b"x;main;g;do_nanosleep_[k];schedule_[k]_[o] 3\n");
        assert_eq!(folded.under("schedule").total(), 3);
        assert_eq!(folded.under("sched").total(), 0);
        assert_eq!(folded.marked("_[o]").total(), 3);
        assert_eq!(folded.marked("_[r]").total(), 0);
        assert!(folded.lines[0].has_path(&["main", "g", "do_nanosleep"]));
        assert!(!folded.lines[0].has_path(&["main", "do_nanosleep"]));
    }

    #[test]
    fn a_function_that_loads_programs_is_none() {
        assert_eq!(Folded::parse(b"bpftool;main;bpf_prog_load 1\n").total(), 1);
        let by_hand = b"x;__bpf_prog_test_run_raw_tp_[k];bpf_prog_6deef7357e7b4530_part_[k] 1\n";
        assert_eq!(Folded::parse(by_hand).total(), 1);
    }

    #[test]
    fn what_is_not_folded_text_is_refused() {
        for bad in [
            &b"x;main\n"[..],
            b"x;main one\n",
            b"x;main 1",
            b"x;;main 1\n",
            b";main 1\n",
            b"x;ma\rin 1\n",
            b"x;\xff 1\n",
            b"x;main 1\nx;main 2\n",
            b"y;main 1\nx;main 2\n",
            b"x;main;schedule;bpf_trace_run4 1\n",
            b"x;__bpf_prog_test_run_raw_tp;bpf_trace_run4;bpf_prog_6deef7357e7b4530_f 1\n",
            b"x;main;schedule;bpf_prog_6deef7357e7b4530_on_switch_[k] 1\n",
            b"x;main;schedule;__traceiter_sched_switch_[k]_[o] 1\n",
        ] {
            assert!(
                Folded::try_parse(bad, false).is_err(),
                "{}",
                bad.escape_ascii()
            );
        }
        assert!(Folded::try_parse(b"x;main 1\n", true).is_err());
    }
}
