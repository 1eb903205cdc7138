//! Tests a language that is not in the list of languages. Its module, its header and its line in
//! the header's list suffice to show its frames between native frames. Needs root.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod toy;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use bpf::types::Tally;
use collect::{
    CallGraph, ClockSession, Detail, Languages, Session, Sources, StackChoice, WakersShown, Walking,
};
use languages::{LANGUAGES, Language};
use loader::{Kernel, LoadedObject, OpenObject, Targets, monotonic_ns};
use profile::{FrameKind, Profile, Unit, Weight};

use toy::Toy;

static WITH_TOY: &[&dyn Language] = &[&Toy];

const STACKS: StackChoice = StackChoice {
    user: true,
    kernel: false,
    walking: Walking {
        call_graph: CallGraph::Auto,
        max_stack: Walking::MAX_FRAMES,
        languages: Languages::Only(WITH_TOY),
        shows_runtime: false,
    },
    per_thread: false,
    per_process: false,
    detail: Detail::Names,
    sources: Sources::None,
    objects: false,
    thread_names: None,
    timeline_least_ns: None,
    recorder: None,
};

/// Process that runs `runtime.c`. It is killed when this value is dropped.
struct Program(Child);

impl Program {
    fn start(folder: &Path) -> Program {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/toy/runtime.c");
        let program = folder.join("toy");
        let mut compiler = Command::new("cc");
        compiler.args(["-O2", "-g", "-pthread", "-o"]).arg(&program);
        assert!(compiler.arg(source).status().unwrap().success());
        let mut child = Command::new(&program)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        let stdout = child.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut said).unwrap();
        assert_eq!(said, "ready\n");
        let program = Program(child);
        sleep(Duration::from_millis(50));
        program
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn load(object: &bpf::Object, kernel: &Kernel, targets: &Targets) -> LoadedObject {
    let mut object = OpenObject::new(object).unwrap();
    kernel.configure(&mut object).unwrap();
    targets.configure(&mut object, kernel).unwrap();
    STACKS.configure(&mut object).unwrap();
    object
        .set(bpf::constants::SWITCH_ARGUMENTS, kernel.switch_arguments)
        .unwrap();
    object.make_room_for_threads(bpf::maps::THREADS).unwrap();
    object.load().expect("load, as root")
}

/// Returns a profile of the program's waits, and the notes. The object reads the toy language.
fn measured(program: &Program) -> (Profile, Vec<String>) {
    let kernel = Kernel::probe().unwrap();
    let targets = Targets::new(vec![program.0.id()], vec![]);
    let object = load(&checks::toy::OBJECT, &kernel, &targets);
    let mut session = ClockSession::attach(&object, &kernel, &targets, STACKS).unwrap();
    let start = monotonic_ns() + 20_000_000;
    session.open_window(start, None);
    session.begin(start, || ()).unwrap();
    for _ in 0..20 {
        sleep(Duration::from_millis(20));
        session.take(None).unwrap();
    }
    let collected = session.close(monotonic_ns()).unwrap();
    let weigh = |tally: &Tally| {
        let weight = Weight {
            value: tally.blocked + tally.runnable,
            events: tally.events,
            ..Weight::default()
        };
        vec![(None, weight)]
    };
    let named = collected.name(
        Unit::Nanoseconds,
        WakersShown::No,
        profile::Window::default(),
        weigh,
    );
    (named.profile, named.diagnostics.languages)
}

fn folded(profile: &Profile) -> String {
    let mut text = Vec::new();
    let options = export::Options::default();
    let format = export::folded::Folded;
    export::Format::write(&format, profile, &options, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

#[test]
fn a_language_is_a_module_a_header_and_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::start(folder.path());
    let (profile, remarks) = measured(&program);
    let folded = folded(&profile);
    println!("{folded}{remarks:#?}");
    // A program in the kernel reads the stack of one thread at each wait. User space reads the
    // stack of the other thread once.
    for (thread, sleeper) in [("often", "sleep_often"), ("for_good", "sleep_for_good")] {
        let stack = format!(
            ";native_first;program.toy:outer;native_between;program.toy:middle;\
             program.toy:inner;{sleeper};"
        );
        let of_thread = folded.lines().filter(|line| line.starts_with(thread));
        let time = |line: &str| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap();
        let all: u64 = of_thread.clone().map(time).sum();
        let placed: u64 = of_thread
            .filter(|line| line.contains(&stack))
            .map(time)
            .sum();
        // Intervals that the edges of the window cut have no stack.
        assert!(
            placed > 0 && placed * 100 >= all * 95,
            "{thread}: {placed} of {all}"
        );
    }
    assert!(
        remarks
            .iter()
            .any(|line| line.contains("stacks with Toy functions")),
        "{remarks:?}"
    );

    // The capture names the language, for readers that do not know it.
    assert!(LANGUAGES.iter().all(|known| known.name() != Toy.name()));
    let mut capture = Vec::new();
    capture::write(&profile, &mut capture).unwrap();
    let read = capture::read(&*capture).unwrap();
    let of_toy = |frame: &profile::Frame| frame.kind == FrameKind::Interpreted(Toy.name());
    assert_eq!(read.frames.iter().filter(|frame| of_toy(frame)).count(), 3);
    assert_eq!(self::folded(&read), folded);
}
