//! Folded stacks: `comm;root;…;leaf VALUE`, equal lines summed, ordered by stack.
//! Each waker follows as `--;leaf;…;root;comm`, so that a line read from its end
//! tells who woke whom.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;

use profile::folded::WAKER_DELIMITER;
use profile::{Frame, Profile, Stack, State, Unit};

use crate::stack_text::{frame_names, thread_field};

/// How stacks are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Tell threads apart: the first field is `comm-PID/TID`.
    pub per_thread: bool,
    /// Put a `-` frame between user and kernel frames.
    pub delimited: bool,
    /// Append `_[k]` to kernel frames.
    pub annotate_kernel: bool,
    /// Write times as nanoseconds, not as whole microseconds. Samples are
    /// written as they are.
    pub nanoseconds: bool,
}

/// What was written, and what was not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Lines written.
    pub lines: u64,
    /// Lines left out because they were shorter than a microsecond (or empty).
    pub dropped_lines: u64,
    /// The nanoseconds of the lines left out.
    pub dropped_ns: u64,
}

impl Written {
    /// The value to print for `sum`, divided once here; `None` if that leaves
    /// nothing, which is counted.
    pub(crate) fn take(&mut self, sum: u64, unit: Unit, options: &Options) -> Option<u64> {
        let value = match unit {
            Unit::Nanoseconds if !options.nanoseconds => sum / 1_000,
            Unit::Nanoseconds | Unit::Samples => sum,
        };
        if value == 0 {
            self.dropped_lines += 1;
            self.dropped_ns += sum;
            return None;
        }
        self.lines += 1;
        Some(value)
    }

    /// What was left out, in words; `None` if nothing was.
    #[must_use]
    pub fn left_out(&self) -> Option<String> {
        let Written {
            dropped_lines,
            dropped_ns,
            ..
        } = self;
        (*dropped_lines > 0).then(|| {
            format!("left out {dropped_lines} stacks of less than 1 us, {dropped_ns} ns in all")
        })
    }
}

/// Writes a profile. Nanoseconds are summed first and cut to microseconds
/// once; lines that come to 0 are left out and told of.
///
/// # Errors
/// Those of the writer.
pub fn write(profile: &Profile, options: &Options, writer: &mut dyn Write) -> io::Result<Written> {
    let stacks = profile.stacks.iter();
    write_stacks(
        stacks.map(|(stack, weight)| (stack, weight.value)),
        profile.unit,
        options,
        writer,
    )
}

/// [`write()`] for stacks from anywhere.
///
/// # Errors
/// Those of the writer.
pub fn write_stacks<'a>(
    stacks: impl IntoIterator<Item = (&'a Stack, u64)>,
    unit: Unit,
    options: &Options,
    writer: &mut dyn Write,
) -> io::Result<Written> {
    let mut written = Written::default();
    for (line, sum) in lines(stacks, options) {
        if let Some(value) = written.take(sum, unit, options) {
            writeln!(writer, "{line} {value}")?;
        }
    }
    Ok(written)
}

/// A line in two parts, which are ordered as the whole line is: no `;` stands
/// in the first but at its end.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Line {
    /// The first field, with the `;` after it.
    thread: String,
    /// The frames.
    path: Arc<str>,
}

impl fmt::Display for Line {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let thread = match &*self.path {
            "" => self.thread.trim_end_matches(';'),
            _ => &self.thread,
        };
        write!(formatter, "{thread}{}", self.path)
    }
}

/// The text of every stack and the sum of its values. Threads share stacks, so
/// each stack's text is made once.
pub(crate) fn lines<'a>(
    stacks: impl IntoIterator<Item = (&'a Stack, u64)>,
    options: &Options,
) -> BTreeMap<Line, u64> {
    let mut paths: HashMap<(*const Frame, Option<State>), Arc<str>> = HashMap::new();
    let mut lines: BTreeMap<Line, u64> = BTreeMap::new();
    for (stack, value) in stacks {
        let path = paths
            .entry((stack.frames.as_ptr(), stack.state))
            .or_insert_with(|| {
                let (delimited, annotate) = (options.delimited, options.annotate_kernel);
                let names = frame_names(&stack.frames, stack.state, delimited, annotate);
                Arc::from(names.join(";"))
            });
        let thread = thread_field(&stack.comm, stack.thread, options.per_thread);
        let line = Line {
            thread: thread + ";",
            path: with_wakers(path, stack, options),
        };
        *lines.entry(line).or_default() += value;
    }
    lines
}

/// The frames in `path`, and the wakers' after them.
fn with_wakers(path: &Arc<str>, stack: &Stack, options: &Options) -> Arc<str> {
    if stack.wakers.is_empty() {
        return Arc::clone(path);
    }
    let (delimited, annotate) = (options.delimited, options.annotate_kernel);
    let mut names = vec![path.to_string()];
    names.retain(|path| !path.is_empty());
    for waker in &stack.wakers {
        names.push(WAKER_DELIMITER.to_owned());
        let frames = frame_names(&waker.frames, None, delimited, annotate);
        names.extend(frames.into_iter().rev());
        names.push(thread_field(&waker.comm, waker.thread, options.per_thread));
    }
    names.join(";").into()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use profile::Waker;
    use proptest::prelude::*;

    use super::*;
    use crate::fixture::{blocked, stack, weight, woken, written};

    fn folded(profile: &Profile, options: Options) -> String {
        written(|writer| write(profile, &options, writer).map(|_| ()))
    }

    #[test]
    fn what_is_left_out_is_told() {
        let mut written = Written::default();
        let mut take = |sum| written.take(sum, Unit::Nanoseconds, &Options::default());
        assert_eq!([take(1_999), take(1_000)], [Some(1), Some(1)]);
        assert_eq!(written.left_out(), None);
        let mut take = |sum| written.take(sum, Unit::Nanoseconds, &Options::default());
        assert_eq!([take(999), take(1)], [None, None]);
        let told = "left out 2 stacks of less than 1 us, 1000 ns in all";
        assert_eq!(written.left_out().as_deref(), Some(told));
    }

    #[test]
    fn golden() {
        assert_eq!(
            folded(&blocked(), Options::default()),
            "[unnamed] 3\n\
             my:thread;[Missed User Stack];schedule 1\n\
             worker;main;wait(int: char);schedule 2500\n"
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
        assert_eq!(
            folded(&blocked(), options),
            "[unnamed]-7/8 3000\n\
             my:thread-7/8;[Missed User Stack];-;schedule_[k] 1000\n\
             worker-7/8;main 999\n\
             worker-7/8;main;wait(int: char);-;schedule_[k] 2500999\n"
        );
    }

    #[test]
    fn what_is_too_short_is_told() {
        let mut sink = Vec::new();
        let written = write(&blocked(), &Options::default(), &mut sink).unwrap();
        assert_eq!(
            written,
            Written {
                lines: 3,
                dropped_lines: 1,
                dropped_ns: 999
            }
        );
    }

    #[test]
    fn lines_equal_as_text_are_summed_before_the_division() {
        let mut profile = Profile::new(Unit::Nanoseconds);
        for tid in [1, 2] {
            let mut stack = stack("t", &["f"], &[], None);
            stack.thread = Some(profile::ThreadId { pid: 1, tid });
            profile.add(stack, weight(600));
        }
        assert_eq!(folded(&profile, Options::default()), "t;f 1\n");
    }

    #[test]
    fn states_are_on_the_leaf_after_the_kernel_mark() {
        let mut profile = Profile::new(Unit::Samples);
        profile.add(stack("t", &["f"], &["g"], Some(State::Blocked)), weight(1));
        profile.add(stack("t", &[], &[], Some(State::Runnable)), weight(2));
        let options = Options {
            annotate_kernel: true,
            ..Options::default()
        };
        assert_eq!(
            folded(&profile, options),
            "t;[no stack]_[r] 2\nt;f;g_[k]_[o] 1\n"
        );
    }

    #[test]
    fn wakers_follow_from_the_leaf_on() {
        let options = Options {
            per_thread: true,
            delimited: true,
            annotate_kernel: true,
            nanoseconds: false,
        };
        assert_eq!(
            folded(&woken(), Options::default()),
            "a;--;[still blocked] 1\n\
             a;main;wait_[o];--;wake;put;main;b;--;tick;[timer] 7\n"
        );
        assert_eq!(
            folded(&woken(), options),
            "a-7/8;--;[still blocked] 1\n\
             a-7/8;main;-;wait_[k]_[o];--;wake_[k];-;put;main;b-5/6;--;tick_[k];[timer] 7\n"
        );
    }

    fn stacks() -> impl Strategy<Value = Stack> {
        (one_stack(), prop::collection::vec(one_stack(), 0..3)).prop_map(|(mut stack, wakers)| {
            stack.wakers = wakers.into_iter().map(waker).collect();
            stack
        })
    }

    fn waker(stack: Stack) -> Waker {
        Waker {
            comm: stack.comm,
            thread: stack.thread,
            frames: stack.frames,
        }
    }

    fn one_stack() -> impl Strategy<Value = Stack> {
        let name = "[a-z:(<][A-Za-z0-9_:<>(), ]{0,12}";
        let names = || prop::collection::vec(name, 0..4);
        let state = prop::option::of(prop::sample::select(vec![
            State::Running,
            State::Runnable,
            State::Blocked,
        ]));
        (
            "[a-z/ -]{1,15}",
            names(),
            names(),
            state,
            1_u32..9,
            1_u32..9,
        )
            .prop_map(|(comm, user, kernel, state, pid, tid)| {
                let user: Vec<&str> = user.iter().map(String::as_str).collect();
                let kernel: Vec<&str> = kernel.iter().map(String::as_str).collect();
                let state = state.filter(|_| !user.is_empty() || !kernel.is_empty());
                let mut stack = stack(&comm, &user, &kernel, state);
                stack.thread = Some(profile::ThreadId { pid, tid });
                stack
            })
    }

    proptest! {
        #[test]
        fn reads_back_as_written(
            entries in prop::collection::vec((stacks(), 1_u64..u64::from(u32::MAX)), 0..20),
            delimited: bool,
        ) {
            let mut profile = Profile::new(Unit::Nanoseconds);
            for (stack, value) in entries {
                profile.add(stack, weight(value));
            }
            let options = Options {
                per_thread: true,
                delimited,
                annotate_kernel: true,
                nanoseconds: true,
            };
            let text = folded(&profile, options);
            let read = profile::folded::read(text.as_bytes(), Unit::Nanoseconds, true).unwrap();
            prop_assert_eq!(read.stacks, profile.stacks);
        }
    }
}
