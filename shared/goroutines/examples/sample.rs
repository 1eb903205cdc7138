//! Prints the folded goroutines of a process: `sample PID SECONDS`.
#![allow(clippy::unwrap_used, clippy::print_stderr, unused_crate_dependencies)]

use std::time::Duration;

use goroutines::Sampler;
use profile::{Profile, Unit};

fn main() {
    let mut words = std::env::args().skip(1);
    let pid = words.next().unwrap().parse().unwrap();
    let seconds: f64 = words.next().unwrap().parse().unwrap();
    let sampler = match Sampler::start(pid, 10) {
        Ok(sampler) => sampler,
        Err(error) => return println!("{pid}: {error}"),
    };
    std::thread::sleep(Duration::from_secs_f64(seconds));
    let account = sampler.finish().unwrap();
    let mut profile = Profile::new(Unit::Nanoseconds);
    account.add_to(&mut profile, "program");
    for (sample, value) in profile.values() {
        let frames = profile.frames_of(sample.stack.user);
        let frames: Vec<&str> = frames.map(|frame| profile.name(frame)).collect();
        println!("{} {value}", frames.join(";"));
    }
    println!("{}", account.counts);
}
