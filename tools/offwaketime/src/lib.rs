//! offwaketime: where threads block, and who ends it.

mod arguments;

use bpf::types::{
    ClockRecord, OpenInterval, SleepingThread, Tally, WAKER_MISSED, WAKER_STILL_BLOCKED,
    WAKER_UNWANTED, square_of,
};
use cli::{CommonFlags, Planned, StackTool};
use collect::{ClockSession, OffCpuFilter, StackChoice, WakersShown};
use export::svg::Svg;
use loader::{Kernel, LoadedObject, OpenObject, Result, Targets};
use profile::{Meta, Profile, State, Unit, Weight};

pub use arguments::Arguments;

impl StackTool for Arguments {
    const NAME: &'static str = "offwaketime";
    const OBJECT: bpf::Object = bpf::offwaketime::OBJECT;
    const UNIT: Unit = Unit::Nanoseconds;
    type Session<'a> = ClockSession<'a, SleepingThread>;

    fn common(&self) -> CommonFlags<'_> {
        CommonFlags {
            target: &self.target,
            output: &self.output,
            duration: &self.duration,
            control: &self.control,
            nanoseconds: self.nanoseconds,
        }
    }

    fn check(&self) -> anyhow::Result<()> {
        self.intervals.validate()?;
        if self.intervals.state == Some(0) {
            return Err(cli::usage(
                "--state 0 means runnable, and a thread that is runnable waits for no waker: give a mask of other states, or use offcputime",
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
            // A chain ends where a thread comes again.
            per_thread: choice.per_thread || is_chain,
            per_process: choice.per_process || is_chain,
            // Anyone may be a waker.
            of_anyone: true,
            objects: choice.objects || self.intervals.need_objects(),
            ..choice
        }
    }

    fn configure(&self, object: &mut OpenObject, kernel: &Kernel) -> Result<()> {
        object.set("switch_arguments", kernel.switch_arguments)?;
        let stacks = self.stacks();
        stacks.configure_objects(object, kernel)?;
        // A joined thread is known by its account.
        object.set("want_thread_ends", stacks.objects)?;
        object.set("chain_length", self.chain)?;
        object.set("measure_everything", self.follows_chain())?;
        self.intervals.filter().configure(object, kernel)?;
        self.wakers().configure_wakers(object)?;
        object.make_room_for_threads("threads")
    }

    fn attach<'a>(
        &'a self,
        object: &'a LoadedObject,
        kernel: &Kernel,
        targets: &'a Targets,
    ) -> Result<Self::Session<'a>> {
        let wakers = self.wakers();
        wakers.fill_wakers(object)?;
        let filter = self.intervals.filter();
        let (chosen, any_waker) = (wakers.clone(), wakers.is_everything());
        let charge = move |sleeper: &SleepingThread, tally, open: Option<&OpenInterval>| {
            let charged = charge(sleeper, tally, &chosen, &filter);
            charged.filter(|_| self.is_chosen(open))
        };
        let charge = Box::new(charge);
        let mut session = ClockSession::attach(object, kernel, targets, self.stacks(), charge)?;
        // Of all the machine only those that wake get tables, when they first do.
        if !any_waker {
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
        meta.lengths = Some(self.intervals.lengths(false));
    }

    fn retain(&self, profile: &mut Profile) {
        self.intervals.retain(profile);
    }

    fn weigh(&self, tally: &Tally) -> Vec<(Option<State>, Weight)> {
        let weight = |value| cli::weight_of(value, tally.blocked, tally);
        match self.states {
            true => vec![
                (Some(State::Blocked), weight(tally.blocked)),
                (Some(State::Runnable), weight(tally.runnable)),
            ],
            false => vec![(None, weight(tally.blocked))],
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
        (!self.states).then(|| {
            format!(
                "left out {microseconds} us of waiting for a CPU after the wake-ups; --states shows it"
            )
        })
    }
}

impl Arguments {
    /// Whether an interval that is open at the end is of a thread that was asked for. Of a
    /// chain everybody has a clock.
    fn is_chosen(&self, open: Option<&OpenInterval>) -> bool {
        open.map_or(!self.follows_chain(), |open| open.is_chosen != 0)
    }
}

/// What an interval that is open at the end counts for: `off_cpu_interval()` of
/// `offwaketime.bpf.c` for those.
fn charge(
    sleeper: &SleepingThread,
    tally: Tally,
    wakers: &Targets,
    filter: &OffCpuFilter,
) -> Option<(Tally, u64)> {
    let thread = sleeper.thread();
    if tally.blocked == 0 || !filter.admits(tally.blocked, thread.off_state) {
        return None;
    }
    let waker = match sleeper.wake.waker {
        WAKER_MISSED if tally.runnable == 0 => WAKER_STILL_BLOCKED,
        waker => waker,
    };
    if waker <= WAKER_UNWANTED && !wakers.is_everything() {
        return None;
    }
    let length = tally.blocked;
    let tally = Tally {
        longest: length,
        shortest: length,
        squares: square_of(length),
        ..tally
    };
    Some((tally, waker))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    const BLOCKED_NS: u64 = 5 << 20;
    /// A thread that woke.
    const THREAD: u64 = WAKER_UNWANTED + 1;

    fn parse(flags: &str) -> Arguments {
        let words = flags.split_whitespace();
        Arguments::parse_from(["offwaketime"].into_iter().chain(words))
    }

    /// A wait in state 1.
    fn wait(blocked: u64, runnable: u64) -> Tally {
        Tally {
            events: 1,
            blocked,
            runnable,
            longest: blocked + runnable,
            ..Tally::default()
        }
    }

    /// What it counts for, if that is what is known of its waker.
    fn charged(flags: &str, tally: Tally, waker: u64) -> Option<(Tally, u64)> {
        let mut sleeper = SleepingThread {
            off_state: 1,
            ..SleepingThread::default()
        };
        sleeper.wake.waker = waker;
        let flags = parse(flags);
        charge(&sleeper, tally, &flags.wakers(), &flags.intervals.filter())
    }

    #[test]
    fn an_open_wait_is_as_long_as_it_was_blocked() {
        let charged = charged("", wait(BLOCKED_NS, 700), THREAD);
        let tally = Tally {
            longest: BLOCKED_NS,
            shortest: BLOCKED_NS,
            // In units of 2^20 ns².
            squares: (5 << 10) * (5 << 10),
            ..wait(BLOCKED_NS, 700)
        };
        assert_eq!(charged, Some((tally, THREAD)));
    }

    #[test]
    fn an_open_wait_counts_if_it_was_blocked_and_is_asked_for() {
        let counts = |flags, blocked| charged(flags, wait(blocked, 700), THREAD).is_some();
        assert!(counts("-m 0", BLOCKED_NS) && !counts("-m 0", 0));
        assert!(counts("-m 5", 5_000) && !counts("-m 5", 4_999));
        assert!(counts("--state 1", BLOCKED_NS) && !counts("--state 2", BLOCKED_NS));
    }

    #[test]
    fn nobody_has_ended_a_wait_after_which_there_was_none_for_a_cpu() {
        let waker = |runnable, waker| {
            let charged = charged("", wait(BLOCKED_NS, runnable), waker);
            charged.map(|(_, waker)| waker)
        };
        assert_eq!(waker(0, WAKER_MISSED), Some(WAKER_STILL_BLOCKED));
        assert_eq!(waker(1, WAKER_MISSED), Some(WAKER_MISSED));
        assert_eq!(waker(0, THREAD), Some(THREAD));
    }

    #[test]
    fn where_wakers_are_named_waits_that_others_or_nobody_ended_do_not_count() {
        for waker in [WAKER_MISSED, WAKER_STILL_BLOCKED, WAKER_UNWANTED] {
            let counts = |flags| charged(flags, wait(BLOCKED_NS, 1), waker).is_some();
            assert!(counts("") && !counts("--waker-pid 1"), "{waker}");
            assert!(!counts("--waker-tid 1"), "{waker}");
        }
        assert!(charged("--waker-pid 1", wait(BLOCKED_NS, 1), THREAD).is_some());
        let wakers = parse("--waker-pid 1,2 --waker-tid 3").wakers();
        assert_eq!((wakers.pids, wakers.tids), (vec![1, 2], vec![3]));
    }

    #[test]
    fn with_chains_those_who_were_not_asked_for_have_clocks_and_do_not_count() {
        let open = |is_chosen| OpenInterval {
            is_chosen,
            ..OpenInterval::default()
        };
        for flags in ["", "--chain 2"] {
            let flags = parse(flags);
            assert!(flags.is_chosen(Some(&open(1))) && !flags.is_chosen(Some(&open(0))));
        }
        assert!(parse("").is_chosen(None) && !parse("--chain 2").is_chosen(None));
    }

    #[test]
    fn chains_tell_threads_apart() {
        let apart = |flags| {
            let stacks = parse(flags).stacks();
            (stacks.per_thread, stacks.per_process)
        };
        assert_eq!(apart(""), (false, false));
        assert_eq!(apart("--per-process"), (false, true));
        assert_eq!(apart("--per-thread"), (true, true));
        assert_eq!(apart("--chain 2"), (true, true));
    }

    #[test]
    fn stacks_are_anyones_and_with_what_is_asked_of_waits() {
        let objects = |flags| parse(flags).stacks().objects;
        assert!(!objects("") && objects("--reasons") && objects("--reason lock"));
        assert!(parse("").stacks().of_anyone);
        assert_eq!(parse("-k").subject(), "all kernel threads");
    }

    #[test]
    fn waits_for_a_cpu_that_are_not_shown_are_told_in_microseconds() {
        let remark = |flags| parse(flags).remark(&wait(0, 1_234_567));
        let told = remark("").unwrap_or_default();
        assert!(told.starts_with("left out 1234 us of waiting"), "{told}");
        assert_eq!(remark("--states"), None);
    }
}
