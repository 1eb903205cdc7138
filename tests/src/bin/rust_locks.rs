//! Workload: some threads want locks of Rust's standard library and of `parking_lot`. Another
//! thread holds all of these locks nearly all of the time. The program prints "ready", and ends
//! with standard input.
#![allow(clippy::unwrap_used)]

use std::hint::black_box;
use std::io::{self, Read};
use std::sync::{Mutex, RwLock};
use std::thread::{Builder, sleep};
use std::time::Duration;

static MUTEX: Mutex<u64> = Mutex::new(0);
static RWLOCK: RwLock<u64> = RwLock::new(0);
static PARKING_MUTEX: parking_lot::Mutex<u64> = parking_lot::Mutex::new(0);
static PARKING_RWLOCK: parking_lot::RwLock<u64> = parking_lot::RwLock::new(0);

const HELD: Duration = Duration::from_millis(10);
/// Pause after each unlock. In the pause the thread that wants all locks can take this lock.
const PAUSE: Duration = Duration::from_millis(1);

#[inline(never)]
fn want_mutex() {
    *MUTEX.lock().unwrap() += 1;
}

#[inline(never)]
fn want_rwlock() {
    black_box(*RWLOCK.read().unwrap());
}

#[inline(never)]
fn want_parking_mutex() {
    *PARKING_MUTEX.lock() += 1;
}

#[inline(never)]
fn want_parking_rwlock() {
    black_box(*PARKING_RWLOCK.read());
}

#[inline(never)]
fn let_go<T>(locks: T) {
    drop(black_box(locks));
}

fn hold_all() {
    let locks = (
        MUTEX.lock().unwrap(),
        RWLOCK.write().unwrap(),
        PARKING_MUTEX.lock(),
        PARKING_RWLOCK.write(),
    );
    sleep(HELD);
    let_go(locks);
}

fn main() {
    let threads: [(&str, fn()); 5] = [
        ("l_holder", hold_all),
        ("l_mutex", want_mutex),
        ("l_rwlock", want_rwlock),
        ("l_park_mutex", want_parking_mutex),
        ("l_park_rwlock", want_parking_rwlock),
    ];
    for (name, work) in threads {
        let thread = Builder::new().name(name.to_owned());
        thread
            .spawn(move || {
                loop {
                    work();
                    sleep(PAUSE);
                }
            })
            .unwrap();
    }
    println!("ready");
    io::stdin().read_to_end(&mut Vec::new()).unwrap();
}
