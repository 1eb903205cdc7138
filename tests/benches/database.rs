//! What watching a database costs it, beside libbpf-tools' offcputime where
//! that is installed: time to attach, memory, transactions. Run by `make
//! bench`, as root.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use systemscope_tests::mariadb::Server;
use systemscope_tests::output::median;
use systemscope_tests::{Tool, binary, now_ns};

const CLIENTS: u32 = 4;
const SECONDS: u32 = 3;
const ROUNDS: usize = 6;
/// Where Debian's libbpf-tools puts it.
const LIBBPF_TOOLS: &str = "/usr/sbin/offcputime";

/// A name, a tool with its arguments if one runs, and what was measured.
type Variant<'a> = (&'a str, Option<(&'a Path, &'a str)>, Vec<f64>);

fn main() {
    let server = Server::start();
    let busy = server.keep_busy(CLIENTS);
    attach(&server);
    drop(busy);
    throughput(&server);
}

/// From exec to attached, tables made.
fn attach(server: &Server) {
    println!("attached to MariaDB under load");
    for tool in ["offcputime", "oncputime"] {
        let mut peak = 0;
        let times = (0..ROUNDS).map(|_| {
            let begun = Instant::now();
            let (running, mut control) = Tool::new(tool).pid(server.pid()).start_controlled();
            control.ready().unwrap();
            let took = begun.elapsed().as_secs_f64() * 1e3;
            control.start(now_ns()).unwrap();
            control.stop(now_ns() + 500_000_000).unwrap();
            let finished = running.finish_within(Duration::from_secs(20)).succeeded();
            peak = finished.peak_rss_kib;
            took
        });
        let mut times: Vec<f64> = times.collect();
        times.sort_by(f64::total_cmp);
        println!(
            "  {tool:10} {:4.0} ms ({:.0} to {:.0}), peak RSS {peak} KiB",
            median(times.clone()),
            times[0],
            times[ROUNDS - 1]
        );
    }
}

/// Transactions a second with and without, in turn.
fn throughput(server: &Server) {
    println!("transactions a second, {CLIENTS} clients, {SECONDS} s, {ROUNDS} rounds in turn");
    let ours = binary("offcputime");
    let mut variants: Vec<Variant<'_>> = vec![
        ("nothing attached", None, vec![]),
        ("offcputime -p", Some((&ours, "")), vec![]),
        ("offcputime -p -m 1000", Some((&ours, "-m 1000")), vec![]),
    ];
    let theirs = Path::new(LIBBPF_TOOLS);
    if theirs.exists() {
        variants.push(("libbpf-tools -p", Some((theirs, "")), vec![]));
        variants.push(("libbpf-tools -p -m 1000", Some((theirs, "-m 1000")), vec![]));
    }
    for round in 0..ROUNDS {
        if round % 2 == 1 {
            variants.reverse();
        }
        for (_, tool, rates) in &mut variants {
            let running = tool.map(|(path, arguments)| {
                let running = Tool::at(path).pid(server.pid()).args(arguments).start();
                sleep(Duration::from_millis(500));
                running
            });
            rates.push(server.transactions_per_second(CLIENTS, SECONDS));
            if let Some(running) = running {
                running.signal(Signal::INT);
                running.finish_within(Duration::from_secs(20));
            }
        }
        if round % 2 == 1 {
            variants.reverse();
        }
    }
    for (name, _, mut rates) in variants {
        rates.sort_by(f64::total_cmp);
        let (least, most) = (rates[0], rates[ROUNDS - 1]);
        println!(
            "  {name:24} {:6.0} ({least:.0} to {most:.0})",
            median(rates)
        );
    }
}
