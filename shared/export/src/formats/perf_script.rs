//! Samples with stacks as `perf script` prints them. The event of time is `wall-clock`, with
//! periods in nanoseconds.
//!
//! Readers that fold stacks add up periods. speedscope uses the times instead: a sample lasts from
//! the middle of the gap before it to the middle of the gap after it. So each stack has two
//! samples, at the ends of a span that is as long as the stack's time. Each sample has half of that
//! time as its period. The spans of a thread follow one another from the window's start on, so
//! readers show threads side by side.

use std::collections::HashMap;
use std::io::{self, Write};

use profile::folded::state_suffix;
use profile::{Frame, Id, Profile, Sample, marker};

use crate::format::{Format, Needs};
use crate::measure::Measure;
use crate::text::drawn::{Drawn, drawn};
use crate::text::frames::thread_name;
use crate::text::options::{Options, Written};

/// The `perf script` format.
pub struct PerfScript;

/// Text in parentheses behind a frame of unknown file.
const UNKNOWN: &str = "[unknown]";

impl Format for PerfScript {
    fn name(&self) -> &'static str {
        "perf-script"
    }

    fn endings(&self) -> &'static [&'static str] {
        &[".perf"]
    }

    fn readers(&self) -> &'static str {
        "programs that fold the output of `perf script`; periods are nanoseconds"
    }

    fn needs(&self) -> Needs {
        Needs {
            addresses: true,
            reasons: true,
            threads: true,
            ..Needs::NAMES
        }
    }

    fn write(
        &self,
        profile: &Profile,
        _options: &Options,
        writer: &mut dyn Write,
    ) -> io::Result<Written> {
        let measure = Measure::new(profile);
        let event = match &measure {
            Measure::Time(_) => "wall-clock",
            Measure::Events(name, _) => name.as_str(),
        };
        let mut samples: Vec<(Sample, u64)> = measure.values(profile).collect();
        // A thread's samples follow one another.
        samples.sort_by_key(|(sample, _)| (sample.thread, sample.comm));
        let mut written = Written::default();
        let mut lines = Lines::new();
        let start = profile.meta.window.start_ns / 1_000;
        let mut now = start;
        let mut thread = None;
        for (sample, value) in samples {
            if std::mem::replace(&mut thread, sample.thread) != sample.thread {
                now = start;
            }
            let header = thread_text(profile, &sample);
            let frames = frames(profile, &sample, &mut lines);
            let end = now.saturating_add((value / 1_000).max(2));
            for (time, period) in [(now, value - value / 2), (end - 1, value / 2)] {
                let (seconds, micros) = (time / 1_000_000, time % 1_000_000);
                writeln!(
                    writer,
                    "{header} [000] {seconds}.{micros:06}: {period:>10} {event}: \n{frames}"
                )?;
            }
            now = end;
            written.lines += 1;
        }
        Ok(written)
    }
}

/// Returns the thread's name and IDs. Readers split the text at blanks, and expect a name of at
/// least two characters.
fn thread_text(profile: &Profile, sample: &Sample) -> String {
    let name = thread_name(profile, sample.comm);
    let name: String = name.split_whitespace().collect::<Vec<_>>().join("_");
    let thread = sample.thread.unwrap_or_default();
    format!("{name:_<2} {}/{}", thread.pid, thread.tid)
}

/// Lines of frames, which stacks share.
type Lines = HashMap<Id<Frame>, String>;

/// Returns the lines of a stack, leaf first.
fn frames(profile: &Profile, sample: &Sample, lines: &mut Lines) -> String {
    let drawn = drawn(profile, sample);
    // Wakers, if there are any, stand above the leaf.
    let depth = |stack| profile.stacks.leaf_first(stack).count();
    let frames = depth(sample.stack.user) + depth(sample.stack.kernel);
    let state = sample.state.map_or("", state_suffix);
    let mut text = String::new();
    for (place, drawn) in drawn.iter().enumerate().rev() {
        match drawn {
            Drawn::Text(name) => text.push_str(&line(0, name, UNKNOWN)),
            Drawn::Frame(frame) if place + 1 == frames => {
                text.push_str(&frame_line(profile, *frame, state));
            }
            Drawn::Frame(frame) => {
                let known = lines.entry(*frame);
                text.push_str(known.or_insert_with(|| frame_line(profile, *frame, "")));
            }
        }
    }
    // Readers drop the time of a sample without a line.
    if drawn.is_empty() || (frames == 0 && sample.state.is_some()) {
        let name = format!("{}{state}", marker::NO_STACK);
        text.push_str(&line(0, &name, UNKNOWN));
    }
    text
}

/// Returns the line of a frame, with its thread's state if it is the leaf.
fn frame_line(profile: &Profile, frame: Id<Frame>, state: &str) -> String {
    let frame = &profile.frames[frame];
    let mut name = profile::text::frame(profile.name(frame)).into_owned();
    // Readers would not recognise an offset with a state behind it.
    name.push_str(state);
    if let Some(offset) = frame.offset {
        name.push_str(&format!("+{offset:#x}"));
    }
    let module = frame.module.map(|module| &profile.modules[module]);
    let module = module.map_or(UNKNOWN, |module| &profile.names[module.path]);
    line(frame.address.unwrap_or(0), &name, module)
}

/// Builds a line. Readers would end a file's name at a blank, so `_` replaces it.
fn line(address: u64, name: &str, module: &str) -> String {
    format!("\t{address:16x} {name} ({})\n", module.replace(' ', "_"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use profile::{FrameKind, Module, ModuleKind, Name, State, ThreadId, Unit};

    use super::*;
    use crate::fixture::{sample, weight, written};

    fn text(profile: &Profile) -> String {
        let options = Options::default();
        written(|writer| PerfScript.write(profile, &options, writer).map(drop))
    }

    #[test]
    fn golden() {
        let mut profile = Profile::new(Unit::Nanoseconds);
        profile.meta.window.start_ns = 81_000_250_000_000;
        let mut name = |text: &str| -> Name { profile.names.text(text) };
        let [path, read] = ["/usr/lib/my libc.so.6", "read"].map(&mut name);
        let module = profile.modules.id(Module {
            path,
            build_id: None,
            kind: ModuleKind::File,
        });
        let frame = profile.frames.id(Frame {
            module: Some(module),
            address: Some(0xf8c4f),
            offset: Some(0x1f),
            ..Frame::named(read, FrameKind::User)
        });
        let mut waits = sample(&mut profile, "a", &["main"], &[], Some(State::Blocked));
        waits.stack.user = profile.stacks.called(waits.stack.user, frame);
        profile.add(waits, weight(7_000_001));
        assert_eq!(
            text(&profile),
            "a_ 7/8 [000] 81000.250000:    3500001 wall-clock: \n\
             \t           f8c4f read_[o]+0x1f (/usr/lib/my_libc.so.6)\n\
             \t               0 main ([unknown])\n\n\
             a_ 7/8 [000] 81000.256999:    3500000 wall-clock: \n\
             \t           f8c4f read_[o]+0x1f (/usr/lib/my_libc.so.6)\n\
             \t               0 main ([unknown])\n\n"
        );
    }

    #[test]
    fn threads_are_side_by_side() {
        let mut profile = Profile::new(Unit::Nanoseconds);
        profile.meta.window.start_ns = 81_000_000_000_000;
        for tid in [8, 9] {
            for function in ["read", "write"] {
                let mut waits = sample(&mut profile, "a", &[function], &[], Some(State::Blocked));
                waits.thread = Some(ThreadId { pid: 7, tid });
                profile.add(waits, weight(500_000_000));
            }
        }
        let text = text(&profile);
        for tid in [8, 9] {
            let own = format!("a_ 7/{tid} [000] ");
            let times = text.lines().filter_map(|line| line.strip_prefix(&own));
            let times: Vec<&str> = times.map(|line| line.split(':').next().unwrap()).collect();
            let expected = [
                "81000.000000",
                "81000.499999",
                "81000.500000",
                "81000.999999",
            ];
            assert_eq!(times, expected, "{text}");
        }
    }
}
