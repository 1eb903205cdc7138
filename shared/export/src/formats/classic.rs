//! bcc's format: several lines per stack, leaf first, the value last.
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
//! With wakers, a record goes down in the order of events: the waker's stack from its root, then
//! the sleeper's stack from its leaf.
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

use std::borrow::Cow;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};

use profile::{NameOrder, Profile, RowMap, Sample, ThreadId};

use crate::format::{Format, Needs};
use crate::text::frames::{FrameNames, reason_frame, thread_name, wakers};
use crate::text::options::{Options, Written};

/// The classic format. The lightest stack comes first, so that the heaviest stack is next to the
/// prompt. The format leaves out the same stacks as [`Folded`](crate::folded::Folded). With
/// `per_thread` the IDs are `PID/TID`.
pub struct Classic;

impl Format for Classic {
    fn name(&self) -> &'static str {
        "classic"
    }

    fn endings(&self) -> &'static [&'static str] {
        &[]
    }

    fn readers(&self) -> &'static str {
        "programs that read bcc's form of several lines per stack"
    }

    fn needs(&self) -> Needs {
        Needs {
            processes: true,
            ..Needs::NAMES
        }
    }

    fn write(
        &self,
        profile: &Profile,
        options: &Options,
        writer: &mut dyn Write,
    ) -> io::Result<Written> {
        // Records can be long, so 128 bits of a keyed hash identify a record. The writer builds the
        // record again to write it.
        let names = FrameNames::new(profile, options);
        let hashers = [RandomState::new(), RandomState::new()];
        let mut sums: RowMap<[u64; 2], u64> = RowMap::default();
        let mut samples: Vec<Sample> = Vec::new();
        for (sample, value) in profile.values() {
            let record = record(profile, &names, &sample, options);
            let key = hashers.each_ref().map(|hasher| hasher.hash_one(&record));
            *sums.entry(key) += value;
            if sums.len() > samples.len() {
                samples.push(sample);
            }
        }
        let order = NameOrder::new(profile);
        let mut records: Vec<(u64, Sample)> = sums.values().copied().zip(samples).collect();
        records.sort_by(|(one_sum, one), (other_sum, other)| {
            let by_sum = one_sum.cmp(other_sum);
            by_sum.then_with(|| order.compare(one, other))
        });
        let mut written = Written::default();
        for (sum, sample) in records {
            if let Some(value) = written.take(sum, profile.unit, options) {
                let record = record(profile, &names, &sample, options);
                writeln!(writer, "{record}        {value}\n")?;
            }
        }
        Ok(written)
    }
}

fn record(profile: &Profile, names: &FrameNames<'_>, sample: &Sample, options: &Options) -> String {
    let wakers = wakers(profile, sample);
    let title_line =
        |title, comm, thread| title_line(title, &thread_name(profile, comm), thread, options);
    let mut text = String::new();
    let mut add = |line: &str| text.extend(["    ", line, "\n"]);
    for waker in wakers.iter().rev() {
        add(&title_line("waker:", waker.comm, waker.thread));
        names.stack(waker.stack).into_iter().for_each(&mut add);
        add(&format!("{:<16} --", "--"));
    }
    let frames = leaf_first(profile, names, sample, options);
    frames.iter().for_each(|frame| add(frame));
    let comm = thread_name(profile, sample.comm);
    add(&match sample.thread {
        _ if !wakers.is_empty() => title_line("target:", sample.comm, sample.thread),
        Some(id) if options.per_thread => format!("{:<16} {comm} ({}/{})", "-", id.pid, id.tid),
        Some(id) => format!("{:<16} {comm} ({})", "-", id.pid),
        None => format!("{:<16} {comm}", "-"),
    });
    text
}

/// Returns the line of a waker or a sleeper: its name, and its PID or `PID/TID`.
fn title_line(title: &str, comm: &str, thread: Option<ThreadId>, options: &Options) -> String {
    match thread {
        Some(id) if options.per_thread => format!("{title:<16} {comm} {}/{}", id.pid, id.tid),
        Some(id) => format!("{title:<16} {comm} {}", id.pid),
        None => format!("{title:<16} {comm}"),
    }
}

/// Returns the frames' names, leaf first, with the state at the leaf.
fn leaf_first<'a>(
    profile: &Profile,
    names: &'a FrameNames<'_>,
    sample: &Sample,
    options: &Options,
) -> Vec<Cow<'a, str>> {
    let part = |part| names.part(part).rev().map(Cow::from);
    let reason = reason_frame(profile, sample, options).map(Cow::from);
    let mut frames: Vec<Cow<'_, str>> = reason.into_iter().collect();
    frames.extend(part(sample.stack.kernel));
    if options.delimited && !frames.is_empty() && !sample.stack.user.is_empty() {
        // bcc's offcputime prints `--` here, and its offwaketime prints `-`.
        let delimiter = if sample.wakers.is_none() { "--" } else { "-" };
        frames.push(delimiter.into());
    }
    frames.extend(part(sample.stack.user));
    if let (Some(leaf), Some(state)) = (frames.first_mut(), sample.state) {
        leaf.to_mut().push_str(profile::folded::state_suffix(state));
    }
    frames
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{blocked, woken, written};

    fn classic(options: Options) -> String {
        written(|writer| Classic.write(&blocked(), &options, writer).map(|_| ()))
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
    fn golden_with_wakers() {
        let options = Options {
            delimited: true,
            ..Options::default()
        };
        let text = written(|writer| Classic.write(&woken(), &options, writer).map(|_| ()));
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
