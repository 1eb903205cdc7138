#![allow(clippy::unwrap_used, clippy::panic)]

use profile::diff::diff;
use profile::{
    Clock, Detail, EndedBy, Frame, FrameKind, Futex, Idleness, Lengths, Process, Profile, Rate,
    Reason, Resource, Sample, Sampling, Stack, StackId, State, Thread, ThreadId, Unit, Wait,
    WaitKind, Waker, Weight, marker,
};

use super::answer::answer;
use super::facts::Facts;
use crate::fixture::{stack, written};

const MS: u64 = 1_000_000;

/// Adds a thread whose samples follow.
fn add_thread(profile: &mut Profile, id: ThreadId, comm: &str, [on, ready, off]: [u64; 3]) {
    let comm = profile.names.text(comm);
    let clock = Clock {
        started_ns: 0,
        ended_ns: (on + ready + off) * MS,
        running_ns: on * MS,
        runnable_ns: ready * MS,
        blocked_ns: off * MS,
        ..Clock::default()
    };
    profile.threads.push(Thread { id, comm, clock });
}

fn add_sample(
    profile: &mut Profile,
    id: ThreadId,
    comm: &str,
    user: &[&str],
    state: State,
    wait: Option<Wait>,
    ms: u64,
) {
    let comm = profile.names.text(comm);
    let kernel: &[&str] = if state == State::Blocked {
        &["do_wait", "schedule"]
    } else {
        &[]
    };
    let stack = stack(profile, user, kernel);
    let wait = wait.map(|wait| profile.waits.id(wait));
    let sample = Sample {
        state: Some(state),
        wait,
        ..Sample::new(comm, Some(id), stack)
    };
    let weight = Weight {
        value: ms * MS,
        events: 4,
        longest: ms * MS / 2,
        ..Weight::default()
    };
    profile.add(sample, weight);
}

/// Returns a profile of a server of 10 s: two workers wait for a lock that `writer` releases, and
/// three pool threads are idle.
fn server() -> Profile {
    let mut profile = Profile::new(Unit::Nanoseconds);
    let meta = &mut profile.meta;
    meta.tool = "wallclock".into();
    meta.command_line = ["wallclock", "7"].map(Into::into).into();
    meta.targets = "PID 7".into();
    meta.host = "db1".into();
    meta.kernel = "6.1.0".into();
    meta.cpus = 2;
    meta.window.length_ns = 10_000 * MS;
    meta.window.start_utc_ns = 1_700_000_000_000_000_000;
    meta.sampling = Some(Sampling {
        event: "cpu-clock".into(),
        rate: Rate::Frequency(49),
    });
    meta.lengths = Some(Lengths {
        least: MS,
        most: u64::MAX,
        short_are_sampled: true,
    });
    profile.walk_ends.root = 999;
    profile.walk_ends.no_rule = 1;
    let id = |tid| ThreadId { pid: 7, tid };
    let waker = Waker {
        comm: profile.names.text("writer"),
        thread: Some(id(9)),
        stack: stack(&mut profile, &["main", "flush"], &["wake"]),
    };
    let wakers = profile.wakers.id([waker].into());
    let module = profile.names.text("mariadbd");
    let symbol = Some(profile.names.text("LOCK_log"));
    let lock = profile.resources.id(Resource::Futex(Futex::Variable {
        module,
        symbol,
        offset: 0,
    }));
    let lock = Wait {
        resource: Some(lock),
        ended_by: Some(EndedBy::Wakers(wakers)),
        idleness: Idleness::Waiting,
        ..Wait::new(WaitKind::new(Reason::Lock, Detail::Mutex))
    };
    let log = profile.names.text("/var/log/<binlog>");
    let log = profile.resources.id(Resource::File(log));
    let log = Wait {
        resource: Some(log),
        idleness: Idleness::Waiting,
        ..Wait::new(WaitKind::new(Reason::DiskWrite, Detail::Sync))
    };
    let idle = Wait {
        idleness: Idleness::Idle,
        ..Wait::new(WaitKind::new(Reason::Condition, Detail::Unknown))
    };
    for (tid, comm, [on, ready, locked, logged, rest]) in [
        (7, "mariadbd", [1_000, 500, 0, 500, 8_000]),
        (8, "worker", [2_000, 1_000, 4_000, 0, 3_000]),
        (9, "writer", [1_000, 0, 0, 3_000, 6_000]),
        (10, "pool", [0, 0, 0, 0, 10_000]),
        (11, "pool", [10, 0, 0, 0, 9_990]),
    ] {
        add_thread(
            &mut profile,
            id(tid),
            comm,
            [on, ready, locked + logged + rest],
        );
        for (user, state, wait, time) in [
            (&["main", "parse"][..], State::Running, None, on),
            (&["main", "parse"], State::Runnable, None, ready),
            (
                &["main", "log_write", "lock"],
                State::Blocked,
                Some(lock),
                locked,
            ),
            (
                &["main", "log_sync", "fdatasync"],
                State::Blocked,
                Some(log),
                logged,
            ),
            (&["main", "get_job"], State::Blocked, Some(idle), rest),
        ] {
            if time > 0 {
                add_sample(&mut profile, id(tid), comm, user, state, wait, time);
            }
        }
    }
    profile
}

fn screen(profile: &Profile) -> String {
    written(|writer| super::write(profile, writer))
}

/// Returns a text without tags, as a reader sees it.
fn plain(html: &str) -> String {
    let mut text = String::new();
    for part in html.split('<') {
        text.push_str(part.split_once('>').map_or(part, |(_, text)| text));
    }
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&#39;", "'")
        .replace("&amp;", "&")
}

#[test]
fn golden() {
    assert_eq!(screen(&server()), include_str!("golden.html"));
}

#[test]
fn the_sentence_has_the_figures_of_the_profile() {
    let profile = server();
    let answer = answer(&Facts::new(&profile));
    // Work: running 4 s, waiting for a CPU 1.5 s, lock 4 s, disk 3.5 s.
    assert_eq!(
        plain(&answer.sentence),
        "2 of 5 threads were idle. The other 3 had work for 13.0 s: 58 % blocked (31 points of it \
         on the lock LOCK_log, released by writer in flush ← main), 31 % running, 12 % waiting for \
         a CPU."
    );
    let details: Vec<String> = answer.details.iter().map(|line| plain(line)).collect();
    assert_eq!(
        details,
        [
            "Running: 100 % of it in parse.",
            "Waiting for a CPU: mariadbd had the 2 CPUs for 20 % of their time; other programs \
             were not measured.",
            "Blocked as well: 27 points on disk write: sync, /var/log/<binlog>.",
        ]
    );
    let facts = Facts::new(&profile);
    let split = facts.split;
    assert_eq!(
        split.parts(),
        [4_000, 1_500, 7_500, 17_000, 0].map(|ms| ms * MS)
    );
    let causes = facts.causes.iter().map(|cause| cause.group.time);
    assert_eq!(causes.sum::<u64>(), split.work());
    assert_eq!(facts.idle_ns(), 36_990 * MS);
}

#[test]
fn all_idle_one_thread_and_none() {
    let mut profile = server();
    profile.threads.retain(|thread| thread.id.tid >= 10);
    let sentence = |profile: &Profile| plain(&answer(&Facts::new(profile)).sentence);
    assert_eq!(
        sentence(&profile),
        "All 2 threads were idle. Together they had work for 10 ms: 100 % running."
    );
    profile.threads.truncate(1);
    assert_eq!(sentence(&profile), "The thread was idle. It had no work.");
    let mut profile = server();
    profile.threads.retain(|thread| thread.id.tid == 9);
    assert_eq!(
        sentence(&profile),
        "The thread had work for 4.00 s: 75 % blocked (on disk write: sync, /var/log/<binlog>), \
         25 % running."
    );
    assert_eq!(
        sentence(&Profile::new(Unit::Nanoseconds)),
        "No thread was seen."
    );
}

#[test]
fn a_profile_without_reasons_or_clocks_says_so() {
    let mut profile = server();
    profile.replace_samples(|_, sample| {
        Some(Sample {
            wait: None,
            ..*sample
        })
    });
    profile.waits = Default::default();
    let sentence = |profile: &Profile| plain(&answer(&Facts::new(profile)).sentence);
    assert_eq!(
        sentence(&profile),
        "None of the 5 threads was idle. They ran for 4.01 s, waited for a CPU for 1.50 s and were \
         blocked for 44.5 s; the capture does not say why."
    );
    let mut samples = Profile::new(Unit::Samples);
    samples.meta.sampling = Some(Sampling {
        event: "cache-misses".into(),
        rate: Rate::Period(1_000),
    });
    let id = ThreadId { pid: 7, tid: 7 };
    add_sample(
        &mut samples,
        id,
        "a",
        &["main", "f"],
        State::Running,
        None,
        3,
    );
    add_sample(
        &mut samples,
        id,
        "a",
        &["main", "g"],
        State::Running,
        None,
        1,
    );
    assert_eq!(
        sentence(&samples),
        "4000000000 cache-misses were counted in 1 thread. 75 % of them in f."
    );
    assert!(screen(&samples).contains("<th scope=\"col\" class=\"number\">Events</th>"));
    if let Some(sampling) = &mut samples.meta.sampling {
        sampling.event = "cpu-clock".into();
        // A sample stands for a nanosecond.
        sampling.rate = Rate::Frequency(1_000_000_000);
    }
    let running = answer(&Facts::new(&samples));
    assert_eq!(
        plain(&running.sentence),
        "1 thread: 4.0 ms running. The capture has no time waiting for a CPU or blocked."
    );
    assert_eq!(plain(&running.details[0]), "Running: 75 % of it in f.");
}

#[test]
fn hostile_names_are_only_text() {
    let long = "x".repeat(1 << 16);
    let mut profile = Profile::new(Unit::Nanoseconds);
    for (tid, name) in [
        "</script><script>alert(1)</script>",
        "<!--<script>",
        "]]><svg onload=alert(1)>",
        "\" onmouseover=\"alert(1)",
        "__proto__",
        "constructor",
        "a\u{2028}b\u{202e}c\nd",
        &long,
    ]
    .into_iter()
    .enumerate()
    {
        let id = ThreadId {
            pid: tid as u32,
            tid: tid as u32,
        };
        add_thread(&mut profile, id, name, [1_000, 0, 1_000]);
        add_sample(
            &mut profile,
            id,
            name,
            &[name, "f"],
            State::Running,
            None,
            1_000,
        );
        let resource = profile.names.text(name);
        let resource = Some(profile.resources.id(Resource::File(resource)));
        let wait = Wait {
            resource,
            idleness: Idleness::Waiting,
            ..Wait::new(WaitKind::new(Reason::DiskRead, Detail::Unknown))
        };
        add_sample(
            &mut profile,
            id,
            name,
            &["f", name],
            State::Blocked,
            Some(wait),
            1_000,
        );
        profile.processes.push(Process {
            pid: id.pid,
            executable: name.into(),
            ..Process::default()
        });
        profile.meta.host = name.into();
        profile.meta.command_line.push(name.into());
        profile.meta.targets = name.into();
    }
    let changes = diff(&with_window(&profile), &with_window(&profile)).unwrap();
    let both = with_window(&profile);
    for page in [
        screen(&profile),
        written(|writer| super::write_comparison(&both, &both, &changes, writer)),
    ] {
        let lower = page.to_lowercase();
        for refused in [
            "<script",
            "</script",
            "<!--",
            "<svg onload",
            "\" onmouseover",
            "\u{2028}",
            "\u{202e}",
        ] {
            assert!(!lower.contains(refused), "{refused:?}");
        }
        assert!(page.contains("&lt;/script&gt;&lt;script&gt;alert(1)"));
        assert!(page.contains("__proto__"));
        // The policy forbids what these attributes do.
        assert!(!lower.contains(" style="));
        check_tags(&page);
    }
    let whole = written(|writer| crate::write(&profile, writer));
    assert_eq!(whole.matches("<script").count(), 2);
    assert_eq!(whole.matches("</script>").count(), 2);
}

fn with_window(profile: &Profile) -> Profile {
    let mut profile = profile.clone();
    profile.meta.window.length_ns = 1_000 * MS;
    profile
}

/// Checks that each element is closed, in the right order.
fn check_tags(html: &str) {
    let mut open = Vec::new();
    for part in html.split('<').skip(1) {
        let (tag, _) = part.split_once('>').unwrap();
        let name = tag.split_ascii_whitespace().next().unwrap_or_default();
        match name.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name), "{tag}"),
            None if tag.ends_with('/') => {}
            None => open.push(name),
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn a_large_machine_has_a_small_first_screen() {
    let mut profile = Profile::new(Unit::Nanoseconds);
    profile.meta.cpus = 2;
    profile.meta.window.length_ns = 10_000 * MS;
    for number in 0..20_000_u32 {
        let id = ThreadId {
            pid: 1 + number / 20,
            tid: 1 + number,
        };
        let name = format!("a-thread-{}", number % 700);
        let busy = u64::from(number % 3) * 400;
        add_thread(&mut profile, id, &name, [busy, busy, 10_000]);
        let function = format!("function_{number}");
        if busy > 0 {
            add_sample(
                &mut profile,
                id,
                &name,
                &["main", &function],
                State::Running,
                None,
                busy,
            );
        }
        let idle = Wait {
            idleness: Idleness::Idle,
            ..Wait::new(WaitKind::new(Reason::Events, Detail::Unknown))
        };
        add_sample(
            &mut profile,
            id,
            &name,
            &["main", "poll"],
            State::Blocked,
            Some(idle),
            10_000,
        );
    }
    let page = screen(&profile);
    check_tags(&page);
    assert!(page.len() < 60_000, "{} bytes", page.len());
    let text = plain(&page);
    assert!(
        text.contains("6667 of 20000 threads in 1000 processes were idle."),
        "{text:.2000}"
    );
    assert!(text.contains("13313 more threads"), "{text}");
    assert!(text.contains("15 more programs"), "{text}");
}

#[test]
fn losses_and_the_ends_of_stacks_are_always_there() {
    let mut profile = server();
    let text = plain(&screen(&profile));
    assert!(text.contains("Nothing was lost."), "{text}");
    assert!(
        text.contains("99.9 % of 1000 user stacks reach the thread's first function; 1 met code without an unwind rule."),
        "{text}"
    );
    profile.losses.events = 3;
    profile.losses.times = 2;
    profile.losses.incomplete_user = 1;
    let text = plain(&screen(&profile));
    assert!(
        text.contains("Lost: 3 events (times around them are less exact), 2 rows of the timeline (the sums have their time)."),
        "{text}"
    );
    assert!(text.contains("1 user stack is cut short"), "{text}");
}

#[test]
fn the_functions_of_interpreters_are_named() {
    let mut profile = Profile::new(Unit::Nanoseconds);
    let id = ThreadId { pid: 7, tid: 7 };
    add_thread(&mut profile, id, "python3", [1_000, 0, 0]);
    let language = profile::LanguageName::new("python").unwrap();
    let mut user = StackId::EMPTY;
    for (name, kind) in [
        ("main", FrameKind::User),
        ("app.py:serve", FrameKind::Interpreted(language)),
        ("_PyEval_EvalFrameDefault", FrameKind::User),
    ] {
        let frame = Frame::named(profile.names.text(name), kind);
        let frame = profile.frames.id(frame);
        user = profile.stacks.called(user, frame);
    }
    let comm = profile.names.text("python3");
    let stack = Stack {
        user,
        ..Stack::default()
    };
    let sample = Sample {
        state: Some(State::Running),
        ..Sample::new(comm, Some(id), stack)
    };
    profile.add(
        sample,
        Weight {
            value: 1_000 * MS,
            ..Weight::default()
        },
    );
    let answer = answer(&Facts::new(&profile));
    assert_eq!(
        plain(&answer.details[0]),
        "Running: 100 % of it in app.py:serve."
    );
    // A wait without a stack has a marker.
    let none = profile.marker(marker::NO_SAMPLE);
    assert!(!none.user.is_empty());
}

#[test]
fn a_comparison_says_what_changed() {
    let before = server();
    let mut after = server();
    let id = ThreadId { pid: 7, tid: 8 };
    add_sample(
        &mut after,
        id,
        "worker",
        &["main", "parse", "check"],
        State::Running,
        None,
        3_000,
    );
    let changes = diff(&before, &after).unwrap();
    let page = written(|writer| super::write_comparison(&before, &after, &changes, writer));
    check_tags(&page);
    let text = plain(&page);
    assert!(text.contains("What changed in mariadbd (PID 7)"), "{text}");
    let row = page
        .lines()
        .find(|line| line.contains("<code>check</code></th>"))
        .unwrap();
    assert!(plain(row).starts_with("checkrunning+300.0 ± "), "{row}");
    assert!(row.contains("<tr class=\"more\">"), "{row}");
}
