//! Rust names: a method of a trait, which computes and sleeps.
#![allow(missing_docs)]

use std::arch::asm;
use std::hint::black_box;
use std::io::Write;

trait Gather {
    fn gather(&self, turns: u64);
}

struct Basket;

impl Gather for Basket {
    #[inline(never)]
    fn gather(&self, turns: u64) {
        for turn in 0..turns {
            black_box(turn);
        }
        let five_ms: [i64; 2] = [0, 5_000_000];
        // SAFETY: nanosleep reads `five_ms` and writes nothing.
        unsafe {
            asm!("syscall", inlateout("rax") 35_i64 => _, in("rdi") &five_ms, in("rsi") 0,
                 out("rcx") _, out("r11") _);
        }
    }
}

fn main() {
    let basket: Box<dyn Gather> = black_box(Box::new(Basket));
    println!("ready");
    let _ = std::io::stdout().flush();
    loop {
        basket.gather(black_box(5_000_000));
    }
}
