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

use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};

use profile::{NameOrder, Profile, RowMap, Sample, ThreadId};

use crate::format::{Format, Needs};
use crate::text::frames::{frame_names, part_names, reason_frame, thread_name, wakers};
use crate::text::options::{Options, Written};

/// The format: the lightest stack first so that the heaviest stands next to the prompt.
/// Omissions are those of [`Folded`](crate::folded::Folded); with `per_thread` the IDs are
/// `PID/TID`.
pub struct Classic;

impl Format for Classic {
    fn name(&self) -> &'static str {
        "classic"
    }

    fn endings(&self) -> &'static [&'static str] {
        &[]
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
        // Records can be long: one is told from others by 128 bits of a keyed hash, and made
        // once more where it is written.
        let hashers = [RandomState::new(), RandomState::new()];
        let mut sums: RowMap<[u64; 2], u64> = RowMap::default();
        let mut samples: Vec<Sample> = Vec::new();
        for (sample, value) in profile.values() {
            let record = record(profile, &sample, options);
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
                let record = record(profile, &sample, options);
                writeln!(writer, "{record}        {value}\n")?;
            }
        }
        Ok(written)
    }
}

fn record(profile: &Profile, sample: &Sample, options: &Options) -> String {
    let wakers = wakers(profile, sample);
    let titled = |title, comm, thread| titled(title, &thread_name(profile, comm), thread, options);
    let mut lines = Vec::new();
    for waker in wakers.iter().rev() {
        lines.push(titled("waker:", waker.comm, waker.thread));
        lines.extend(frame_names(profile, waker.stack, None, options));
        lines.push(format!("{:<16} --", "--"));
    }
    lines.extend(leaf_first(profile, sample, options));
    let comm = thread_name(profile, sample.comm);
    lines.push(match sample.thread {
        _ if !wakers.is_empty() => titled("target:", sample.comm, sample.thread),
        Some(id) if options.per_thread => format!("{:<16} {comm} ({}/{})", "-", id.pid, id.tid),
        Some(id) => format!("{:<16} {comm} ({})", "-", id.pid),
        None => format!("{:<16} {comm}", "-"),
    });
    lines.iter().map(|line| format!("    {line}\n")).collect()
}

/// Who wakes or is woken: the name, and the process or `PID/TID`.
fn titled(title: &str, comm: &str, thread: Option<ThreadId>, options: &Options) -> String {
    match thread {
        Some(id) if options.per_thread => format!("{title:<16} {comm} {}/{}", id.pid, id.tid),
        Some(id) => format!("{title:<16} {comm} {}", id.pid),
        None => format!("{title:<16} {comm}"),
    }
}

/// The frames' names, with the state at the first.
fn leaf_first(profile: &Profile, sample: &Sample, options: &Options) -> Vec<String> {
    let part = |part| part_names(profile, part, options).into_iter();
    let mut names: Vec<String> = part(sample.stack.kernel).rev().collect();
    names.splice(..0, reason_frame(profile, sample, options));
    if options.delimited && !names.is_empty() && !sample.stack.user.is_empty() {
        // As bcc's offcputime and offwaketime each have it.
        let delimiter = if sample.wakers.is_none() { "--" } else { "-" };
        names.push(delimiter.to_owned());
    }
    names.extend(part(sample.stack.user).rev());
    if let (Some(leaf), Some(state)) = (names.first_mut(), sample.state) {
        leaf.push_str(profile::folded::state_suffix(state));
    }
    names
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
