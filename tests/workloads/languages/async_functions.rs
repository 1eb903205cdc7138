//! Async functions of Rust, which block in a future. A plain closure is among them. The program
//! polls them itself, and prints "ready" first.
#![allow(missing_docs)]

use std::future::{Future, poll_fn};
use std::hint::black_box;
use std::io::Write;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::thread::sleep;
use std::time::Duration;

type Task = Pin<Box<dyn Future<Output = u64>>>;

/// Hides the type of a future, so that its poll function is not inlined.
fn task(future: impl Future<Output = u64> + 'static) -> Task {
    black_box(Box::pin(future))
}

#[inline(never)]
fn block(times: u64) -> u64 {
    sleep(Duration::from_millis(5));
    black_box(times) + 1
}

async fn fetch(times: u64) -> u64 {
    poll_fn(|_| Poll::Ready(block(times) + 1)).await
}

async fn serve(times: u64) -> u64 {
    task(fetch(times)).await + 1
}

/// Calls a closure, which is no async function.
#[inline(never)]
fn apply(body: &mut dyn FnMut() -> u64) -> u64 {
    black_box(body()) + 1
}

fn turn() -> u64 {
    apply(&mut || {
        let mut all = task(async { task(serve(1)).await + 1 });
        match all.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(result) => result + 1,
            Poll::Pending => 0,
        }
    })
}

fn main() {
    println!("ready");
    let _ = std::io::stdout().flush();
    loop {
        black_box(turn());
    }
}
