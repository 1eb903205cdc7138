//! The tools read from their flags the same request that wallclock encodes.
#![allow(clippy::unwrap_used)]

use std::path::PathBuf;

use cli::{CommandLine, DebuginfodChoice, Measured, Request, RequestedTargets};
use collect::{CallGraph, Delay, Languages, Recorder, Sources, Trigger, Walking};
use languages::LANGUAGES;
use proptest::collection::{btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

/// Returns the request as the tool reads it.
fn decode(request: &Request) -> anyhow::Result<Option<Request>> {
    let line = CommandLine::new(request.tool(), request.encode());
    match request.measured {
        Measured::OnCpu { .. } => {
            let arguments: oncputime::Arguments = line.parse()?;
            Ok(arguments.request())
        }
        Measured::OffCpu { .. } => {
            let arguments: offcputime::Arguments = line.parse()?;
            Ok(arguments.request())
        }
    }
}

fn measured() -> impl Strategy<Value = Measured> {
    let off_cpu = |(min_block_us, short_are_sampled)| Measured::OffCpu {
        min_block_us,
        short_are_sampled,
    };
    prop_oneof![
        (1_u64..=100).prop_map(|frequency| Measured::OnCpu { frequency }),
        (0_u64..=1_000_000_000_000, any::<bool>()).prop_map(off_cpu),
    ]
}

fn targets() -> impl Strategy<Value = RequestedTargets> {
    let pids = btree_set(1_u32..=4_194_304, 0..4);
    let processes = (pids, vec("\\PC{1,63}", 0..3)).prop_map(|(pids, awaited)| {
        let pids = pids.into_iter().collect();
        RequestedTargets::Processes { pids, awaited }
    });
    let words = |words: &'static [&'static str]| vec(select(words).prop_map(str::to_owned), 0..3);
    let cgroups = (
        words(&["/", "no-such/one", "/no-such,one"]),
        words(&["no-such", "-no-such", "no=such.service"]),
        words(&["no-such", "--no-such"]),
        any::<Option<bool>>(),
    );
    let cgroups =
        cgroups.prop_map(
            |(paths, units, containers, awaits_members)| RequestedTargets::Cgroups {
                paths,
                units,
                containers,
                awaits_members,
            },
        );
    // Without a single word these are no cgroups.
    let is_some = |targets: &RequestedTargets| match targets {
        RequestedTargets::Cgroups {
            paths,
            units,
            containers,
            ..
        } => [paths, units, containers].iter().any(|all| !all.is_empty()),
        RequestedTargets::Processes { .. } => true,
    };
    prop_oneof![processes, cgroups.prop_filter("no word", is_some)]
}

fn walking() -> impl Strategy<Value = Walking> {
    let languages = [
        Languages::Known,
        Languages::None,
        Languages::Only(&LANGUAGES[..1]),
    ];
    (
        select(&[CallGraph::Auto, CallGraph::Fp, CallGraph::Dwarf][..]),
        1..=Walking::MAX_FRAMES,
        select(languages.to_vec()),
        any::<bool>(),
    )
        .prop_map(
            |(call_graph, max_stack, languages, shows_runtime)| Walking {
                call_graph,
                max_stack,
                languages,
                shows_runtime,
            },
        )
}

fn recorders() -> impl Strategy<Value = Recorder> {
    let triggers = (any::<bool>(), 1..1_000_000_u64).prop_map(|(is_blocked, least_us)| Trigger {
        delay: if is_blocked {
            Delay::Blocked
        } else {
            Delay::Runnable
        },
        least_ns: least_us * 1000,
    });
    (1..100_000_u64, 1..4096_u64, vec(triggers, 0..3)).prop_map(|(length_ms, mib, triggers)| {
        Recorder {
            length_ns: length_ms * 1_000_000,
            max_bytes: mib << 20,
            triggers,
            counts_runnable: true,
        }
    })
}

fn requests() -> impl Strategy<Value = Request> {
    let map = || {
        prop_oneof![
            Just(None),
            "\\PC{1,20}".prop_map(|path| Some(PathBuf::from(path)))
        ]
    };
    let sources = select(&[Sources::None, Sources::Lines, Sources::Inlined][..]);
    let servers = ["https://one.example/", "http://two:8002"].map(str::to_owned);
    let debuginfod = [
        DebuginfodChoice::Environment,
        DebuginfodChoice::Configured,
        DebuginfodChoice::Off,
        DebuginfodChoice::Servers(servers.to_vec()),
    ];
    (
        measured(),
        targets(),
        any::<bool>(),
        (map(), map()),
        walking(),
        (sources, select(debuginfod.to_vec())),
        // A recorder needs a timeline.
        option::of((any::<u32>(), option::of(recorders()))),
    )
        .prop_map(
            |(
                measured,
                targets,
                children,
                (cgroup_map, mount_namespace_map),
                walking,
                (sources, debuginfod),
                timeline,
            )| {
                let (timeline_min, recorder) = timeline.unzip();
                Request {
                    measured,
                    targets,
                    children,
                    cgroup_map,
                    mount_namespace_map,
                    walking,
                    sources,
                    debuginfod,
                    timeline_min_us: timeline_min.map(u64::from),
                    recorder: recorder.flatten(),
                }
            },
        )
}

proptest! {
    #[test]
    fn tools_read_what_wallclock_asks(request in requests()) {
        let read = decode(&request).unwrap();
        prop_assert_eq!(read.as_ref(), Some(&request), "{:?}", request.encode());
    }
}

#[test]
fn requests_are_flags_that_a_user_can_type() {
    let request = Request {
        measured: Measured::OffCpu {
            min_block_us: 1000,
            short_are_sampled: true,
        },
        targets: RequestedTargets::Processes {
            pids: vec![7, 8],
            awaited: vec!["db".to_owned()],
        },
        children: true,
        cgroup_map: None,
        mount_namespace_map: None,
        walking: Walking::default(),
        sources: Sources::Lines,
        debuginfod: DebuginfodChoice::Servers(vec!["http://a".to_owned()]),
        timeline_min_us: Some(100),
        recorder: Some(Recorder {
            length_ns: 30_000_000_000,
            max_bytes: 48 << 20,
            triggers: vec![Trigger {
                delay: Delay::Blocked,
                least_ns: 50_000_000,
            }],
            counts_runnable: true,
        }),
    };
    assert_eq!(
        request.encode().join(" ".as_ref()).to_str(),
        Some(
            "--min-block-time=1000 --states --sample-short --pid=7,8 --await=db --children \
             --call-graph=auto --max-stack=1024 --language=all --srcline --debuginfod=http://a --timeline \
             --timeline-min=100 --last=30000000us --last-memory=48 --trigger=blocked:50ms \
             --format=scope"
        )
    );
}

#[test]
fn other_flags_are_no_request() {
    let on_cpu = |line: &str| {
        let line = CommandLine::new("oncputime", line.split(' '));
        line.parse::<oncputime::Arguments>().unwrap().request()
    };
    let off_cpu = |line: &str| {
        let line = CommandLine::new("offcputime", line.split(' '));
        line.parse::<offcputime::Arguments>().unwrap().request()
    };
    assert!(on_cpu("--format scope -F 9").is_some());
    for line in ["-F 9", "--format scope -c 9", "--format scope -o x"] {
        assert_eq!(on_cpu(line), None, "{line}");
    }
    assert!(off_cpu("--format scope --states").is_some());
    assert_eq!(off_cpu("--format scope"), None);
}
