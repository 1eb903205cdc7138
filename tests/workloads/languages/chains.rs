//! Threads with known call chains. The chains end in waits of the standard library: a sleep, a
//! park, a condition variable, a pipe, and a sleep in a destructor while a panic unwinds.
//!
//! usage: chains wait|hold
//!   wait: waits over and over, for some ms each time
//!   hold: waits once and for ever
//!
//! The chain of a thread is `thread_loop`, `in_closure`, `in_array`, `in_boxed`, then its end.
#![allow(missing_docs)]

use std::hint::black_box;
use std::io::{PipeReader, Read, Write, pipe};
use std::panic::{catch_unwind, resume_unwind};
use std::sync::{Condvar, Mutex};
use std::thread::{Builder, park_timeout, sleep};
use std::time::Duration;
use std::{env, io};

type End = Box<dyn FnMut(Duration) -> u64 + Send>;

#[unsafe(no_mangle)]
#[inline(never)]
fn in_boxed(end: &mut End, time: Duration) -> u64 {
    black_box(end(time)) + 1
}

#[unsafe(no_mangle)]
#[inline(never)]
fn in_array(end: &mut End, time: Duration) -> u64 {
    let mut numbers = black_box([7_u64; 123]);
    numbers[5] = in_boxed(end, time);
    black_box(numbers).iter().sum()
}

#[inline(never)]
fn apply(body: &mut dyn FnMut() -> u64) -> u64 {
    black_box(body()) + 3
}

#[unsafe(no_mangle)]
#[inline(never)]
fn in_closure(end: &mut End, time: Duration) -> u64 {
    let mut turns = 0;
    let result = apply(&mut || {
        turns += 1;
        in_array(end, time) + turns
    });
    black_box(result) + turns
}

#[unsafe(no_mangle)]
#[inline(never)]
fn thread_loop(end: &mut End, time: Duration) -> u64 {
    let mut result = 0_u64;
    loop {
        result = result.wrapping_add(black_box(in_closure(end, time)));
        black_box(result);
    }
}

#[unsafe(no_mangle)]
#[inline(never)]
fn end_sleep(time: Duration) -> u64 {
    sleep(time);
    black_box(1)
}

#[unsafe(no_mangle)]
#[inline(never)]
fn end_park(time: Duration) -> u64 {
    park_timeout(time);
    black_box(2)
}

#[unsafe(no_mangle)]
#[inline(never)]
fn end_condvar(lock: &Mutex<u64>, condvar: &Condvar, time: Duration) -> u64 {
    let guard = lock.lock().unwrap();
    let (guard, _) = condvar.wait_timeout(guard, time).unwrap();
    black_box(*guard)
}

#[unsafe(no_mangle)]
#[inline(never)]
fn end_read(reader: &mut PipeReader) -> u64 {
    let mut byte = [0];
    reader.read_exact(&mut byte).unwrap();
    black_box(byte[0]).into()
}

struct Waits(Duration);

impl Drop for Waits {
    #[inline(never)]
    fn drop(&mut self) {
        black_box(end_sleep(self.0));
    }
}

#[unsafe(no_mangle)]
#[inline(never)]
fn panics(depth: u64) -> u64 {
    if black_box(depth) > 0 {
        // This unwinds as a panic does, but prints no message on stderr.
        resume_unwind(Box::new(depth));
    }
    black_box(depth)
}

#[unsafe(no_mangle)]
#[inline(never)]
fn cleans_up(time: Duration) -> u64 {
    let waits = Waits(time);
    black_box(panics(1)) + black_box(&waits).0.as_secs()
}

#[unsafe(no_mangle)]
#[inline(never)]
fn end_panic(time: Duration) -> u64 {
    let result = catch_unwind(|| cleans_up(time));
    black_box(result.is_err()).into()
}

fn start(name: &str, time: Duration, mut end: End) {
    let thread = Builder::new().name(name.to_owned());
    thread.spawn(move || thread_loop(&mut end, time)).unwrap();
}

fn main() {
    let holds = env::args().nth(1).is_some_and(|mode| mode == "hold");
    let time = if holds {
        Duration::from_secs(1000)
    } else {
        Duration::from_millis(3)
    };
    let (mut reader, mut writer) = pipe().unwrap();
    start("park", time, Box::new(end_park));
    let condvar = (Mutex::new(1), Condvar::new());
    let wait = move |time| end_condvar(&condvar.0, &condvar.1, time);
    start("condvar", time, Box::new(wait));
    start("read", time, Box::new(move |_| end_read(&mut reader)));
    start("panic", time, Box::new(end_panic));
    Builder::new()
        .name("waker".to_owned())
        .spawn(move || {
            loop {
                sleep(time);
                writer.write_all(b"x").unwrap();
            }
        })
        .unwrap();
    Builder::new()
        .name("leaver".to_owned())
        .spawn(|| {
            io::stdin().read_to_end(&mut Vec::new()).unwrap();
            std::process::exit(0);
        })
        .unwrap();
    sleep(Duration::from_millis(100));
    println!("ready");
    io::stdout().flush().unwrap();
    let mut end: End = Box::new(end_sleep);
    thread_loop(&mut end, time);
}
