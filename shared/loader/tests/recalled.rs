//! A stack that is recalled is the one that a walk finds: both are had of each
//! wait of a Debian python3 that blocks in many places. Needs root.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod checked;

use std::mem::MaybeUninit;
use std::time::{Duration, Instant};

use bpf::WindowState;
use bpf::offcputime::OffcputimeSkelBuilder;
use libbpf_rs::RingBufferBuilder;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use loader::{CallGraph, Unwinder, attach};
use symbolize::Symbolizer;

use checked::Python;

/// Two threads that pass a word on, and wait at depths that change.
const BLOCKS: &str = "
import os, queue, random, re, threading, time
there, back, words = os.pipe(), os.pipe(), queue.Queue(1)
def wait(kind):
    if kind == 0: time.sleep(.0002)
    elif kind == 1: os.write(there[1], b'x'); os.read(back[0], 1)
    elif kind == 2: words.put(1)
    else: sorted([1], key=lambda _: time.sleep(.0001))
def down(depth, kind):
    if depth: down(depth - 1, kind)
    elif kind % 2: wait(kind)
    else: re.sub('a', lambda _: wait(kind) or '', 'a')
def answer():
    while True: os.read(there[0], 1); os.write(back[1], b'x')
def take():
    while True: words.get()
for body in answer, take: threading.Thread(target=body, daemon=True).start()
for kind in range(4): down(0, kind)
print('ready', flush=True)
while True: down(random.randrange(5), random.randrange(4))
";

#[test]
fn what_is_recalled_is_what_a_walk_finds() {
    let python = Python::start(BLOCKS);
    let mut object = MaybeUninit::uninit();
    let mut open = OffcputimeSkelBuilder::default().open(&mut object).unwrap();
    let config = open.maps.rodata_data.as_deref_mut().unwrap();
    python.configure(config);
    loader::size_unwind_maps(
        false,
        &mut open.maps.unwind_pages,
        &mut open.maps.unwind_mappings,
        &mut open.maps.unwind_processes,
    )
    .unwrap();
    let mut program = open.load().expect("load, as root");
    let maps = &mut program.maps;

    let mut unwinder = Unwinder::new(CallGraph::Auto, loader::unwind_maps!(maps)).unwrap();
    let targets = python.targets();
    let processes = targets.processes(&program.progs.list_threads).unwrap();
    unwinder.prepare(&processes, &mut Symbolizer::new(), Duration::from_secs(10));

    let mut ring = RingBufferBuilder::new();
    ring.add(&maps.events, |_| 0).unwrap();
    let ring = ring.build().unwrap();
    let links = attach(&[&program.progs.sched_switch, &program.progs.sched_waking]).unwrap();
    maps.bss_data.as_deref_mut().unwrap().set_window_start(1);
    let end = Instant::now() + Duration::from_secs(3);
    while Instant::now() < end {
        ring.poll(Duration::from_millis(20)).unwrap();
    }
    drop(links);

    let counts = maps.bss_data.as_deref().unwrap();
    let (rightly, wrongly) = (counts.recalled_rightly, counts.recalled_wrongly);
    println!("{rightly} stacks were recalled rightly, {wrongly} wrongly");
    assert_eq!(wrongly, 0);
    assert!(rightly > 1000, "only {rightly} stacks were recalled");
}
