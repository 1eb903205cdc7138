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

use std::collections::BTreeMap;
use std::io::{self, Write};

use profile::folded::KERNEL_SUFFIX;
use profile::{Frame, FrameKind, Profile, Stack, text};

use crate::folded::{Options, Written};
use crate::stack_text::split_kernel;

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
    let (user, kernel) = split_kernel(&stack.frames);
    let mut record = String::new();
    let mut line = |text: &str| {
        record.push_str("    ");
        record.push_str(text);
        record.push('\n');
    };
    let name = |frame: &Frame| {
        let name = text::frame(&frame.name);
        if options.annotate_kernel && frame.kind == FrameKind::Kernel {
            format!("{name}{KERNEL_SUFFIX}")
        } else {
            name.into_owned()
        }
    };
    let state = stack.state.map_or("", profile::folded::state_suffix);
    let leaf_first = kernel.iter().rev().chain(user.iter().rev());
    for (depth, frame) in leaf_first.enumerate() {
        if depth == kernel.len() && depth > 0 && options.delimited {
            line("--");
        }
        let suffix = if depth == 0 { state } else { "" };
        line(&format!("{}{suffix}", name(frame)));
    }
    let comm = text::comm(stack.comm.as_bytes());
    line(&match stack.thread {
        Some(id) if options.per_thread => format!("{:<16} {comm} ({}/{})", "-", id.pid, id.tid),
        Some(id) => format!("{:<16} {comm} ({})", "-", id.pid),
        None => format!("{:<16} {comm}", "-"),
    });
    record
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{blocked, written};

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
}
