//! Stacks of a process as gdb shows them, as a second opinion.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::Running;

/// Stack of one thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backtrace {
    /// Thread name.
    pub comm: String,
    /// Function names from the root to the leaf, `None` for a frame without a name.
    pub frames: Vec<Option<String>>,
}

/// Text of the frame to which a signal handler returns. This frame has no name.
const SIGNAL_FRAME: &str = "<signal handler called>";

/// Stops a process for a moment, and reads the stacks of all its threads, by thread ID. gdb reads
/// only the program, and no separate debug files.
pub fn backtraces(pid: u32) -> BTreeMap<u32, Backtrace> {
    let mut command = Command::new("gdb");
    command.args(["-nx", "-batch"]);
    for setting in [
        "debuginfod enabled off",
        "debug-file-directory /nonexistent",
        "auto-load off",
        "width 0",
        "backtrace past-main on",
        "backtrace past-entry on",
    ] {
        command.args(["-iex", &format!("set {setting}")]);
    }
    command.args(["-ex", "thread apply all bt", "-p", &pid.to_string()]);
    command.stdin(Stdio::null());
    let finished = Running::spawn(command, true)
        .finish_within(Duration::from_secs(60))
        .succeeded();
    let output = String::from_utf8_lossy(&finished.stdout).into_owned();
    let stacks = parse(&output);
    assert!(
        !stacks.is_empty(),
        "gdb found no thread:\n{output}{}",
        finished.stderr
    );
    stacks
}

fn parse(output: &str) -> BTreeMap<u32, Backtrace> {
    let mut stacks = BTreeMap::new();
    let mut thread = None;
    for line in output.lines() {
        if line.starts_with("Thread ") && line.ends_with("):") {
            thread = parse_thread(line);
            if let Some((tid, comm)) = &thread {
                let backtrace = Backtrace {
                    comm: comm.clone(),
                    frames: Vec::new(),
                };
                stacks.insert(*tid, backtrace);
            }
        } else if let (Some((tid, _)), Some(frame)) = (&thread, parse_frame(line)) {
            let backtrace = stacks.get_mut(tid).unwrap();
            backtrace.frames.insert(0, frame);
        }
    }
    stacks
}

/// Parses `Thread 2 (Thread 0x7f0f08b676c0 (LWP 29288) "leaver"):`. The part `Thread 0x…`, which
/// comes from libpthread, may be missing.
fn parse_thread(line: &str) -> Option<(u32, String)> {
    let (_, rest) = line.split_once("LWP ").or(line.split_once("process "))?;
    let digits = rest.find(|character: char| !character.is_ascii_digit())?;
    let tid = rest[..digits].parse().ok()?;
    let comm = rest.split('"').nth(1).unwrap_or_default();
    Some((tid, comm.to_owned()))
}

/// Parses `#1 0x00007f0f08c3ee53 in nanosleep () from /lib/libc.so.6`. The leaf has no address if
/// it is at the beginning of a source line.
fn parse_frame(line: &str) -> Option<Option<String>> {
    let (number, rest) = line.strip_prefix('#')?.split_once(' ')?;
    number.parse::<u32>().ok()?;
    let rest = rest.trim_start();
    let rest = rest.split_once(" in ").map_or(rest, |(_, rest)| rest);
    if rest.starts_with(SIGNAL_FRAME) {
        return Some(None);
    }
    // The arguments come last. They are empty without debug information.
    let name = rest
        .rfind(" (")
        .and_then(|end| rest.get(..end))
        .unwrap_or(rest);
    Some((name != "??").then(|| name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_and_frames_are_read() {
        let stacks = parse(
            "[New LWP 12]\n\
             0x00007f0f08c3a545 in clock_nanosleep () from /lib/libc.so.6\n\n\
             Thread 2 (Thread 0x7f0f0435e6c0 (LWP 12) \"a b\"):\n\
             #0  0x00007f0f08c3a545 in read () from /lib/libc.so.6\n\
             #1  <signal handler called>\n\
             #2  0x0000564555076499 in f<int (int)>(int) const ()\n\
             #3  0x00007f0f08bf41f5 in ?? () from /lib/libc.so.6\n\n\
             Thread 1 (process 11):\n\
             #0  main ()\n\
             [Inferior 1 (process 11) detached]\n",
        );
        assert_eq!(stacks.len(), 2);
        assert_eq!(stacks[&12].comm, "a b");
        let named = |name: &str| Some(name.to_owned());
        assert_eq!(
            stacks[&12].frames,
            [None, named("f<int (int)>(int) const"), None, named("read")]
        );
        assert_eq!(stacks[&11].frames, [named("main")]);
    }
}
