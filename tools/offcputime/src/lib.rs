//! `offcputime` measures off-CPU time of threads by stack.

mod arguments;

use bpf::types::Tally;
use cli::{CommonFlags, GoroutineFlags, Planned, StackTool};
use collect::{ClockSession, StackChoice, WakersShown};
use export::clocks::Clocks;
use loader::{Kernel, LoadedObject, OpenObject, Result, Targets};
use profile::{Meta, Profile, State, Unit, Weight};

pub use arguments::Arguments;

impl StackTool for Arguments {
    const NAME: &'static str = "offcputime";
    const OBJECT: bpf::Object = bpf::offcputime::OBJECT;
    const UNIT: Unit = Unit::Nanoseconds;
    type Session<'a> = ClockSession<'a>;

    fn common(&self) -> CommonFlags<'_> {
        CommonFlags {
            target: &self.target,
            output: &self.output,
            duration: &self.duration,
            control: &self.control,
            debuginfod: self.stacks.debuginfod(),
            nanoseconds: self.nanoseconds,
        }
    }

    fn check(&self) -> anyhow::Result<()> {
        self.intervals.validate(self.output.timeline())?;
        if self.sample_short && self.intervals.min_block_time == 0 {
            return Err(cli::usage(
                "--sample-short samples intervals shorter than -m, and -m is 0: give -m a larger number of microseconds",
            ));
        }
        if self.sample_short && self.stacks().recorder.is_some() {
            return Err(cli::usage(
                "--last keeps no samples of short intervals: leave out --sample-short, or give a smaller --timeline-min",
            ));
        }
        Ok(())
    }

    fn subject(&self) -> String {
        self.intervals.subject(&self.target)
    }

    fn stacks(&self) -> StackChoice {
        let choice = self.stacks.choice(&self.output, &self.target);
        StackChoice {
            objects: choice.objects || self.intervals.need_objects(),
            ..choice
        }
    }

    fn configure(&self, object: &mut OpenObject, kernel: &Kernel) -> Result<()> {
        object.set(bpf::constants::SWITCH_ARGUMENTS, kernel.switch_arguments)?;
        self.stacks().configure_objects(object, kernel)?;
        object.set(bpf::constants::WANT_THREAD_ENDS, self.wants_thread_ends())?;
        self.intervals
            .filter(self.output.timeline())
            .configure(object, kernel)?;
        object.set(bpf::constants::SAMPLE_SHORT, self.sample_short)?;
        object.set(bpf::constants::WANT_WAKERS, self.output.needs().wakers)?;
        object.make_room_for_threads(bpf::maps::THREADS)
    }

    fn attach<'a>(
        &'a self,
        object: &'a LoadedObject,
        kernel: &Kernel,
        targets: &'a Targets,
    ) -> Result<Self::Session<'a>> {
        ClockSession::attach(object, kernel, targets, self.stacks())
    }

    fn header(&self, _session: &Self::Session<'_>) -> String {
        let unit = if self.nanoseconds { "ns" } else { "us" };
        let (subject, stacks) = (self.subject(), self.stacks.subject());
        format!("Tracing off-CPU time ({unit}) of {subject} by {stacks} stack")
    }

    fn describe(&self, _session: &Self::Session<'_>, meta: &mut Meta) {
        meta.lengths = Some(
            self.intervals
                .lengths(self.output.timeline(), self.sample_short),
        );
    }

    fn removes_samples(&self) -> bool {
        self.target.thread_name().is_some() || self.intervals.exclude_samples()
    }

    fn retain(&self, profile: &mut Profile) {
        self.intervals.retain(profile);
    }

    fn weigh(&self, tally: &Tally) -> Vec<(Option<State>, Weight)> {
        let all = tally.blocked + tally.runnable;
        let weight = |value| cli::weight_of(value, all, tally);
        if self.states || self.output.needs().times {
            vec![
                (Some(State::Blocked), weight(tally.blocked)),
                (Some(State::Runnable), weight(tally.runnable)),
            ]
        } else {
            vec![(None, weight(all))]
        }
    }

    fn wakers_shown(&self) -> WakersShown {
        if self.output.needs().wakers {
            WakersShown::WithReasons {
                of_all_waits: self.output.needs().times,
            }
        } else {
            WakersShown::No
        }
    }

    fn goroutines(&self) -> Option<&GoroutineFlags> {
        Some(&self.goroutines)
    }

    fn more_outputs(&self) -> Vec<Planned> {
        let clocks = self.clocks.iter().map(|path| Planned {
            format: &Clocks,
            path: Some(path.clone()),
            is_new: false,
        });
        clocks.collect()
    }
}

impl Arguments {
    /// Returns whether the profile needs the accounts of ended threads. The tool recognizes a wait
    /// for a thread's end by the account of that thread.
    fn wants_thread_ends(&self) -> bool {
        self.clocks.is_some() || self.output.needs().accounts || self.stacks().objects
    }
}
