//! `offwaketime` measures blocked time of threads by stack and waker.

mod arguments;

use bpf::types::Tally;
use cli::{CommonFlags, Planned, StackTool};
use collect::{ClockSession, Recorder, StackChoice, WakersShown};
use export::svg::Svg;
use loader::{Kernel, LoadedObject, OpenObject, Result, Targets};
use profile::{Meta, Profile, State, Unit, Weight};

pub use arguments::Arguments;

impl StackTool for Arguments {
    const NAME: &'static str = "offwaketime";
    const OBJECT: bpf::Object = bpf::offwaketime::OBJECT;
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
        if self.intervals.state == Some(0) {
            return Err(cli::usage(
                "--state 0 means runnable, and a runnable thread waits for no waker: give a mask of other states, or use offcputime",
            ));
        }
        cli::check_processes(&self.waker_pids)?;
        cli::check_threads(&self.waker_tids)
    }

    fn subject(&self) -> String {
        self.intervals.subject(&self.target)
    }

    fn stacks(&self) -> StackChoice {
        let choice = self.stacks.choice(&self.output, &self.target);
        let is_chain = self.follows_chain();
        StackChoice {
            // A chain ends at a thread that it already contains, so the profile must distinguish
            // threads.
            per_thread: choice.per_thread || is_chain,
            per_process: choice.per_process || is_chain,
            objects: choice.objects || self.intervals.need_objects(),
            recorder: choice.recorder.map(|recorder| Recorder {
                counts_runnable: false,
                ..recorder
            }),
            ..choice
        }
    }

    fn configure(&self, object: &mut OpenObject, kernel: &Kernel) -> Result<()> {
        object.set(bpf::constants::SWITCH_ARGUMENTS, kernel.switch_arguments)?;
        let stacks = self.stacks();
        stacks.configure_objects(object, kernel)?;
        // The tool recognizes a wait for a thread's end by the account of that thread.
        object.set(
            bpf::constants::WANT_THREAD_ENDS,
            stacks.objects || self.output.needs().accounts,
        )?;
        object.set(bpf::constants::CHAIN_LENGTH, self.chain)?;
        object.set(bpf::constants::MEASURE_EVERYTHING, self.follows_chain())?;
        self.intervals
            .filter(self.output.timeline())
            .configure(object, kernel)?;
        self.wakers().configure_wakers(object)?;
        object.make_room_for_threads(bpf::maps::THREADS)
    }

    fn attach<'a>(
        &'a self,
        object: &'a LoadedObject,
        kernel: &Kernel,
        targets: &'a Targets,
    ) -> Result<Self::Session<'a>> {
        let wakers = self.wakers();
        wakers.fill_wakers(object)?;
        let mut session = ClockSession::attach(object, kernel, targets, self.stacks())?;
        // Chosen wakers get unwind tables now. Any other waker gets them at its first wake-up.
        if !wakers.is_everything() {
            session.prepare(&wakers)?;
        }
        Ok(session)
    }

    fn header(&self, _session: &Self::Session<'_>) -> String {
        let unit = if self.nanoseconds { "ns" } else { "us" };
        let (subject, stacks) = (self.subject(), self.stacks.subject());
        format!("Tracing blocked time ({unit}) of {subject} by {stacks} stack, and its waker")
    }

    fn describe(&self, _session: &Self::Session<'_>, meta: &mut Meta) {
        meta.lengths = Some(self.intervals.lengths(self.output.timeline(), false));
    }

    fn removes_samples(&self) -> bool {
        self.target.thread_name().is_some() || self.intervals.exclude_samples()
    }

    fn retain(&self, profile: &mut Profile) {
        self.intervals.retain(profile);
    }

    fn weigh(&self, tally: &Tally) -> Vec<(Option<State>, Weight)> {
        let weight = |value| cli::weight_of(value, tally.blocked, tally);
        if self.states || self.output.needs().times {
            vec![
                (Some(State::Blocked), weight(tally.blocked)),
                (Some(State::Runnable), weight(tally.runnable)),
            ]
        } else {
            vec![(None, weight(tally.blocked))]
        }
    }

    fn wakers_shown(&self) -> WakersShown {
        WakersShown::Yes {
            kernel: self.stacks().kernel,
        }
    }

    fn more_outputs(&self) -> Vec<Planned> {
        let svg = self.svg.iter().map(|path| Planned {
            format: &Svg,
            path: Some(path.clone()),
            is_new: false,
        });
        svg.collect()
    }

    fn remark(&self, total: &Tally) -> Option<String> {
        let microseconds = total.runnable / 1000;
        (!self.states && !self.output.needs().times).then(|| {
            format!(
                "left out {microseconds} us of waiting for a CPU after wake-ups; --states shows it"
            )
        })
    }
}
