//! Folded stacks: `comm;root;…;leaf VALUE`, equal lines summed, ordered by stack. Each waker
//! follows as `--;leaf;…;root;comm`, so a line that is read from its end goes from each waker to
//! the thread that it woke.

use std::io::{self, Write};

use profile::{Profile, Sample};

use crate::format::{Format, Needs};
use crate::text::lines::Lines;
use crate::text::options::{Options, Written};

/// The folded format. The writer sums nanoseconds first, and rounds each sum down to microseconds
/// once. It leaves out lines with a value of 0, and counts them.
pub struct Folded;

impl Format for Folded {
    fn name(&self) -> &'static str {
        "folded"
    }

    fn endings(&self) -> &'static [&'static str] {
        &[".folded"]
    }

    fn readers(&self) -> &'static str {
        "flamegraph.pl, inferno, grep"
    }

    fn needs(&self) -> Needs {
        Needs::NAMES
    }

    fn write(
        &self,
        profile: &Profile,
        options: &Options,
        writer: &mut dyn Write,
    ) -> io::Result<Written> {
        write_samples(profile, profile.values(), options, writer)
    }
}

/// Writes folded stacks of other values of a profile's samples, in its unit.
///
/// # Errors
/// Returns the errors of `writer`.
pub fn write_samples(
    profile: &Profile,
    samples: impl IntoIterator<Item = (Sample, u64)>,
    options: &Options,
    writer: &mut dyn Write,
) -> io::Result<Written> {
    let mut written = Written::default();
    Lines::new(profile, samples, options).for_each(|line, sum| {
        match written.take(sum, profile.unit, options) {
            Some(value) => writeln!(writer, "{line} {value}"),
            None => Ok(()),
        }
    })?;
    Ok(written)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::BTreeMap;

    use profile::{Stack, StackId, State, ThreadId, Unit, Waker, Weight};
    use proptest::prelude::*;

    use super::*;
    use crate::fixture::{blocked, sample, stack, weight, woken, written};
    use crate::text::frames::wakers;

    fn folded(profile: &Profile, options: Options) -> String {
        written(|writer| Folded.write(profile, &options, writer).map(|_| ()))
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
            annotate: true,
            nanoseconds: true,
            ..Options::default()
        };
        assert_eq!(
            folded(&blocked(), options),
            "[unnamed]-7/8 3000\n\
             my:thread-7/8;[Missed User Stack];-;schedule_[k] 1000\n\
             worker-7/8;main 999\n\
             worker-7/8;main;wait(int: char);-;schedule_[k] 2500999\n"
        );
    }

    /// As text, `cc 1` comes before `cc1;f 1`, but `cc;f 1` comes after it.
    #[test]
    fn lines_of_a_thread_alone_are_in_the_order_of_texts() {
        let mut profile = Profile::new(Unit::Nanoseconds);
        for (comm, user) in [("cc1", &["f"][..]), ("cc", &[]), ("cc", &["f"])] {
            let sample = sample(&mut profile, comm, user, &[], None);
            profile.add(sample, weight(1_000));
        }
        let expected = "cc 1\ncc1;f 1\ncc;f 1\n";
        assert_eq!(folded(&profile, Options::default()), expected);
    }

    #[test]
    fn lines_equal_as_text_are_summed_before_the_division() {
        let mut profile = Profile::new(Unit::Nanoseconds);
        for tid in [1, 2] {
            let mut sample = sample(&mut profile, "t", &["f"], &[], None);
            sample.thread = Some(ThreadId { pid: 1, tid });
            profile.add(sample, weight(600));
        }
        assert_eq!(folded(&profile, Options::default()), "t;f 1\n");
    }

    #[test]
    fn wakers_follow_from_the_leaf_on() {
        let options = Options {
            per_thread: true,
            delimited: true,
            annotate: true,
            ..Options::default()
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

    /// The thread, stack and state of a sample, as texts.
    #[derive(Clone, Debug)]
    struct Words {
        comm: String,
        thread: ThreadId,
        user: Vec<String>,
        kernel: Vec<String>,
        state: Option<State>,
    }

    fn words() -> impl Strategy<Value = Words> {
        let name = "[a-z:(<][A-Za-z0-9_:<>(), ]{0,12}";
        let names = || prop::collection::vec(name, 0..4);
        let state = prop::option::of(prop::sample::select(vec![
            State::Running,
            State::Runnable,
            State::Blocked,
        ]));
        let thread = (1_u32..9, 1_u32..9).prop_map(|(pid, tid)| ThreadId { pid, tid });
        ("[a-z/ -]{1,15}", thread, names(), names(), state).prop_map(
            |(comm, thread, user, kernel, state)| {
                let has_frames = !user.is_empty() || !kernel.is_empty();
                Words {
                    comm,
                    thread,
                    user,
                    kernel,
                    state: state.filter(|_| has_frames),
                }
            },
        )
    }

    /// Builds a sample with its wakers.
    fn samples() -> impl Strategy<Value = (Words, Vec<Words>)> {
        (words(), prop::collection::vec(words(), 0..3))
    }

    fn put(profile: &mut Profile, (words, wakers): &(Words, Vec<Words>)) -> Sample {
        fn path(profile: &mut Profile, words: &Words) -> Stack {
            let [user, kernel] = [&words.user, &words.kernel]
                .map(|names| names.iter().map(String::as_str).collect::<Vec<_>>());
            stack(profile, &user, &kernel)
        }
        let wakers = wakers.iter().map(|words| Waker {
            comm: profile.names.text(&words.comm),
            thread: Some(words.thread),
            stack: path(profile, words),
        });
        let wakers: Box<[Waker]> = wakers.collect();
        let comm = profile.names.text(&words.comm);
        Sample {
            state: words.state,
            wakers: (!wakers.is_empty()).then(|| profile.wakers.id(wakers)),
            ..Sample::new(comm, Some(words.thread), path(profile, words))
        }
    }

    /// Returns every sample as a text, with its weight.
    fn read_out(profile: &Profile) -> BTreeMap<String, Weight> {
        let stack = |id: StackId| -> Vec<_> {
            let frames = profile.frames_of(id);
            frames
                .map(|frame| (profile.name(frame), frame.kind))
                .collect()
        };
        let path = |of: Stack| format!("{:?} {:?}", stack(of.user), stack(of.kernel));
        let samples = profile.samples.iter().map(|(sample, weight)| {
            let comm = &profile.names[sample.comm];
            let (thread, state) = (sample.thread, sample.state);
            let mut text = format!("{comm} {thread:?} {} {state:?}", path(sample.stack));
            for waker in wakers(profile, sample) {
                let comm = &profile.names[waker.comm];
                text += &format!(" {comm} {:?} {}", waker.thread, path(waker.stack));
            }
            (text, *weight)
        });
        samples.collect()
    }

    proptest! {
        #[test]
        fn reads_back_as_written(
            entries in prop::collection::vec((samples(), 1_u64..u64::from(u32::MAX)), 0..20),
            delimited: bool,
        ) {
            let mut profile = Profile::new(Unit::Nanoseconds);
            for (words, value) in entries {
                let sample = put(&mut profile, &words);
                profile.add(sample, weight(value));
            }
            let options = Options {
                per_thread: true,
                delimited,
                annotate: true,
                nanoseconds: true,
                ..Options::default()
            };
            let text = folded(&profile, options);
            let read = profile::folded::read(text.as_bytes(), Unit::Nanoseconds, true).unwrap();
            prop_assert_eq!(read_out(&read), read_out(&profile));
        }
    }
}
