//! Flags and output of offwaketime.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::HashSet;
use std::fs;

use systemscope_tests::printed::user_stacks::assert_most;
use systemscope_tests::printed::wakers::{STILL_BLOCKED, TIMER};
use systemscope_tests::programs::workload::scratch;
use systemscope_tests::{
    Folded, Line, Running, Tool, Turn, Workload, WorkloadBuilder, cpus_online, patiently,
};

const WINDOW_US: u64 = 1_000_000;
/// Kernel functions of waits and wake-ups.
const KERNEL: [&str; 4] = [
    "do_syscall_64",
    "try_to_wake_up",
    "hrtimer_interrupt",
    "futex_wait",
];

fn offwaketime() -> Tool {
    Tool::new("offwaketime")
}

/// Two threads of two processes that wake each other.
struct Pair {
    workload: Workload,
}

impl Pair {
    fn start() -> Pair {
        let mut workload = Workload::plain("wake_pairs");
        workload.go();
        Pair { workload }
    }

    fn id(&self, name: &str) -> u32 {
        u32::try_from(self.workload.told(name)).unwrap()
    }

    /// Returns both process IDs as one argument.
    fn pids(&self) -> String {
        format!("{},{}", self.id("asker"), self.id("answering"))
    }

    fn offwaketime(&self) -> Tool {
        offwaketime().arg("-p").arg(self.pids())
    }
}

/// Returns the threads whose waits a thread ended.
fn woken(folded: &Folded) -> HashSet<&str> {
    let ended = folded.lines.iter();
    let ended = ended.filter(|line| line.thread.is_none() || line.waker().thread.is_some());
    ended.map(|line| line.comm.as_str()).collect()
}

#[test]
fn a_wait_that_outlasts_the_window_is_still_blocked_for_all_of_it() {
    let _turn = Turn::share();
    let target = Running::asleep();
    for arguments in ["", "--chain 4", "-U", "-K", "-m 900000 -M 1100000"] {
        let folded = patiently(|| {
            let folded = offwaketime().pid(target.pid()).args(arguments).folded(1.0);
            assert_eq!(folded.total(), WINDOW_US, "{arguments}");
            folded
        });
        let [line] = &folded.lines[..] else {
            panic!("{arguments}: {folded}");
        };
        assert_eq!(
            (line.comm.as_str(), line.waker_comms()),
            ("sleep", vec![STILL_BLOCKED.to_owned()]),
            "{arguments}"
        );
        assert!(line.waker().frames.is_empty(), "{line}");
    }
    // The wait has no waker, so no choice of wakers includes the wait.
    for flag in ["--waker-pid", "--waker-tid"] {
        let own = std::process::id().to_string();
        let tool = offwaketime().pid(target.pid()).arg(flag).arg(own);
        assert_eq!(tool.folded(0.5), Folded::default());
    }
}

#[test]
fn t_and_l_take_threads() {
    let _turn = Turn::share();
    let pair = Pair::start();
    let answerer = pair.id("answerer");
    for flag in ["-t", "-L", "--tid"] {
        let tool = offwaketime().arg(flag).arg(answerer.to_string());
        let folded = tool.folded_per_thread(0.5);
        assert!(folded.woken_by("asker").total() > 0, "{flag}: {folded}");
        assert_eq!(folded.of_thread(answerer), folded, "{flag}");
    }
    let list = format!("{answerer},{}", pair.id("asker"));
    let folded = offwaketime().arg("-t").arg(list).folded_per_thread(0.5);
    assert_eq!(woken(&folded), HashSet::from(["asker", "answerer"]));
    assert_eq!(folded.comms(), HashSet::from(["asker", "answerer"]));
}

#[test]
fn waker_pid_and_waker_tid_choose_whose_wake_ups_count() {
    let _turn = Turn::share();
    let pair = Pair::start();
    let mut naps = Workload::start("naps", &[60, 1000]);
    naps.go();
    let targets = format!("{},{}", pair.pids(), naps.pid());
    let by = |flag: &str, ids: &[u32]| {
        let ids: Vec<String> = ids.iter().map(u32::to_string).collect();
        let tool = offwaketime().arg("-p").arg(&targets);
        let tool = tool.arg(flag).arg(ids.join(","));
        let folded = tool.folded_per_thread(0.5);
        let wakers: HashSet<_> = folded
            .lines
            .iter()
            .map(|line| line.waker().thread)
            .collect();
        (folded, wakers)
    };
    let (asker, answering, answerer) =
        (pair.id("asker"), pair.id("answering"), pair.id("answerer"));

    let (folded, wakers) = by("--waker-pid", &[answering]);
    assert_eq!(folded.comms(), HashSet::from(["asker"]));
    assert_eq!(wakers, HashSet::from([Some((answering, answerer))]));
    let (folded, wakers) = by("--waker-tid", &[asker]);
    assert_eq!(folded.comms(), HashSet::from(["answerer"]));
    assert_eq!(wakers, HashSet::from([Some((asker, asker))]));
    let both = HashSet::from([Some((asker, asker)), Some((answering, answerer))]);
    for (flag, ids) in [
        ("--waker-pid", [asker, answering]),
        ("--waker-tid", [asker, answerer]),
    ] {
        let (folded, wakers) = by(flag, &ids);
        assert_eq!(
            folded.comms(),
            HashSet::from(["asker", "answerer"]),
            "{flag}"
        );
        assert_eq!(wakers, both, "{flag}");
    }
    // The leader of the process wakes no thread.
    let (folded, _) = by("--waker-tid", &[answering]);
    assert_eq!(folded, Folded::default());
}

#[test]
#[ignore = "loads every CPU with threads that wait for it"]
fn both_lengths_are_bounds_on_the_blocked_time() {
    let _turn = Turn::share();
    // Naps of 20 ms and rests of 400 ms alternate. The waits for a CPU after them do not count.
    let mut spinners = Workload::start("spinners", &[2 * cpus_online(), 300]);
    spinners.go();
    let mut naps = Workload::start("naps", &[300, 20_000, 400]);
    naps.go();
    let ended_in = |arguments: &str, function: &str| {
        let folded = offwaketime().pid(naps.pid()).args(arguments).folded(2.0);
        folded.ended().under(function).total()
    };
    // At least one whole rest or nap is shown.
    assert!(ended_in("-m 300000", "rest") >= 399_000);
    assert_eq!(ended_in("-m 300000", "nap"), 0);
    assert!(ended_in("-M 300000", "nap") >= 19_000);
    // The start of the window may cut a rest short.
    assert!(ended_in("-M 300000", "rest") < 300_000);
}

#[test]
fn a_state_mask_chooses_waits() {
    let _turn = Turn::share();
    let simple = Workload::plain("simple");
    let with_state = |mask: &str| {
        let tool = offwaketime().pid(simple.pid()).arg("--state").arg(mask);
        tool.folded(0.5).under("known_sleep").total()
    };
    assert!(with_state("1") > 0);
    assert_eq!(with_state("2"), 0);
}

#[test]
fn user_only_and_kernel_only_are_so_on_both_sides() {
    let _turn = Turn::share();
    let pair = Pair::start();
    let user = pair.offwaketime().args("-U").folded(0.5).ended();
    let is_kernel = |frame: &str| KERNEL.contains(&frame);
    assert!(!user.frames().any(is_kernel), "{user}");
    assert_most("user stacks", &user, 900, |line| {
        line.sleeper().leaf().starts_with("await_")
            && line.waker().frames.last().unwrap().starts_with("wake_")
    });
    let kernel = pair.offwaketime().args("-K").folded(0.5).ended();
    let is_user = |frame: &str| ["main", "ask", "answer", "_start"].contains(&frame);
    assert!(!kernel.frames().any(is_user), "{kernel}");
    assert_most("kernel stacks", &kernel, 900, |line| {
        line.sleeper().has("do_syscall_64") && line.waker().has("try_to_wake_up")
    });
    let simple = Workload::plain("simple");
    let user = offwaketime().pid(simple.pid()).args("-U").folded(0.5);
    let timer = user.woken_by(TIMER);
    assert!(timer.under("known_sleep").total() > 0, "{user}");
    assert!(
        timer
            .lines
            .iter()
            .all(|line| line.waker().frames.is_empty()),
        "{timer}"
    );
}

#[test]
fn annotations_and_delimiters_are_on_both_sides() {
    let _turn = Turn::share();
    let pair = Pair::start();
    let annotated = pair.offwaketime().args("-a").folded(0.5).ended();
    let is_kernel = |frame: &String| frame.ends_with("_[k]");
    for line in &annotated.lines {
        for frames in [line.sleeper().frames, line.waker().frames] {
            let kernel = frames.iter().skip_while(|frame| !is_kernel(frame));
            assert!(
                kernel
                    .clone()
                    .all(|frame| is_kernel(frame) || frame.starts_with('[')),
                "{line}"
            );
            let named = |frame: &String| KERNEL.contains(&frame.as_str());
            assert!(!frames.iter().any(named), "{line}");
        }
    }
    assert_most("annotated", &annotated, 900, |line| {
        line.sleeper().frames.iter().any(is_kernel) && line.waker().frames.iter().any(is_kernel)
    });

    let delimited = pair.offwaketime().args("-d").folded(0.5).ended();
    assert_most("delimited", &delimited, 900, |line| {
        let parts = |frames: &[String], user: &str| {
            let at = frames.iter().position(|frame| frame == "-");
            at.is_some_and(|at| {
                frames[at - 1].starts_with(user) && !frames[at + 1..].contains(&"-".to_owned())
            })
        };
        parts(&line.sleeper().frames, "await_") && parts(&line.waker().frames, "wake_")
    });
}

#[test]
fn per_thread_names_the_threads_on_both_sides() {
    let _turn = Turn::share();
    let pair = Pair::start();
    let apart = pair.offwaketime().folded_per_thread(0.5);
    let answerer = (pair.id("answering"), pair.id("answerer"));
    let by_answerer = apart.woken_by("answerer");
    assert!(by_answerer.total() > 0, "{apart}");
    let is_thread = |line: &Line| line.waker().thread == Some(answerer);
    assert!(by_answerer.lines.iter().all(is_thread), "{by_answerer}");
    let together = pair.offwaketime().folded(0.5);
    assert!(together.woken_by("answerer").total() > 0, "{together}");
}

#[test]
fn states_add_the_waits_for_a_cpu_and_leave_the_blocked_time() {
    let _turn = Turn::share();
    let simple = Workload::plain("simple");
    let mut spinners = Workload::start("spinners", &[2 * cpus_online(), 60]);
    spinners.go();
    let on = || offwaketime().pid(simple.pid());
    let with = on().args("--states").folded(2.0).sleepers();
    let (blocked, runnable) = (with.marked("_[o]").total(), with.marked("_[r]").total());
    assert_eq!(blocked + runnable, with.total(), "{with}");
    assert!(blocked > 0 && runnable > 0, "{with}");
    let finished = on().arg("2").run().succeeded();
    let without = Folded::parse(&finished.stdout);
    let is_marked = |frame: &str| frame.ends_with("_[o]") || frame.ends_with("_[r]");
    assert!(!without.frames().any(is_marked), "{without}");
    assert!(
        finished.stderr.contains("--states shows it"),
        "{}",
        finished.stderr
    );
}

/// A record reads downwards: the waker from its root to its leaf, then the sleeper from its leaf to
/// its root.
#[test]
fn classic_reads_downwards() {
    let _turn = Turn::share();
    let pair = Pair::start();
    let finished = pair.offwaketime().args("--classic --duration 0.5").run();
    let text = String::from_utf8(finished.succeeded().stdout).unwrap();
    let records = text.split("\n\n");
    let record = records
        .filter(|record| record.contains("wake_asker") && record.contains("await_answer"))
        .last();
    let record = record.unwrap_or_else(|| panic!("{text}"));
    let asker = format!("target: asker {}", pair.id("asker"));
    let answerer = format!("waker: answerer {}", pair.id("answering"));
    let story = [
        answerer.as_str(),
        "start_thread",
        "wake_asker",
        "do_syscall_64",
        "try_to_wake_up",
        "-- --",
        "ksys_read",
        "await_answer",
        "ask",
        "main",
        &asker,
    ];
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let lines: Vec<String> = record.lines().map(words).collect();
    let mut rest = lines.iter();
    for part in story {
        assert!(rest.any(|line| line == part), "no {part}: {record}");
    }
    let value = rest.next().and_then(|line| line.parse::<u64>().ok());
    assert!(value.is_some() && rest.next().is_none(), "{record}");
}

#[test]
fn svg_is_a_whole_picture_beside_the_text() {
    let _turn = Turn::share();
    let pair = Pair::start();
    let folder = scratch();
    let path = folder.path().join("wakeups.svg");
    let finished = pair.offwaketime().arg("--svg").arg(&path).arg("0.5").run();
    let folded = Folded::parse(&finished.succeeded().stdout);
    assert!(folded.woken_by("asker").total() > 0, "{folded}");
    let svg = fs::read_to_string(&path).unwrap();
    assert!(svg.starts_with("<?xml") || svg.starts_with("<svg"));
    assert!(svg.trim_end().ends_with("</svg>"), "not whole");
    for name in [
        "asker",
        "answerer",
        "await_answer",
        "wake_asker",
        "await_question",
        "wake_answerer",
    ] {
        assert!(svg.contains(name), "no {name} in the picture");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
#[ignore = "measures once for each way to unwind"]
fn call_graph_chooses_how_both_stacks_are_walked() {
    let _turn = Turn::share();
    let build = WorkloadBuilder::new("wake_pairs").without_frame_pointers();
    let mut workload = build.start();
    workload.go();
    let pid = u32::try_from(workload.told("asker")).unwrap();
    let run = |mode: &str| {
        let tool = offwaketime()
            .pid(pid)
            .args("--per-thread --call-graph")
            .arg(mode);
        let finished = tool.arg("0.5").run().succeeded();
        Folded::parse_per_thread(&finished.stdout)
            .of_thread(pid)
            .ended()
    };
    let has_both_roots =
        |line: &Line| line.sleeper().has("main") && line.waker().has("start_thread");
    for mode in ["auto", "dwarf"] {
        assert_most(mode, &run(mode), 900, has_both_roots);
    }
    let by_frame_pointers = run("fp");
    assert!(by_frame_pointers.total() > 0);
    let whole = by_frame_pointers.only(has_both_roots);
    assert_eq!(whole.total(), 0, "without frame pointers:{whole}");
    let refused = offwaketime().args("--call-graph maybe 1").run();
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
}

#[test]
fn v_says_more_and_only_on_stderr() {
    let _turn = Turn::share();
    let pair = Pair::start();
    let quiet = pair.offwaketime().arg("0.5").run().succeeded();
    let verbose = pair.offwaketime().args("-v 0.5").run().succeeded();
    Folded::parse(&verbose.stdout);
    assert!(
        verbose.stderr.len() > quiet.stderr.len(),
        "{}",
        verbose.stderr
    );
    let measured = format!("Tracing blocked time (us) of PID {} by ", pair.pids());
    for words in [
        measured.as_str(),
        " intervals, ",
        "lost",
        "waiting for a CPU",
    ] {
        assert!(quiet.stderr.contains(words), "{}", quiet.stderr);
    }
    assert!(verbose.stderr.contains("reached the root"));
}
