//! bcc's own form: several lines per stack, leaf first, the value last.
//!
//! ```text
//!     schedule
//!     --
//!     wait
//!     main
//!     -                worker (1234)
//!         2500
//!
//! ```
//!
//! With wakers the story reads downwards: the waker's stack from its root, then
//! the sleeper's from its leaf.
//!
//! ```text
//!     waker:           producer 1234
//!     main
//!     put
//!     try_to_wake_up
//!     --               --
//!     schedule
//!     wait
//!     main
//!     target:          worker 1234
//!         2500
//!
//! ```

use std::collections::BTreeMap;
use std::io::{self, Write};

use profile::{Profile, Stack, ThreadId, text};

use crate::folded::{Options, Written};
use crate::stack_text::{frame_name, frame_names, split_kernel};

/// Writes a profile, the lightest stack first so that the heaviest stands next
/// to the prompt. Options and omissions are those of
/// [`folded::write`](crate::folded::write); with `per_thread` the IDs are `PID/TID`.
///
/// # Errors
/// Those of the writer.
pub fn write(profile: &Profile, options: &Options, writer: &mut dyn Write) -> io::Result<Written> {
    let mut records: BTreeMap<String, u64> = BTreeMap::new();
    for (stack, weight) in &profile.stacks {
        *records.entry(record(stack, options)).or_default() += weight.value;
    }
    let mut records: Vec<(u64, String)> = records
        .into_iter()
        .map(|(record, value)| (value, record))
        .collect();
    records.sort();
    let mut written = Written::default();
    for (sum, record) in records {
        if let Some(value) = written.take(sum, profile.unit, options) {
            writeln!(writer, "{record}        {value}\n")?;
        }
    }
    Ok(written)
}

fn record(stack: &Stack, options: &Options) -> String {
    let mut lines = Vec::new();
    for waker in stack.wakers.iter().rev() {
        lines.push(titled("waker:", &waker.comm, waker.thread, options));
        let annotate = options.annotate_kernel;
        let frames = frame_names(&waker.frames, None, options.delimited, annotate);
        lines.extend(frames);
        lines.push(format!("{:<16} --", "--"));
    }
    lines.extend(leaf_first(stack, options));
    let comm = text::comm(stack.comm.as_bytes());
    lines.push(match stack.thread {
        _ if !stack.wakers.is_empty() => titled("target:", &stack.comm, stack.thread, options),
        Some(id) if options.per_thread => format!("{:<16} {comm} ({}/{})", "-", id.pid, id.tid),
        Some(id) => format!("{:<16} {comm} ({})", "-", id.pid),
        None => format!("{:<16} {comm}", "-"),
    });
    lines.iter().map(|line| format!("    {line}\n")).collect()
}

/// Who wakes or is woken: the name, and the process or `PID/TID`.
fn titled(title: &str, comm: &str, thread: Option<ThreadId>, options: &Options) -> String {
    let comm = text::comm(comm.as_bytes());
    match thread {
        Some(id) if options.per_thread => format!("{title:<16} {comm} {}/{}", id.pid, id.tid),
        Some(id) => format!("{title:<16} {comm} {}", id.pid),
        None => format!("{title:<16} {comm}"),
    }
}

/// The frames' names, with the state at the first.
fn leaf_first(stack: &Stack, options: &Options) -> Vec<String> {
    let (user, kernel) = split_kernel(&stack.frames);
    let name = |frame| frame_name(frame, options.annotate_kernel);
    let mut names: Vec<String> = kernel.iter().rev().map(name).collect();
    if options.delimited && !names.is_empty() && !user.is_empty() {
        // As bcc's offcputime and offwaketime each have it.
        let delimiter = if stack.wakers.is_empty() { "--" } else { "-" };
        names.push(delimiter.to_owned());
    }
    names.extend(user.iter().rev().map(name));
    if let (Some(leaf), Some(state)) = (names.first_mut(), stack.state) {
        leaf.push_str(profile::folded::state_suffix(state));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{blocked, woken, written};

    fn classic(options: Options) -> String {
        written(|writer| write(&blocked(), &options, writer).map(|_| ()))
    }

    #[test]
    fn golden() {
        assert_eq!(
            classic(Options::default()),
            "    schedule
    [Missed User Stack]
    -                my:thread (7)
        1

    -                [unnamed] (7)
        3

    schedule
    wait(int: char)
    main
    -                worker (7)
        2500

"
        );
    }

    #[test]
    fn golden_with_everything() {
        let options = Options {
            per_thread: true,
            delimited: true,
            annotate_kernel: true,
            nanoseconds: true,
        };
        let text = classic(options);
        assert!(text.starts_with(
            "    main
    -                worker (7/8)
        999

    schedule_[k]
    --
    [Missed User Stack]
    -                my:thread (7/8)
        1000

"
        ));
    }

    #[test]
    fn golden_with_wakers() {
        let options = Options {
            delimited: true,
            ..Options::default()
        };
        let text = written(|writer| write(&woken(), &options, writer).map(|_| ()));
        assert_eq!(
            text,
            "    waker:           [still blocked]
    --               --
    target:          a 7
        1

    waker:           [timer]
    tick
    --               --
    waker:           b 5
    main
    put
    -
    wake
    --               --
    wait_[o]
    -
    main
    target:          a 7
        7

"
        );
    }
}
