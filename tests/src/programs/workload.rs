//! Workloads: programs that measure themselves. The tests build them from `workloads/`, and talk to
//! them.

use std::collections::HashMap;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufRead, BufReader, PipeWriter, Write, pipe};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use tempfile::TempDir;

use crate::programs::process::Running;
use crate::programs::sources;

/// Language of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// C, built with `cc`.
    C,
    /// C++, built with `c++`.
    Cpp,
    /// Rust, built with `rustc`.
    Rust,
    /// Go, built with `go build`. It always has frame pointers.
    Go,
}

/// Workload to build.
#[derive(Debug)]
pub struct WorkloadBuilder {
    name: String,
    language: Language,
    compiler: Option<String>,
    frame_pointers: bool,
    flags: Vec<String>,
    arguments: Vec<OsString>,
}

/// Running workload, killed when dropped.
#[derive(Debug)]
pub struct Workload {
    running: Running,
    stdin: PipeWriter,
    lines: Receiver<String>,
    heard: HashMap<String, u64>,
    folder: TempDir,
    binary: PathBuf,
}

/// Makes a directory that all users can enter, and that is removed when dropped.
pub fn scratch() -> TempDir {
    let folder = tempfile::Builder::new()
        .prefix("systemscope-tests-")
        .permissions(fs::Permissions::from_mode(0o755))
        .tempdir();
    folder.expect("a temporary folder")
}

/// Copies a program by means of another process, to a place where it will be executed. The kernel
/// does not execute a file that a process has open for writing. If this process wrote the file, a
/// child that another test forked meanwhile would hold it open until that child executes its
/// program.
pub fn install(program: &Path, to: &Path) {
    let status = Command::new("cp").arg(program).arg(to).status();
    let copied = status.expect("start cp").success();
    assert!(copied, "cp {} {}", program.display(), to.display());
}

impl WorkloadBuilder {
    /// Returns a C workload by name, built with frame pointers.
    pub fn new(name: &str) -> WorkloadBuilder {
        WorkloadBuilder {
            name: name.to_owned(),
            language: Language::C,
            compiler: None,
            frame_pointers: true,
            flags: Vec::new(),
            arguments: Vec::new(),
        }
    }

    /// Sets a language other than C.
    pub fn language(mut self, language: Language) -> WorkloadBuilder {
        self.language = language;
        self
    }

    /// Sets a compiler other than the default one of the language.
    pub fn compiler(mut self, compiler: &str) -> WorkloadBuilder {
        self.compiler = Some(compiler.to_owned());
        self
    }

    /// Builds the workload as distributions build programs: optimized, without frame pointers, and
    /// without debug information.
    pub fn without_frame_pointers(mut self) -> WorkloadBuilder {
        self.frame_pointers = false;
        self
    }

    /// Adds a flag for the compiler.
    pub fn flag(mut self, flag: &str) -> WorkloadBuilder {
        self.flags.push(flag.to_owned());
        self
    }

    /// Adds arguments for the workload.
    pub fn args<T: ToString>(mut self, arguments: &[T]) -> WorkloadBuilder {
        self.arguments
            .extend(arguments.iter().map(|argument| argument.to_string().into()));
        self
    }

    /// Builds the workload into `folder`, and returns the path of the binary. An existing build of
    /// the same source with the same flags is used again.
    pub fn build_into(&self, folder: &Path) -> PathBuf {
        let binary = folder.join(&self.name);
        let built = self.built();
        install(&built, &binary);
        binary
    }

    fn built(&self) -> PathBuf {
        let (usual, extension) = match self.language {
            Language::C => ("cc", "c"),
            Language::Cpp => ("c++", "cpp"),
            Language::Rust => ("rustc", "rs"),
            Language::Go => ("go", "go"),
        };
        let compiler = self.compiler.as_deref().unwrap_or(usual);
        let flags = match (self.language, self.frame_pointers) {
            (Language::Go, _) => &GO_FLAGS[..],
            (Language::Rust, true) => &RUST_FLAGS[..],
            (Language::Rust, false) => &RUST_FLAGS_WITHOUT[..],
            (_, true) => &C_FLAGS[..],
            (_, false) => &C_FLAGS_WITHOUT[..],
        };
        let source = sources::source(&format!("{}.{extension}", self.name));
        let mut hasher = DefaultHasher::new();
        let shared = |name: &str| sources::folder().join(name);
        for path in [source.clone(), shared("workload.h"), shared("fuse.h")] {
            fs::read(&path)
                .unwrap_or_else(|error| panic!("read {}: {error}", path.display()))
                .hash(&mut hasher);
        }
        // The hash includes the path, because debug information contains it.
        (compiler, flags, &self.flags, &source).hash(&mut hasher);
        // This path has the form `target/release/deps/accounting-0123456789abcdef`.
        let test = env::current_exe().expect("the path of this test");
        let folder = test
            .ancestors()
            .nth(2)
            .expect("a target folder")
            .join("workloads");
        let built = folder.join(format!("{}-{:016x}", self.name, hasher.finish()));
        if built.exists() {
            return built;
        }
        fs::create_dir_all(&folder)
            .unwrap_or_else(|error| panic!("create {}: {error}", folder.display()));
        let unfinished = tempfile::tempdir_in(&folder).expect("a temporary folder");
        let binary = unfinished.path().join(&self.name);
        let mut command = Command::new(compiler);
        if self.language == Language::Go {
            // Go needs no module here, and must write nothing to the user's home.
            command.env("GO111MODULE", "off").env("GOFLAGS", "");
            command.env("GOCACHE", folder.join("go-cache"));
            command.env("GOPATH", unfinished.path());
            // Another linker needs C.
            let is_linked_by_go = !self
                .flags
                .iter()
                .any(|flag| flag.contains("linkmode=external"));
            command.env("CGO_ENABLED", if is_linked_by_go { "0" } else { "1" });
        }
        if matches!(self.language, Language::C | Language::Cpp) {
            command.arg("-I").arg(sources::folder());
        }
        let output = command
            .args(flags)
            .args(&self.flags)
            .arg("-o")
            .arg(&binary)
            .arg(&source)
            .output()
            .unwrap_or_else(|error| panic!("start {compiler}: {error}"));
        let complaints = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "{compiler} {}:\n{complaints}",
            source.display()
        );
        fs::rename(&binary, &built).expect("keep what was built");
        built
    }

    /// Builds the workload, starts it, and waits until it is ready.
    pub fn start(self) -> Workload {
        self.start_with(|_, _| ())
    }

    /// Builds the workload, calls `prepare` with the binary and the command, starts the workload,
    /// and waits until it is ready.
    pub fn start_with(self, prepare: impl FnOnce(&Path, &mut Command)) -> Workload {
        let folder = scratch();
        let binary = self.build_into(folder.path());
        let mut command = Command::new(&binary);
        command.args(&self.arguments);
        prepare(&binary, &mut command);
        Workload::run(command, binary, folder)
    }
}

const C_FLAGS: [&str; 7] = [
    "-O1",
    "-g",
    "-fno-omit-frame-pointer",
    "-fno-optimize-sibling-calls",
    "-pthread",
    "-Wall",
    "-Wextra",
];

const GO_FLAGS: [&str; 1] = ["build"];

const RUST_FLAGS: [&str; 6] = [
    "--edition",
    "2024",
    "-O",
    "-g",
    "-C",
    "force-frame-pointers=yes",
];

const C_FLAGS_WITHOUT: [&str; 6] = [
    "-O2",
    "-g0",
    "-fomit-frame-pointer",
    "-pthread",
    "-Wall",
    "-Wextra",
];

const RUST_FLAGS_WITHOUT: [&str; 7] = [
    "--edition",
    "2024",
    "-O",
    "-C",
    "force-frame-pointers=no",
    "-C",
    "strip=debuginfo",
];

/// Longest time between two lines of a workload. A workload that computes for 8 s may get a tenth
/// of a CPU.
const PATIENCE: Duration = Duration::from_secs(200);

impl Workload {
    /// Starts a C workload by name with arguments, and waits until it is ready.
    pub fn start<T: ToString>(name: &str, arguments: &[T]) -> Workload {
        WorkloadBuilder::new(name).args(arguments).start()
    }

    /// Starts a C workload by name without arguments, and waits until it is ready.
    pub fn plain(name: &str) -> Workload {
        WorkloadBuilder::new(name).start()
    }

    /// Starts a command that talks as the workloads do, and waits until it is ready. `folder`
    /// exists as long as the workload.
    pub fn run(mut command: Command, binary: PathBuf, folder: TempDir) -> Workload {
        let (their_stdin, stdin) = pipe().expect("a pipe");
        let (stdout, their_stdout) = pipe().expect("a pipe");
        command.stdin(their_stdin).stdout(their_stdout);
        let running = Running::spawn(command, false);
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let mut workload = Workload {
            running,
            stdin,
            lines,
            heard: HashMap::new(),
            folder,
            binary,
        };
        workload.listen_until("ready", PATIENCE);
        workload
    }

    /// Returns the workload's process ID.
    pub fn pid(&self) -> u32 {
        self.running.pid()
    }

    /// Returns the path of the workload's binary.
    pub fn binary(&self) -> &Path {
        &self.binary
    }

    /// Returns the directory of the binary. The test may put files of its own there.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Sends the workload the line that lets it continue.
    pub fn go(&mut self) {
        self.stdin.write_all(b"\n").expect("talk to the workload");
    }

    /// Waits until the workload prints `done`.
    pub fn wait_done(&mut self) {
        self.wait_done_within(PATIENCE);
    }

    /// Waits until the workload prints `done`, with at most `patience` between two lines.
    pub fn wait_done_within(&mut self, patience: Duration) {
        self.listen_until("done", patience);
    }

    /// Kills the workload.
    pub fn kill(&self) {
        self.running.signal(Signal::KILL);
    }

    /// Returns whether the workload has not ended.
    pub fn is_running(&mut self) -> bool {
        self.running.is_running()
    }

    /// Returns the number that the workload has printed with this name.
    pub fn told(&self, name: &str) -> u64 {
        *self
            .heard
            .get(name)
            .unwrap_or_else(|| panic!("the workload printed no {name}: {:?}", self.heard))
    }

    /// Returns the next line that the workload prints.
    pub fn next_line(&mut self) -> String {
        self.next_line_within(PATIENCE)
    }

    fn next_line_within(&mut self, patience: Duration) -> String {
        self.lines
            .recv_timeout(patience)
            .unwrap_or_else(|error| panic!("a line from the workload: {error}"))
    }

    /// Returns the lines that the workload has printed and the test has not read.
    pub fn lines_so_far(&mut self) -> Vec<String> {
        self.lines.try_iter().collect()
    }

    /// Reads `name number` pairs up to the line `end`.
    fn listen_until(&mut self, end: &str, patience: Duration) {
        loop {
            let line = self.next_line_within(patience);
            if line == end {
                return;
            }
            let words: Vec<&str> = line.split(' ').collect();
            for pair in words.chunks_exact(2) {
                let number = pair[1]
                    .parse()
                    .unwrap_or_else(|_| panic!("the workload printed {line:?}"));
                self.heard.insert(pair[0].to_owned(), number);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds all workloads, also the ones that no test of this machine needs: `make test-kernels`
    /// takes the builds to machines without a compiler.
    #[test]
    #[ignore = "compiles every workload twice, which other tests do as they need them"]
    fn every_workload_in_c_is_built_with_frame_pointers_and_without() {
        for path in sources::all() {
            let name = path.file_stem().unwrap().to_str().unwrap();
            // The plugin is a library. Its test builds it.
            if path.extension().is_none_or(|extension| extension != "c") || name == "plugin" {
                continue;
            }
            WorkloadBuilder::new(name).built();
            WorkloadBuilder::new(name).without_frame_pointers().built();
        }
    }

    #[test]
    fn a_workload_is_built_started_and_heard() {
        let mut naps = Workload::start("naps", &[0]);
        assert!(naps.is_running());
        naps.go();
        naps.wait_done();
        assert_eq!(naps.told("rests"), 0);
        assert!(naps.binary().starts_with(naps.folder()));
    }
}
