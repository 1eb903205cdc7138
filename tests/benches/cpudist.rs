//! What cpudist adds to a context switch, beside libbpf-tools' cpudist where
//! that is installed: by the kernel's statistics of BPF programs, and by the time
//! that two processes take to pass a byte to and fro. Run by `make bench`, as
//! root.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use rustix::process::Signal;
use systemscope_tests::output::{median, spread};
use systemscope_tests::ping_pong::speed_for;
use systemscope_tests::statistics::{Statistics, programs};
use systemscope_tests::{Tool, Workload, binary, cpus_online};

/// Where the libbpf-tools of Debian and of Fedora put theirs.
const LIBBPF_TOOLS: [&str; 2] = ["/usr/sbin/cpudist", "/usr/sbin/bpf-cpudist"];
const MODES: [&str; 3] = ["", "-P", "-O"];
const ROUNDS: usize = 7;
const WINDOW: Duration = Duration::from_millis(700);

/// A tool, its arguments, and what it was found to cost.
struct Variant<'a> {
    tool: Option<&'a Path>,
    arguments: String,
    /// Nanoseconds of its programs for each switch.
    programs: Vec<f64>,
    /// Nanoseconds a pass.
    passes: Vec<f64>,
}

impl<'a> Variant<'a> {
    fn new(tool: Option<&'a Path>, arguments: impl Into<String>) -> Variant<'a> {
        Variant {
            tool,
            arguments: arguments.into(),
            programs: Vec::new(),
            passes: Vec::new(),
        }
    }

    fn measure(&mut self, ping_pong: &mut Workload) {
        let Some(tool) = self.tool else {
            self.passes.push(1e9 / speed_for(ping_pong, WINDOW));
            return;
        };
        let others = programs();
        let running = Tool::at(tool).args(&self.arguments).start();
        sleep(Duration::from_millis(600));
        {
            let _statistics = Statistics::enable();
            let before = programs();
            sleep(WINDOW);
            let after = programs();
            let own = after.iter().filter(|(id, _)| !others.contains_key(id));
            let (mut run_ns, mut switches) = (0, 0);
            for (id, program) in own.filter(|(id, _)| before.contains_key(id)) {
                run_ns += program.run_ns - before[id].run_ns;
                // One of its programs runs at each switch, none more often.
                switches = switches.max(program.runs - before[id].runs);
            }
            self.programs.push(run_ns as f64 / switches.max(1) as f64);
        }
        self.passes.push(1e9 / speed_for(ping_pong, WINDOW));
        running.signal(Signal::INT);
        running.finish_within(Duration::from_secs(20));
    }
}

fn main() {
    let ours = binary("cpudist");
    let theirs = LIBBPF_TOOLS
        .map(Path::new)
        .into_iter()
        .find(|path| path.exists());
    let mut ping_pong = Workload::start("ping_pong", &[cpus_online() - 1]);
    let sleeper = Workload::start("naps", &[1]);

    let mut variants = vec![
        Variant::new(None, ""),
        // Enters and leaves: what the statistics themselves cost, and a
        // look at the two threads.
        Variant::new(Some(&ours), format!("-p {}", sleeper.pid())),
    ];
    for mode in MODES {
        variants.push(Variant::new(Some(&ours), mode));
        variants.extend(theirs.map(|theirs| Variant::new(Some(theirs), mode)));
    }
    for _ in 0..ROUNDS {
        for variant in &mut variants {
            variant.measure(&mut ping_pong);
        }
    }
    report(&variants, theirs.is_some());
}

fn report(variants: &[Variant<'_>], compared: bool) {
    println!("a context switch, median of {ROUNDS} (least to most):");
    println!("ns of BPF programs a switch, ns a pass of two switches");
    let shown = |values: &[f64]| {
        let (least, most) = spread(values);
        format!("{:6.0} ({least:.0} to {most:.0})", median(values.to_vec()))
    };
    for variant in variants {
        let name = match variant.tool {
            None => "nothing attached".to_owned(),
            Some(tool) if LIBBPF_TOOLS.iter().any(|path| tool == Path::new(path)) => {
                format!("libbpf-tools' cpudist {}", variant.arguments)
            }
            Some(_) => format!("cpudist {}", variant.arguments),
        };
        let programs = match variant.programs.as_slice() {
            [] => String::new(),
            values => shown(values),
        };
        println!("  {name:28} {programs:22} {}", shown(&variant.passes));
    }
    if !compared {
        println!("  libbpf-tools are not installed: nothing to compare with");
        return;
    }
    let empty = median(variants[1].programs.clone());
    let alone = median(variants[0].passes.clone());
    for pair in variants[2..].chunks_exact(2) {
        let ratios = |less: f64, values: fn(&Variant<'_>) -> Vec<f64>| {
            let [ours, theirs] = [&pair[0], &pair[1]].map(|variant| median(values(variant)) - less);
            ours / theirs
        };
        println!(
            "  {:3} ours / theirs: programs {:.2}, without what -p costs {:.2}; time added to a pass {:.2}",
            pair[0].arguments,
            ratios(0.0, |variant| variant.programs.clone()),
            ratios(empty, |variant| variant.programs.clone()),
            ratios(alone, |variant| variant.passes.clone())
        );
    }
}
