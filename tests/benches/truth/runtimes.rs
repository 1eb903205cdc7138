//! Shares of CPU time, and time off the CPU, by function of Java, JavaScript, PHP and Ruby. Both are
//! compared with the program's own measure. `python.rs` has these rows for Python.

use std::path::Path;
use std::process::Command;

use systemscope_tests::printed::folded::bare;
use systemscope_tests::printed::table::{Table, Verdict};
use systemscope_tests::programs::javas::{compile, javas};
use systemscope_tests::programs::nodes::nodes;
use systemscope_tests::programs::php::phps;
use systemscope_tests::programs::rubies::rubies;
use systemscope_tests::programs::sources::source;
use systemscope_tests::programs::versions::version;
use systemscope_tests::programs::workload::scratch;
use systemscope_tests::truth::account::stolen_ns;
use systemscope_tests::{Folded, Watch, Workload};

use crate::shares::{Error, SYSTEMATIC};

const SECONDS: &str = "4";
const HERTZ: u64 = 999;
const MAX_PERCENT: f64 = 1.0;

/// Program that measures its own functions.
struct Program {
    /// Runtime and its version.
    name: String,
    running: Workload,
    /// Functions that compute.
    compute: &'static [&'static str],
    /// Functions that wait.
    wait: &'static [&'static str],
    /// Class or script, as it stands before the function in frames.
    before: String,
}

/// Measures each runtime's program.
pub(crate) fn rows(table: &mut Table) {
    for java in javas() {
        let folder = scratch();
        compile(&source("Phases.java"), folder.path());
        let mut command = Command::new(&java.path);
        command
            .arg("-cp")
            .arg(folder.path())
            .args(["Phases", SECONDS]);
        let program = Program {
            name: version(&java.path),
            running: Workload::run(command, java.path, folder),
            compute: &["loop", "sort", "checksum"],
            wait: &["doze", "park", "waitInMonitor"],
            before: "Phases.".to_owned(),
        };
        program.measure(table);
    }
    for node in nodes() {
        Program::script(&node.path, "phases.js", &["loop", "sort", "checksum"]).measure(table);
    }
    for php in phps() {
        Program::script(&php, "phases.php", &["loop", "sorted", "checksum"]).measure(table);
    }
    for ruby in rubies() {
        Program::script(&ruby, "phases.rb", &["loop_on", "sorted", "checksum"]).measure(table);
    }
}

impl Program {
    fn script(interpreter: &Path, script: &str, compute: &'static [&'static str]) -> Program {
        let mut command = Command::new(interpreter);
        command.arg(source(script)).arg(SECONDS);
        Program {
            name: version(interpreter),
            running: Workload::run(command, interpreter.to_owned(), scratch()),
            compute,
            wait: &["doze"],
            before: format!("{script}:"),
        }
    }

    fn measure(mut self, table: &mut Table) {
        let pid = self.running.pid();
        let mut on_cpu = Watch::oncputime(pid, &format!("-F {HERTZ}"));
        let mut off_cpu = Watch::offcputime(pid, "");
        on_cpu.open();
        off_cpu.open();
        let stolen = stolen_ns();
        self.running.go();
        self.running.wait_done();
        let stolen = stolen_ns() - stolen;
        self.share_row(table, &on_cpu.close().folded, stolen);
        self.wait_rows(table, &off_cpu.close().folded);
    }

    fn share_row(&self, table: &mut Table, on_cpu: &Folded, stolen_ns: u64) {
        let computed: u64 = self.compute.iter().map(|name| self.told("on", name)).sum();
        let functions = self.compute.iter().map(|name| {
            let share = self.told("on", name) as f64 * 100.0 / computed as f64;
            (self.within(on_cpu, name), share)
        });
        let functions: Vec<(u64, f64)> = functions.collect();
        let error = Error::of(&functions);
        let stolen = stolen_ns as f64 * 100.0 / computed as f64;
        let most = error.chance + SYSTEMATIC;
        let truth = self.compute.iter().zip(&functions);
        let truth: Vec<String> = truth
            .map(|(name, (_, share))| format!("{name} {share:.1} %"))
            .collect();
        let cells = [
            "share of CPU time by function",
            &self.name,
            &truth.join(", "),
            &error.text(),
            &format!("within {most:.1} points and the {stolen:.2} % that the hypervisor took"),
            "",
        ];
        table.row(
            &cells,
            Verdict::of_calm(stolen, error.points <= most + stolen),
        );
    }

    fn wait_rows(&self, table: &mut Table, off_cpu: &Folded) {
        for name in self.wait {
            let told_ns = self.told("off", name);
            let seen_ns = self.within(off_cpu, name);
            let percent = (seen_ns as f64 / told_ns as f64 - 1.0) * 100.0;
            let cells = [
                "time off CPU by function",
                &format!("{name}, {}", self.name),
                &format!("{:.1} ms", told_ns as f64 / 1e6),
                &format!("{:.1} ms, {percent:+.2} %", seen_ns as f64 / 1e6),
                &format!("within {MAX_PERCENT} %"),
                "",
            ];
            table.row(&cells, Verdict::of(percent.abs() <= MAX_PERCENT));
        }
    }

    /// Returns the program's own measure of a function, in ns.
    fn told(&self, state: &str, function: &str) -> u64 {
        self.running.told(&format!("{state}-{function}"))
    }

    /// Returns the value of the stacks that contain a function.
    fn within(&self, folded: &Folded, function: &str) -> u64 {
        let frame = format!("{}{function}", self.before);
        folded
            .only(|line| line.frames.iter().any(|found| bare(found) == frame))
            .total()
    }
}
