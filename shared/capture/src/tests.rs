#![allow(clippy::unwrap_used, clippy::panic)]

use std::io::{BufRead, ErrorKind, Read};

use prost::Message;

use super::proto::{self, record::Kind};
use super::*;
use std::num::NonZeroU32;

use profile::{
    Bursts, Clock, Detail, EndedBy, Ending, Frame, FrameKind, Function, Futex, Holder, Id,
    Idleness, Interval, Label, Lengths, Losses, Meta, Module, ModuleKind, Name, Peer, Process,
    Profile, Protocol, Rate, Reason, RequestSpan, Resource, Sample, Sampling, Shares, Side, Socket,
    State, Text, Thread, ThreadChange, ThreadEvent, ThreadId, TimedSample, Transport, Unit, Wait,
    WaitKind, WalkEnds, Window, folded,
};

/// Returns a profile with every kind of row, and every field set.
fn profile() -> Profile {
    let text = "a-1/2;main;f;-;wait_[o];--;wake;-;put;main;b-3/4;--;tick;[timer] 5000\n\
                a-1/2;main;[Missed Kernel Stack]_[r] 70\n\
                c-8/9;main;f_[c] 9007199254740993\n";
    let mut profile = folded::read(text.as_bytes(), Unit::Nanoseconds, true).unwrap();
    let user = all_that_is_known(&mut profile);
    let (mut sample, mut weight) = profile
        .samples
        .iter()
        .next()
        .map(|(s, w)| (*s, *w))
        .unwrap();
    (sample.thread, sample.state, sample.wakers) = (None, None, None);
    let [key, value] = ["reason", "lock"].map(|text| profile.names.text(text));
    let labels = [Label { key, value }, Label { key: value, value }];
    sample.labels = Some(profile.labels.id(labels.into()));
    sample.wait = add_waits(&mut profile);
    sample.is_sampled = true;
    sample.stack.user = user;
    (weight.events, weight.longest) = (3, 4);
    (weight.shortest, weight.squares) = (2, 5);
    let comm = sample.comm;
    let sample = profile.add(sample, weight);
    add_times(&mut profile, &[None, Some(sample)]);
    profile.threads.push(Thread {
        id: ThreadId { pid: 1, tid: 2 },
        comm,
        clock: Clock {
            started_ns: 3,
            ended_ns: 18,
            running_ns: 4,
            runnable_ns: 5,
            blocked_ns: 6,
            voluntary: 7,
            involuntary: 8,
        },
    });
    profile.meta = meta();
    profile.walk_ends = WalkEnds {
        root: 1,
        by_frame_pointer: 2,
        no_mapping: 3,
        read_failed: 4,
        too_deep: 5,
        no_rule: 6,
        code_32_bit: 7,
    };
    profile.processes.push(Process {
        pid: 1,
        parent: 2,
        start_ticks: 3,
        executable: "/usr/bin/a".into(),
        command_line: ["a", "", "b"].map(Text::from).to_vec(),
        cgroup: "/system.slice/a.service".into(),
        is_kernel_thread: true,
    });
    profile.losses = Losses {
        events: 1,
        stacks: 2,
        threads: 3,
        incomplete_user: 4,
        times: 5,
    };
    profile
}

/// Adds a resource of each kind, and a wait on each. Returns the last wait.
fn add_waits(profile: &mut Profile) -> Option<Id<Wait>> {
    let peer = |pid, comm| Peer { pid, comm };
    let internet = |local: &str, remote: &str, protocol, side| {
        Resource::Socket(Socket::Internet {
            protocol,
            local: local.parse().unwrap(),
            remote: remote.parse().unwrap(),
            side,
        })
    };
    let unix = |transport, path, peer, side| {
        Resource::Socket(Socket::Unix {
            transport,
            path,
            peer,
            side,
        })
    };
    let variable = |symbol, offset| {
        Resource::Futex(Futex::Variable {
            module: "libm.so.6",
            symbol,
            offset,
        })
    };
    let resources = [
        Resource::File("/etc/passwd"),
        Resource::FileNamed("log"),
        Resource::Pipe("pipe:[7]"),
        Resource::Anonymous("eventfd"),
        internet("10.0.0.1:80", "10.0.0.2:0", Protocol::Tcp, Side::Answers),
        internet("[::1]:53", "[::]:0", Protocol::Udp, Side::Listens),
        internet("1.1.1.1:0", "1.1.1.2:0", Protocol::Number(132), Side::Asks),
        unix(Transport::Stream, Some("/run/a"), None, Side::Unknown),
        unix(
            Transport::Datagram,
            None,
            Some(peer(Some(1), Some("a"))),
            Side::Asks,
        ),
        unix(
            Transport::Packet,
            Some("@a"),
            Some(peer(None, None)),
            Side::Listens,
        ),
        Resource::Socket(Socket::Netlink),
        Resource::Socket(Socket::Family(40)),
        variable(Some("pool"), 0),
        variable(None, 1 << 40),
        Resource::Futex(Futex::UsedBy("book")),
        Resource::Process(peer(Some(9), None)),
        Resource::Child("make"),
        Resource::Object("shop.Account"),
        Resource::Thread("worker"),
        Resource::Other,
        Resource::Described("tcp to 10.0.0.2:3306"),
    ];
    let comm = profile.names.text("holder");
    let holder = Holder {
        comm,
        thread: Some(ThreadId { pid: 5, tid: 6 }),
        shares_name: true,
    };
    let wakers = profile.wakers.id([].into());
    let unknown_detail = Detail::Named(profile.names.text("quantum lock"));
    let details = [Detail::Mutex, Detail::Epoll, unknown_detail];
    let mut last = None;
    for (at, resource) in resources.into_iter().enumerate() {
        let resource = resource.map(|name| profile.names.text(name));
        let wait = Wait {
            kind: WaitKind::new(Reason::ALL[at % Reason::ALL.len()], details[at % 3]),
            resource: Some(profile.resources.id(resource)),
            holder: (at % 2 == 0).then_some(holder),
            ended_by: match at % 3 {
                0 => None,
                1 => Some(EndedBy::Wakers(wakers)),
                _ => Some(EndedBy::Described(comm)),
            },
            idleness: Idleness::ALL[at % Idleness::ALL.len()],
        };
        last = Some(profile.waits.id(wait));
    }
    // The writer adds these names to the names of the profile.
    for name in ["mutex", "epoll"] {
        profile.names.text(name);
    }
    last
}

/// Returns shares of one state, or of several.
fn shares(at: u32) -> Shares {
    let length_ns = u64::from(at);
    match at % 4 {
        0 => Shares::all(State::Running, length_ns),
        1 => Shares::all(State::Runnable, length_ns),
        2 => Shares::all(State::Blocked, length_ns),
        _ => Shares {
            running_ns: 1,
            runnable_ns: length_ns,
            blocked_ns: 3,
        },
    }
}

/// Adds an interval, a timed sample and a request span for each of these samples, if there is
/// one. Times jump back and forth. The parent of each span is the span before.
fn add_times(profile: &mut Profile, samples: &[Option<Id<Sample>>]) {
    let name = profile.names.text("GET /");
    let mut parent = None;
    for (at, &sample) in (0..).zip(samples) {
        let thread = ThreadId { pid: 1, tid: at };
        let start_ns = 1_000_000_000_000 + u64::from(at % 3) * 1_000_000;
        profile.times.intervals.push(Interval {
            thread,
            start_ns,
            shares: shares(at),
            sample,
        });
        (profile.times.timed_samples).extend(sample.map(|sample| TimedSample {
            thread,
            cpu: at,
            time_ns: start_ns,
            sample,
        }));
        let changes = [
            ThreadChange::Started,
            ThreadChange::Executed(name),
            ThreadChange::Renamed(name),
            ThreadChange::Ended,
        ];
        profile.times.thread_events.push(ThreadEvent {
            thread,
            time_ns: start_ns,
            change: changes[at as usize % 4],
        });
        parent = profile.times.request_spans.add(RequestSpan {
            name,
            thread,
            start_ns,
            end_ns: start_ns + 7,
            parent,
        });
    }
}

/// Adds a stack with a frame from every kind of module. Every field of the frames is set.
fn all_that_is_known(profile: &mut Profile) -> profile::StackId {
    let mut name = |text: &str| profile.names.text(text);
    let [path, build_id, demangled, mangled, file] =
        ["/usr/lib/libc.so.6", "ab01", "a::b", "_ZN1a1bE", "a.cc"].map(&mut name);
    let function = profile.functions.id(Function {
        name: demangled,
        system_name: Some(mangled),
        file: Some(file),
        line: NonZeroU32::new(7),
    });
    let kinds = [
        ModuleKind::File,
        ModuleKind::Vdso,
        ModuleKind::Jit,
        ModuleKind::Kernel,
        ModuleKind::KernelModule,
    ];
    let modules = kinds.map(|kind| {
        profile.modules.id(Module {
            path,
            build_id: Some(build_id),
            kind,
        })
    });
    let frames = modules.map(|module| {
        profile.frames.id(Frame {
            name: demangled,
            kind: FrameKind::User,
            module: Some(module),
            address: Some(0),
            function: Some(function),
            line: NonZeroU32::new(9),
            offset: Some(0),
            is_inlined: true,
        })
    });
    profile.stacks.add(frames)
}

fn meta() -> Meta {
    Meta {
        tool: "offcputime".into(),
        tool_version: "1.2.3".into(),
        command_line: ["offcputime", "-p", "1"].map(Text::from).to_vec(),
        host: "here".into(),
        kernel: "6.1.0".into(),
        cpus: 2,
        window: Window {
            start_ns: 3,
            start_utc_ns: 4,
            length_ns: 5,
            requested_ns: 8,
            ending: Ending::TargetGone,
        },
        targets: "PID 1".into(),
        sampling: Some(Sampling {
            event: "cpu-clock".into(),
            rate: Rate::Frequency(49),
        }),
        lengths: Some(Lengths {
            least: 6,
            most: u64::MAX,
            short_are_sampled: true,
        }),
        bursts: [(None, 100), (Some(State::Runnable), 340)]
            .map(|(state, percent)| Bursts { state, percent })
            .to_vec(),
        timeline_least_ns: Some(0),
    }
}

fn capture(profile: &Profile) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(profile, &mut bytes).unwrap();
    bytes
}

/// Makes a capture of these records, one after another.
fn of_records(records: impl IntoIterator<Item = Kind>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for kind in records {
        let record = proto::Record { kind: Some(kind) };
        bytes.extend(record.encode_length_delimited_to_vec());
    }
    of_bytes(&bytes)
}

/// Makes a capture with these bytes in place of records.
fn of_bytes(bytes: &[u8]) -> Vec<u8> {
    let packed = zstd::encode_all(bytes, 1).unwrap();
    [&MAGIC[..], &[VERSION], &packed].concat()
}

fn assert_same(one: &Profile, other: &Profile) {
    // The tables of both are in the same order. Hash maps are not compared.
    assert_eq!((&one.meta, one.unit), (&other.meta, other.unit));
    assert_eq!(one.losses, other.losses);
    assert_eq!(one.walk_ends, other.walk_ends);
    assert!(one.names.iter().eq(other.names.iter()));
    assert!(one.modules.iter().eq(other.modules.iter()));
    assert!(one.functions.iter().eq(other.functions.iter()));
    assert!(one.frames.iter().eq(other.frames.iter()));
    assert!(one.stacks.nodes().eq(other.stacks.nodes()));
    assert!(one.wakers.iter().eq(other.wakers.iter()));
    assert!(one.resources.iter().eq(other.resources.iter()));
    assert!(one.waits.iter().eq(other.waits.iter()));
    assert!(one.labels.iter().eq(other.labels.iter()));
    assert!(one.samples.iter().eq(other.samples.iter()));
    assert_eq!(one.threads, other.threads);
    assert_eq!(one.processes, other.processes);
    assert_eq!(one.times, other.times);
}

#[test]
fn it_is_read_as_it_was_written() {
    let profile = profile();
    assert_same(&read(&capture(&profile)[..]).unwrap(), &profile);
    let mut empty = Profile::new(Unit::Samples);
    empty.meta.sampling = Some(Sampling {
        event: "cycles".into(),
        rate: Rate::Period(1000),
    });
    assert_same(&read(&capture(&empty)[..]).unwrap(), &empty);
}

#[test]
fn more_rows_than_a_record_holds() {
    let mut profile = Profile::new(Unit::Samples);
    let text: String = (0..10_000)
        .map(|n| format!("t;f{};g{n} 1\n", n % 7))
        .collect();
    let other = folded::read(text.as_bytes(), Unit::Samples, false).unwrap();
    let import = profile::Import::new(&mut profile, &other);
    let samples = other.samples.iter();
    let samples = samples.map(|(sample, weight)| profile.add(import.sample(*sample), *weight));
    let samples: Vec<Option<Id<Sample>>> = samples.map(Some).collect();
    assert_eq!(profile.samples.len(), 10_000);
    add_times(&mut profile, &samples);
    assert_same(&read(&capture(&profile)[..]).unwrap(), &profile);
}

#[test]
fn one_that_is_cut_off_anywhere_is_said_to_be() {
    let whole = profile();
    let bytes = capture(&whole);
    for length in 0..bytes.len() {
        let cut = &bytes[..length];
        assert!(matches!(read(cut), Err(Error::CutOff)), "{length}");
        // The profile of the cut capture is a part of the whole profile.
        if let Ok(partials) = read_what_is_whole(cut) {
            let [Partial { profile, .. }] = &partials[..] else {
                unreachable!("there is one")
            };
            assert!(
                whole
                    .names
                    .iter()
                    .zip(profile.names.iter())
                    .all(|(a, b)| a == b)
            );
            assert!(profile.samples.len() <= whole.samples.len());
        }
    }
}

#[test]
fn rows_too_long_for_one_record_are_read_as_they_were_written() {
    let mut profile = Profile::new(Unit::Samples);
    for number in 0..40 {
        profile
            .names
            .text(&format!("{number}{}", "x".repeat(200_000)));
    }
    assert_same(&read(&capture(&profile)[..]).unwrap(), &profile);
}

fn meta_record() -> Kind {
    Kind::Meta(proto::Meta {
        unit: proto::Unit::Nanoseconds.into(),
        ..proto::Meta::default()
    })
}

fn processes(count: usize) -> Kind {
    let processes = vec![proto::Process::default(); count];
    Kind::Processes(proto::Processes { processes })
}

#[test]
fn more_rows_than_the_size_allows_are_damage_over_all_parts_of_a_file() {
    let end = || Kind::End(proto::End::default());
    let part = |records| {
        let records = (0..records).map(|_| processes(ROWS));
        let records = [meta_record()].into_iter().chain(records).chain([end()]);
        of_records(records)
    };
    let message = "it has far more rows than its size allows";
    assert_eq!(damage(&part(400)), message);
    assert!(read(&part(40)[..]).is_ok());
    let parts = part(40).repeat(20);
    assert!(matches!(read_all(&parts[..]), Err(Error::Damaged(why)) if why == message));
    let partials = read_what_is_whole(&parts[..]).unwrap();
    assert!((2..20).contains(&partials.len()));
    // Each field of a record can take a hundred bytes.
    let crowded = of_records([processes(MAX_FIELDS + 1)]);
    assert_eq!(damage(&crowded), "a record has too many rows");
    // A megabyte of zeros in a field that a later version wrote.
    let mut later = vec![0xf2, 0x01, 0x80, 0x80, 0x40];
    later.resize(later.len() + (1 << 20), 0);
    let later = [&[0x85, 0x80, 0x40][..], &later].concat().repeat(64);
    let message = "it unpacks to far more than its size allows";
    assert_eq!(damage(&of_bytes(&later)), message);
}

/// Makes a capture of a stack of `depth` frames, and of samples in it.
fn deep(depth: u32, samples: usize) -> Vec<u8> {
    let names = vec!["f".to_owned()];
    let frame = proto::Frame {
        kind: proto::FrameKind::FrameUser.into(),
        ..proto::Frame::default()
    };
    let stacks = (0..depth).collect::<Vec<u32>>();
    let stacks = stacks.chunks(ROWS).map(|callers| {
        Kind::Stacks(proto::Stacks {
            callers: callers.to_vec(),
            leaves: vec![0; callers.len()],
        })
    });
    let column = |value: u32| vec![value; samples];
    let weights = || vec![1; samples];
    let samples = proto::Samples {
        comms: column(0),
        pids: column(0),
        tids: column(0),
        users: column(depth),
        kernels: column(0),
        states: column(0),
        chains: column(0),
        values: weights(),
        events: weights(),
        longest: weights(),
        shortest: weights(),
        squares: weights(),
        labels: Vec::new(),
        waits: Vec::new(),
    };
    let head = [
        meta_record(),
        Kind::Names(proto::Names { names }),
        Kind::Frames(proto::Frames {
            frames: vec![frame],
        }),
    ];
    let tail = [Kind::Samples(samples), Kind::End(proto::End::default())];
    of_records(head.into_iter().chain(stacks).chain(tail))
}

#[test]
fn stacks_deeper_than_a_recorder_writes_are_damage() {
    let most = u32::try_from(MAX_DEPTH).unwrap();
    assert!(read(&deep(most, 1)[..]).is_ok());
    let message = "a stack is deeper than any recorder writes";
    assert_eq!(damage(&deep(most + 1, 1)), message);
}

/// A frame takes 17 bytes of text.
#[test]
fn samples_whose_stacks_come_to_more_text_than_the_size_allows_are_damage() {
    let bytes = deep(10_000, 4_000);
    assert!(bytes.len() < 50_000, "{}", bytes.len());
    let message = "its stacks are far deeper than its size allows";
    assert_eq!(damage(&bytes), message);
    assert!(read(&deep(10_000, 400)[..]).is_ok());
}

#[test]
fn captures_behind_each_other_are_read_one_by_one() {
    let first = capture(&profile());
    let mut second = Profile::new(Unit::Samples);
    second.names.text("second");
    let both = [first.clone(), capture(&second)].concat();
    let read_both = read_all(&both[..]).unwrap();
    assert_eq!(read_both.len(), 2);
    assert_eq!(read_both[0].names.len(), profile().names.len());
    assert!(read_both[1].names.iter().any(|name| &**name == "second"));
    assert_eq!(read_all(&first[..]).unwrap().len(), 1);
    // The reader rejects empty input and half a capture.
    assert!(matches!(read_all(&b""[..]), Err(Error::CutOff)));
    let cut = &both[..both.len() - 3];
    assert!(matches!(read_all(cut), Err(Error::CutOff)));
    let partials = read_what_is_whole(cut).unwrap();
    let errors = partials.iter().map(|partial| partial.error.is_some());
    assert!(errors.eq([false, true]));
    let many = first.repeat(MAX_CAPTURES + 1);
    assert!(matches!(read_all(&many[..]), Err(Error::Damaged(_))));
    let partials = read_what_is_whole(&many[..]).unwrap();
    assert_eq!(partials.len(), MAX_CAPTURES);
    // The last partial has an error because captures were left out.
    assert!(partials.last().unwrap().error.is_some());
}

/// Returns the reason why a capture is not read to its end.
fn damage(bytes: &[u8]) -> &'static str {
    match read(bytes) {
        Err(Error::Damaged(why)) => why,
        other => unreachable!("{other:?}"),
    }
}

#[test]
fn a_length_is_only_a_claim() {
    // A length of a terabyte, in groups of seven bits.
    let terabyte = [0x80, 0x80, 0x80, 0x80, 0x80, 0x20];
    assert_eq!(damage(&of_bytes(&terabyte)), "a record is too long");
    assert_eq!(damage(&of_bytes(&[0xff; 11])), "a record has no length");
    // The length is the maximum, and the bytes are missing.
    let longest = [0x80, 0x80, 0x80, 0x02];
    assert!(matches!(read(&of_bytes(&longest)[..]), Err(Error::CutOff)));
}

/// A reader that fails once, and then ends.
struct Fails(Option<ErrorKind>);

impl Read for Fails {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.fill_buf().map(<[u8]>::len)
    }
}

impl BufRead for Fails {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        match self.0.take() {
            Some(kind) => Err(kind.into()),
            None => Ok(&[]),
        }
    }

    fn consume(&mut self, _: usize) {}
}

#[test]
fn a_reader_that_fails_is_told_and_one_that_is_interrupted_goes_on() {
    let bytes = capture(&profile());
    for at in 0..=bytes.len() {
        let (before, after) = bytes.split_at(at);
        let read = |kind| read(before.chain(Fails(Some(kind))).chain(after));
        let failed = read(ErrorKind::PermissionDenied);
        assert!(matches!(failed, Err(Error::Read(_))), "{at}");
        let error = read(ErrorKind::Interrupted).err();
        assert!(error.is_none(), "{at}: {error:?}");
    }
}

/// Returns an interval without a sample.
fn interval() -> proto::Intervals {
    proto::Intervals {
        pids: vec![1],
        tids: vec![1],
        starts: vec![-1],
        lengths: vec![0],
        states: vec![1],
        samples: vec![0],
        ..proto::Intervals::default()
    }
}

/// Returns a timed sample of the first sample.
fn timed_sample() -> proto::TimedSamples {
    proto::TimedSamples {
        pids: vec![1],
        tids: vec![1],
        cpus: vec![(1 << 16) - 1],
        times: vec![-1],
        samples: vec![0],
    }
}

/// Returns a root span with the first name.
fn request_span() -> proto::RequestSpans {
    proto::RequestSpans {
        names: vec![0],
        pids: vec![1],
        tids: vec![1],
        starts: vec![-1],
        lengths: vec![0],
        parents: vec![0],
    }
}

#[test]
fn rows_of_time_that_cannot_be_are_damage() {
    let of = |kind| {
        let names = vec!["a".to_owned()];
        let column = vec![0];
        let sample = proto::Samples {
            comms: column.clone(),
            pids: column.clone(),
            tids: column.clone(),
            users: column.clone(),
            kernels: column.clone(),
            states: column.clone(),
            chains: column,
            values: vec![1],
            events: vec![1],
            longest: vec![1],
            shortest: vec![1],
            squares: vec![1],
            labels: Vec::new(),
            waits: Vec::new(),
        };
        let end = Kind::End(proto::End::default());
        let head = Kind::Names(proto::Names { names });
        of_records([head, Kind::Samples(sample), kind, end])
    };
    let intervals = |change: fn(&mut proto::Intervals)| {
        let mut rows = interval();
        change(&mut rows);
        of(Kind::Intervals(rows))
    };
    let timed_samples = |change: fn(&mut proto::TimedSamples)| {
        let mut rows = timed_sample();
        change(&mut rows);
        of(Kind::TimedSamples(rows))
    };
    let events = |change: fn(&mut proto::ThreadEvents)| {
        let mut rows = proto::ThreadEvents {
            pids: vec![1],
            tids: vec![1],
            times: vec![-1],
            changes: vec![1],
            names: vec![0],
        };
        change(&mut rows);
        of(Kind::ThreadEvents(rows))
    };
    let spans = |change: fn(&mut proto::RequestSpans)| {
        let mut rows = request_span();
        change(&mut rows);
        of(Kind::RequestSpans(rows))
    };
    for sound in [
        intervals(|_| ()),
        timed_samples(|_| ()),
        events(|_| ()),
        spans(|_| ()),
    ] {
        assert!(!read(&sound[..]).unwrap().times.is_empty());
    }
    let beyond = "a time is beyond what a clock tells";
    let stateless = "an interval is of no state";
    let kindless = "an event of a thread is of no kind";
    let orphan = "a span comes before its parent";
    let uneven = "columns differ in length";
    for (damaged, why) in [
        (intervals(|rows| rows.lengths = vec![1]), beyond),
        (spans(|rows| rows.lengths = vec![1]), beyond),
        (intervals(|rows| rows.states = vec![0]), stateless),
        (intervals(|rows| rows.states = vec![5]), stateless),
        // The parent of the first span is the span itself, then the next one.
        (spans(|rows| rows.parents = vec![1]), orphan),
        (spans(|rows| rows.parents = vec![2]), orphan),
        (spans(|rows| rows.parents = vec![u32::MAX]), orphan),
        (
            timed_samples(|rows| rows.cpus = vec![1 << 16]),
            "a CPU has a number beyond any machine's",
        ),
        (intervals(|rows| rows.states = vec![4]), uneven),
        (intervals(|rows| rows.runnable = vec![0]), uneven),
        (
            intervals(|rows| (rows.runnable, rows.blocked) = (vec![0], vec![0])),
            uneven,
        ),
        (events(|rows| rows.changes = vec![0]), kindless),
        (events(|rows| rows.changes = vec![3]), kindless),
        (events(|rows| rows.names = vec![1]), kindless),
        (events(|rows| rows.names = Vec::new()), uneven),
        (events(|rows| rows.times = Vec::new()), uneven),
        (intervals(|rows| rows.tids = Vec::new()), uneven),
        (intervals(|rows| rows.starts = Vec::new()), uneven),
        (intervals(|rows| rows.lengths = Vec::new()), uneven),
        (intervals(|rows| rows.states = Vec::new()), uneven),
        (intervals(|rows| rows.samples = Vec::new()), uneven),
        (timed_samples(|rows| rows.tids = Vec::new()), uneven),
        (timed_samples(|rows| rows.cpus = Vec::new()), uneven),
        (timed_samples(|rows| rows.times = Vec::new()), uneven),
        (timed_samples(|rows| rows.samples = Vec::new()), uneven),
        (spans(|rows| rows.pids = Vec::new()), uneven),
        (spans(|rows| rows.tids = Vec::new()), uneven),
        (spans(|rows| rows.starts = Vec::new()), uneven),
        (spans(|rows| rows.lengths = Vec::new()), uneven),
        (spans(|rows| rows.parents = Vec::new()), uneven),
    ] {
        assert_eq!(damage(&damaged), why);
    }
}

#[test]
fn rows_of_time_count_in_the_bounds_of_a_file() {
    let file = |kind: &dyn Fn() -> Kind| {
        let names = vec!["n".repeat(1 << 20)];
        let head = [meta_record(), Kind::Names(proto::Names { names })];
        of_records(head.into_iter().chain((0..400).map(|_| kind())))
    };
    let zeros = || vec![0; ROWS];
    let intervals = || {
        Kind::Intervals(proto::Intervals {
            pids: zeros(),
            tids: zeros(),
            starts: vec![0; ROWS],
            lengths: vec![0; ROWS],
            states: vec![1; ROWS],
            samples: zeros(),
            ..proto::Intervals::default()
        })
    };
    let message = "it has far more rows than its size allows";
    assert_eq!(damage(&file(&intervals)), message);
    // Formats write each span with its name.
    let spans = || {
        Kind::RequestSpans(proto::RequestSpans {
            names: zeros(),
            pids: zeros(),
            tids: zeros(),
            starts: vec![0; ROWS],
            lengths: vec![0; ROWS],
            parents: zeros(),
        })
    };
    let message = "its stacks are far deeper than its size allows";
    assert_eq!(damage(&file(&spans)), message);
    // Sums of lengths do not overflow.
    let long = proto::Intervals {
        starts: vec![0],
        lengths: vec![u64::MAX],
        ..interval()
    };
    let message = "its times add up to more than threads can live";
    assert_eq!(damage(&of_records([Kind::Intervals(long)])), message);
}

#[test]
fn references_are_to_what_came_before() {
    let name = || {
        Kind::Names(proto::Names {
            names: vec!["a".to_owned()],
        })
    };
    let frame = |name, module| {
        let kind = proto::FrameKind::FrameUser.into();
        let frame = proto::Frame {
            name,
            kind,
            module,
            ..proto::Frame::default()
        };
        Kind::Frames(proto::Frames {
            frames: vec![frame],
        })
    };
    let stack = |callers, leaf| {
        Kind::Stacks(proto::Stacks {
            callers: vec![callers],
            leaves: vec![leaf],
        })
    };
    let dangling = "it refers to what is not there";
    let labels = |key, value| {
        let set = proto::LabelSet {
            keys: vec![key],
            values: vec![value],
        };
        Kind::Labels(proto::Labels { sets: vec![set] })
    };
    let resource = |number| {
        let kind = Some(proto::resource::Kind::File(number));
        let resources = vec![proto::Resource { kind }];
        Kind::Resources(proto::Resources { resources })
    };
    let wait = |wait| Kind::Waits(proto::Waits { waits: vec![wait] });
    let holder = proto::Holder {
        comm: 1,
        ..proto::Holder::default()
    };
    let dangling_waits = [
        proto::Wait {
            detail: 1,
            ..proto::Wait::default()
        },
        proto::Wait {
            resource: 2,
            ..proto::Wait::default()
        },
        proto::Wait {
            holder: Some(holder),
            ..proto::Wait::default()
        },
        proto::Wait {
            wakers: 1,
            ..proto::Wait::default()
        },
        proto::Wait {
            ended_by: 2,
            ..proto::Wait::default()
        },
    ];
    for dangling_wait in dangling_waits {
        let records = [name(), resource(0), wait(dangling_wait)];
        assert_eq!(damage(&of_records(records)), dangling);
    }
    let sample_of = |user, chain, labels| {
        Kind::Samples(proto::Samples {
            comms: vec![0],
            pids: vec![0],
            tids: vec![0],
            users: vec![user],
            kernels: vec![0],
            states: vec![0],
            chains: vec![chain],
            values: vec![1],
            events: vec![1],
            longest: vec![1],
            shortest: vec![1],
            squares: vec![1],
            labels: vec![labels],
            waits: Vec::new(),
        })
    };
    let sample = |user, chain| sample_of(user, chain, 0);
    let interval = |sample| {
        Kind::Intervals(proto::Intervals {
            samples: vec![sample],
            ..interval()
        })
    };
    let timed_sample = |sample| {
        Kind::TimedSamples(proto::TimedSamples {
            samples: vec![sample],
            ..timed_sample()
        })
    };
    for records in [
        vec![name(), interval(1), sample(0, 0)],
        vec![name(), sample(0, 0), interval(2)],
        vec![name(), sample(0, 0), interval(u32::MAX)],
        vec![name(), timed_sample(0)],
        vec![name(), sample(0, 0), timed_sample(1)],
        vec![Kind::RequestSpans(request_span())],
        vec![frame(0, 0), name()],
        vec![name(), frame(1, 0)],
        vec![name(), frame(0, 1)],
        vec![name(), frame(0, 0), stack(0, 1)],
        // A stack cannot be its own caller, nor call an earlier one.
        vec![name(), frame(0, 0), stack(1, 0)],
        vec![name(), frame(0, 0), stack(2, 0), stack(1, 0)],
        vec![name(), sample(1, 0)],
        vec![name(), sample(0, 1)],
        vec![name(), sample(0, u32::MAX)],
        vec![sample(0, 0)],
        vec![name(), resource(1)],
        vec![name(), labels(1, 0)],
        vec![name(), labels(0, 1)],
        vec![name(), sample_of(0, 0, 1)],
    ] {
        assert_eq!(damage(&of_records(records)), dangling);
    }
}

/// Reads a capture of version 1 with a sample that has these labels.
fn version_1(labels: &[(&str, &str)]) -> Profile {
    let names: Vec<String> = (labels.iter())
        .flat_map(|(key, value)| [*key, *value].map(str::to_owned))
        .collect();
    let number = |name: &str| {
        let at = names.iter().position(|known| known == name).unwrap();
        u32::try_from(at).unwrap()
    };
    let set = proto::LabelSet {
        keys: labels.iter().map(|(key, _)| number(key)).collect(),
        values: labels.iter().map(|(_, value)| number(value)).collect(),
    };
    let names = Kind::Names(proto::Names {
        names: names.clone(),
    });
    let labels = Kind::Labels(proto::Labels { sets: vec![set] });
    let sample = Kind::Samples(proto::Samples {
        comms: vec![0],
        pids: vec![0],
        tids: vec![0],
        users: vec![0],
        kernels: vec![0],
        states: vec![3],
        chains: vec![0],
        values: vec![1],
        events: vec![1],
        longest: vec![1],
        shortest: vec![1],
        squares: vec![1],
        labels: vec![1],
        waits: Vec::new(),
    });
    let end = Kind::End(proto::End::default());
    let mut bytes = of_records([names, labels, sample, end]);
    bytes[MAGIC.len()] = 1;
    read(&bytes[..]).unwrap()
}

#[test]
fn labels_of_version_1_are_waits() {
    let profile = version_1(&[
        ("reason", "lock"),
        ("detail", "mutex"),
        ("object", "ledger"),
        ("holder", "writer/7"),
        ("ended by", "writer in unlock"),
        ("idleness", "waiting"),
        ("interval", "sampled"),
    ]);
    let (sample, _) = profile.samples.iter().next().unwrap();
    assert!(sample.is_sampled && sample.labels.is_none());
    let wait = profile.wait(sample).unwrap();
    assert_eq!(wait.kind, WaitKind::new(Reason::Lock, Detail::Mutex));
    assert_eq!(wait.idleness, Idleness::Waiting);
    let name = |name: Name| &*profile.names[name];
    let Resource::Described(ledger) = profile.resources[wait.resource.unwrap()] else {
        unreachable!("a text")
    };
    let Some(EndedBy::Described(writer)) = wait.ended_by else {
        unreachable!("a text")
    };
    let holder = wait.holder.unwrap();
    assert_eq!((name(ledger), name(writer)), ("ledger", "writer in unlock"));
    assert_eq!((name(holder.comm), holder.thread), ("writer/7", None));
    // Labels that do not describe a known wait stay labels.
    for labels in [
        &[("reason", "luck"), ("detail", "bad")][..],
        &[("detail", "mutex")],
        &[("detail", "mutex"), ("interval", "sampled")],
        &[("tenant", "acme")],
    ] {
        let profile = version_1(labels);
        let (sample, _) = profile.samples.iter().next().unwrap();
        assert!(profile.wait(sample).is_none());
        let is_sampled = sample.is_sampled;
        assert_eq!(is_sampled, labels.contains(&("interval", "sampled")));
        let left = labels.len() - usize::from(is_sampled);
        assert_eq!(profile.labels[sample.labels.unwrap()].len(), left);
    }
}

#[test]
fn what_makes_no_sense_is_damage() {
    let end = || Kind::End(proto::End::default());
    let unknown = Kind::Meta(proto::Meta::default());
    assert_eq!(damage(&of_records([unknown])), "its unit is unknown");
    let columns = Kind::Samples(proto::Samples {
        comms: vec![0],
        ..proto::Samples::default()
    });
    assert_eq!(damage(&of_records([columns])), "columns differ in length");
    let after = of_records([end(), end()]);
    assert_eq!(damage(&after), "something comes after its end");
    assert_eq!(
        damage(&of_bytes(&[2, 0xff, 0xff])),
        "a record is no message"
    );
    // The content is not a zstd stream.
    let unpacked = [&MAGIC[..], &[VERSION], b"not packed"].concat();
    assert_eq!(damage(&unpacked), "it cannot be unpacked");
    // Records of later versions are skipped.
    let later = proto::Record { kind: None }.encode_length_delimited_to_vec();
    let record = proto::Record { kind: Some(end()) };
    let bytes = [later, record.encode_length_delimited_to_vec()].concat();
    assert!(read(&of_bytes(&bytes)[..]).is_ok());
}

/// The reader notices a changed byte, unless zstd ignores the byte.
#[test]
fn a_byte_that_is_another_is_noticed() {
    let profile = profile();
    let bytes = capture(&profile);
    let same = (0..bytes.len()).filter(|&index| {
        let mut other = bytes.clone();
        other[index] ^= 0x10;
        let read = read(&other[..]);
        read.as_ref().is_ok_and(|read| {
            assert_same(read, &profile);
            true
        })
    });
    assert!(same.count() < bytes.len() / 20);
}

#[test]
fn equal_rows_do_not_shift_those_after_them() {
    let names = ["a", "a", "b"].map(str::to_owned).to_vec();
    let samples = proto::Samples {
        comms: vec![0, 1, 2],
        pids: vec![0; 3],
        tids: vec![0; 3],
        users: vec![0; 3],
        kernels: vec![0; 3],
        states: vec![0; 3],
        chains: vec![0; 3],
        values: vec![1; 3],
        events: vec![1; 3],
        longest: vec![1; 3],
        shortest: vec![1; 3],
        squares: vec![1; 3],
        labels: Vec::new(),
        waits: Vec::new(),
    };
    let timed = proto::TimedSamples {
        samples: vec![2],
        ..timed_sample()
    };
    let thread = proto::Thread {
        comm: 2,
        ..proto::Thread::default()
    };
    let bytes = of_records([
        Kind::Names(proto::Names { names }),
        Kind::Threads(proto::Threads {
            threads: vec![thread],
        }),
        Kind::Samples(samples),
        Kind::TimedSamples(timed),
        Kind::End(proto::End::default()),
    ]);
    let profile = read(&bytes[..]).unwrap();
    let (sample, weight) = (profile.samples)
        .row(profile.times.timed_samples[0].sample)
        .unwrap();
    assert_eq!((&*profile.names[sample.comm], weight.value), ("b", 1));
    assert_eq!(&*profile.names[profile.threads[0].comm], "b");
}

#[test]
fn hostile_texts_are_cleaned_and_threads_are_no_markers() {
    const HOSTILE: &str = "\u{1b}]0;x\u{7}\n\u{202e}\u{2028}\u{9b}";
    let text = |word: &str| format!("{word}{HOSTILE}");
    let meta = proto::Meta {
        unit: proto::Unit::Nanoseconds.into(),
        tool: text("tool"),
        tool_version: text("1"),
        command_line: vec![text("word")],
        host: text("host"),
        kernel: text("kernel"),
        targets: text("targets"),
        sampling: Some(proto::Sampling {
            event: text("event"),
            ..proto::Sampling::default()
        }),
        ..proto::Meta::default()
    };
    let process = proto::Process {
        executable: text("/exe"),
        command_line: vec![text("word")],
        cgroup: text("/cgroup"),
        ..proto::Process::default()
    };
    let names = ["[timer]", "", &text("name")].map(str::to_owned).to_vec();
    let thread = |comm| proto::Thread {
        comm,
        ..proto::Thread::default()
    };
    let waker = |comm, is_thread| proto::Waker {
        comm,
        is_thread,
        ..proto::Waker::default()
    };
    let wakers = vec![waker(0, false), waker(0, true), waker(1, false)];
    let bytes = of_records([
        Kind::Meta(meta),
        Kind::Names(proto::Names { names }),
        Kind::Threads(proto::Threads {
            threads: [0, 1, 2].map(thread).to_vec(),
        }),
        Kind::Wakers(proto::Wakers {
            chains: vec![proto::Chain { wakers }],
        }),
        Kind::Processes(proto::Processes {
            processes: vec![process],
        }),
        Kind::End(proto::End::default()),
    ]);
    let profile = read(&bytes[..]).unwrap();

    let printed = format!("{profile:?}");
    for piece in HOSTILE.chars().filter(|piece| !piece.is_ascii_graphic()) {
        let debug = piece.escape_debug().to_string();
        assert!(
            !printed.contains(piece) && !printed.contains(&debug),
            "{debug} in {printed}"
        );
    }
    let name = |name: Name| &*profile.names[name];
    let threads: Vec<&str> = (profile.threads.iter()).map(|it| name(it.comm)).collect();
    assert_eq!(threads, ["(timer)", "[unnamed]", "name?]0:x?????"]);
    let chain = profile.wakers.iter().next().unwrap();
    let wakers: Vec<&str> = chain.iter().map(|it| name(it.comm)).collect();
    assert_eq!(wakers, ["[timer]", "(timer)", "[unnamed]"]);
}

/// Writes a capture whose timeline comes first. Returns its bytes, and the length after the rows.
fn streamed() -> (Vec<u8>, usize) {
    let text = "a-1/2;f_[o] 50\na-1/2;g_[r] 30\n";
    let mut profile = folded::read(text.as_bytes(), Unit::Nanoseconds, true).unwrap();
    let rows: Vec<Sample> = profile.samples.keys().copied().collect();
    let rows = rows.into_iter();
    let samples: Vec<Id<Sample>> = rows.map(|row| profile.samples.id(row)).collect();
    let thread = ThreadId { pid: 1, tid: 2 };
    let part = |start_ns, blocked_ns, runnable_ns, key| LanePart {
        thread,
        start_ns,
        stretch: Shares::all(State::Running, 10),
        blocked_ns,
        runnable_ns,
        key,
    };
    let sample = LaneSample {
        thread,
        cpu: 1,
        time_ns: 105,
        key: 0,
    };
    let mut bytes = Vec::new();
    let mut stream = Stream::new(&mut bytes, &profile).unwrap();
    let parts = [part(100, 50, 30, Some(1)), part(190, 0, 0, None)];
    stream.add(&parts, &[sample]).unwrap();
    drop(stream);
    let length = bytes.len();
    bytes.clear();
    let mut stream = Stream::new(&mut bytes, &profile).unwrap();
    stream.add(&parts, &[sample]).unwrap();
    let keys = [
        KeySamples {
            sample: Some(samples[0]),
            runnable: None,
        },
        KeySamples {
            sample: Some(samples[0]),
            runnable: Some(samples[1]),
        },
    ];
    stream.finish(&profile, &keys).unwrap();
    (bytes, length)
}

#[test]
fn a_streamed_timeline_has_its_samples_at_the_end() {
    let (bytes, _) = streamed();
    let profile = read(&bytes[..]).unwrap();
    let rows: Vec<(u64, u64, State, Option<usize>)> = profile
        .times
        .intervals
        .iter()
        .map(|it| {
            (
                it.start_ns,
                it.length_ns(),
                it.state(),
                it.sample.map(Id::index),
            )
        })
        .collect();
    let expected = [
        (100, 10, State::Running, None),
        (110, 50, State::Blocked, Some(0)),
        (160, 30, State::Runnable, Some(1)),
        (190, 10, State::Running, None),
    ];
    assert_eq!(rows, expected);
    let [timed] = profile.times.timed_samples[..] else {
        panic!("one sample");
    };
    assert_eq!(
        (timed.cpu, timed.time_ns, timed.sample.index()),
        (1, 105, 0)
    );
}

#[test]
fn what_was_streamed_before_a_cut_is_read() {
    let (bytes, rows) = streamed();
    for length in [rows, bytes.len() - 10] {
        let partials = read_what_is_whole(&bytes[..length]).unwrap();
        let [partial] = &partials[..] else {
            panic!("{partials:?}");
        };
        assert!(matches!(partial.error, Some(Error::CutOff)), "{partials:?}");
        let profile = &partial.profile;
        assert_eq!(profile.times.intervals.len(), 4);
        let [thread] = profile.threads[..] else {
            panic!("one thread");
        };
        let clock = thread.clock;
        assert_eq!((clock.started_ns, clock.ended_ns), (100, 200));
        assert_eq!(
            [clock.running_ns, clock.runnable_ns, clock.blocked_ns],
            [20, 30, 50]
        );
    }
}

#[test]
fn streamed_rows_that_cannot_be_are_damage() {
    let lanes = |key| {
        Kind::Lanes(proto::Lanes {
            pids: vec![1],
            tids: vec![1],
            starts: vec![0],
            running: vec![0],
            runnable: vec![0],
            blocked: vec![0],
            blocked_after: vec![5],
            runnable_after: vec![0],
            keys: vec![key],
        })
    };
    let end = || Kind::End(proto::End::default());
    assert!(read(&of_records([lanes(0), end()])[..]).is_ok());
    let no_key = "a row of time refers to a key that is not in the file";
    assert_eq!(damage(&of_records([lanes(1), end()])), no_key);
    let sample = |key| {
        Kind::LaneSamples(proto::LaneSamples {
            pids: vec![1],
            tids: vec![1],
            cpus: vec![0],
            times: vec![0],
            keys: vec![key],
        })
    };
    for key in [0, 1] {
        assert_eq!(damage(&of_records([sample(key), end()])), no_key);
    }
    let Kind::Lanes(uneven) = lanes(0) else {
        panic!("lanes");
    };
    let uneven = Kind::Lanes(proto::Lanes {
        blocked: Vec::new(),
        ..uneven
    });
    assert_eq!(
        damage(&of_records([uneven, end()])),
        "columns differ in length"
    );
}
