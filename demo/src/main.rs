//! A small program on which users try the profilers. Each thread spends its time in one known
//! way, in a function whose name describes it:
//!
//! | thread               | spends its time                                     |
//! |----------------------|-----------------------------------------------------|
//! | `burner`             | running, in `compute_primes`                        |
//! | `sleeper`            | blocked, in `sleep_a_while`                         |
//! | `locker-a`, `-b`     | holding a lock, or blocked in `wait_for_lock`       |
//! | `reader`             | blocked, in `read_from_pipe`                        |
//! | `writer`             | mostly blocked, between two calls of `write_to_pipe`|
//! | `crowd-0`, `-1`, …   | two more than CPUs, in bursts: running and runnable |

use std::hint::black_box;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;

/// Runs threads that compute, sleep, wait for a lock and read a pipe, for a profiler to look at.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// Seconds to run [default: until killed]
    #[arg(long, value_parser = cli::values::seconds, allow_negative_numbers = true)]
    seconds: Option<Duration>,
}

fn main() -> ExitCode {
    let command_line = cli::CommandLine::of_process("systemscope-demo");
    cli::run(command_line.called(), || {
        let arguments: Arguments = command_line.parse()?;
        let lock = Arc::new(Mutex::new(0_u64));
        let (reader, writer) = io::pipe()?;
        start("burner", burn)?;
        start("sleeper", sleep)?;
        for name in ["locker-a", "locker-b"] {
            let lock = Arc::clone(&lock);
            start(name, move || contend(&lock))?;
        }
        start("reader", move || drink(reader))?;
        start("writer", move || drip(writer))?;
        let cpus = thread::available_parallelism()?.get();
        for number in 0..cpus + 2 {
            start(&format!("crowd-{number}"), crowd)?;
        }
        // The other threads end with the process.
        match arguments.seconds {
            Some(seconds) => thread::sleep(seconds),
            None => loop {
                thread::park();
            },
        }
        Ok(())
    })
}

fn start(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name(name.to_owned()).spawn(body)?;
    Ok(())
}

/// Computes for 300 ms, then rests for 100 ms.
fn burn() {
    loop {
        compute_primes(Duration::from_millis(300));
        sleep_a_while(Duration::from_millis(100));
    }
}

fn sleep() {
    loop {
        sleep_a_while(Duration::from_millis(500));
    }
}

fn contend(lock: &Mutex<u64>) {
    loop {
        let guard = wait_for_lock(lock);
        hold_lock(guard);
        // The other thread takes its turn in this millisecond.
        sleep_a_while(Duration::from_millis(1));
    }
}

fn drink(mut pipe: PipeReader) {
    while read_from_pipe(&mut pipe).is_ok() {}
}

fn drip(mut pipe: PipeWriter) {
    while write_to_pipe(&mut pipe).is_ok() {
        sleep_a_while(Duration::from_millis(50));
    }
}

/// Computes for 200 ms, then rests for 800 ms. More threads than CPUs do so at once.
fn crowd() {
    loop {
        compute_primes(Duration::from_millis(200));
        sleep_a_while(Duration::from_millis(800));
    }
}

/// Counts primes by trial division until `time` has passed.
#[inline(never)]
fn compute_primes(time: Duration) -> u64 {
    let start = Instant::now();
    let mut primes = 0;
    let mut candidate = 3_u64;
    while start.elapsed() < time {
        for _ in 0..1_000 {
            primes += u64::from(is_prime(black_box(candidate)));
            candidate += 2;
        }
    }
    black_box(primes)
}

#[inline(never)]
fn is_prime(number: u64) -> bool {
    (3..)
        .step_by(2)
        .take_while(|divisor| divisor * divisor <= number)
        .all(|divisor| !number.is_multiple_of(divisor))
}

#[inline(never)]
fn sleep_a_while(time: Duration) {
    call_libc(|| thread::sleep(time));
    // Code after the call prevents a tail call, which would have no frame.
    black_box(());
}

#[inline(never)]
fn wait_for_lock(lock: &Mutex<u64>) -> MutexGuard<'_, u64> {
    black_box(lock.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Keeps the lock for 80 ms, and computes for a quarter of that time.
#[inline(never)]
fn hold_lock(mut guard: MutexGuard<'_, u64>) {
    *guard += compute_primes(Duration::from_millis(20));
    sleep_a_while(Duration::from_millis(60));
}

#[inline(never)]
fn read_from_pipe(pipe: &mut PipeReader) -> io::Result<()> {
    let mut bytes = [0; 64];
    black_box(call_libc(|| pipe.read_exact(&mut bytes)))
}

#[inline(never)]
fn write_to_pipe(pipe: &mut PipeWriter) -> io::Result<()> {
    black_box(call_libc(|| pipe.write_all(&[b'.'; 64])))
}

/// Adds a frame between the function of interest and libc. libc keeps no frame pointers, so an
/// unwind by frame pointers misses the caller of libc.
#[inline(never)]
fn call_libc<T>(body: impl FnOnce() -> T) -> T {
    black_box(body())
}
