//! Compares cached stacks with the stacks that unwinds find. Debian's python3 blocks in many
//! places, and each of its waits has both stacks. Needs root.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod checked;

use std::time::{Duration, Instant};

use bpf::{VariableName, variables};
use collect::{Unwinder, Walking};
use libbpf_rs::RingBufferBuilder;
use symbolize::Symbolizer;

use checked::Python;

/// Script with two threads that pass a word between them, and wait at changing depths.
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
fn what_is_cached_is_what_a_walk_finds() {
    let python = Python::start(BLOCKS);
    let object = python.load(&bpf::offcputime::OBJECT);
    let unwinder = Unwinder::new(Walking::default(), &object).unwrap();
    let mut unwinder = unwinder.expect("one that keeps tables");
    let processes = python.targets().processes(&object).unwrap();
    unwinder.prepare(&processes, &mut Symbolizer::new(), Duration::from_secs(10));

    let mut ring = RingBufferBuilder::new();
    let events = object.map(bpf::maps::EVENTS).unwrap();
    ring.add(&events, |_| 0).unwrap();
    let ring = ring.build().unwrap();
    let links = object
        .attach(&[bpf::programs::SCHED_SWITCH, bpf::programs::SCHED_WAKING])
        .unwrap();
    object.variable(variables::WINDOW_START).unwrap().set(1_u64);
    let end = Instant::now() + Duration::from_secs(3);
    while Instant::now() < end {
        ring.poll(Duration::from_millis(20)).unwrap();
    }
    drop(links);

    let count = |name: VariableName<u64>| object.variable(name).unwrap().get();
    let (rightly, wrongly) = (
        count(variables::CACHE_HITS_RIGHT),
        count(variables::CACHE_HITS_WRONG),
    );
    println!("{rightly} stacks were cached rightly, {wrongly} wrongly");
    assert_eq!(wrongly, 0);
    assert!(rightly > 1000, "only {rightly} stacks were cached");
}
