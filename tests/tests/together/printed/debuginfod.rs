//! Names of functions from a debuginfod server.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use systemscope_tests::programs::tool::PATIENCE;
use systemscope_tests::programs::workload::scratch;
use systemscope_tests::{Finished, Folded, Tool, Turn, Workload, WorkloadBuilder};
use tempfile::TempDir;

/// Frame of the program without a name. The name of the file reads as a word of the tools, so it is
/// not in square brackets.
const UNNAMED: &str = "(inlined)";

/// debuginfod of elfutils, with the debug files of a folder. It ends when dropped.
struct Server {
    process: Child,
    url: String,
}

impl Server {
    fn start(files: &Path) -> Server {
        // The port is free a moment later, too.
        let port = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = port.local_addr().unwrap();
        drop(port);
        let process = Command::new("debuginfod")
            .arg(format!("--port={}", address.port()))
            .args(["--database=:memory:", "-F"])
            .arg(files)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let url = format!("http://{address}");
        let begun = Instant::now();
        while TcpStream::connect(address).is_err() {
            assert!(begun.elapsed() < PATIENCE);
            sleep(Duration::from_millis(20));
        }
        Server { process, url }
    }

    /// Waits until the server has read its folder. `debuginfod-find` is the client of elfutils.
    fn wait_for(&self, program: &Path) {
        let begun = Instant::now();
        loop {
            let cache = scratch();
            let found = Command::new("debuginfod-find")
                .arg("debuginfo")
                .arg(program)
                .env("DEBUGINFOD_URLS", &self.url)
                .env("DEBUGINFOD_CACHE_PATH", cache.path())
                .output()
                .unwrap();
            if found.status.success() {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "{found:?}");
            sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Starts a program that is stripped, and returns the folder with its debug file.
fn stripped() -> (Workload, TempDir) {
    let debug = scratch();
    let file = debug.path().join("inlined.debug");
    let workload = WorkloadBuilder::new("inlined")
        .flag("-O2")
        .flag("-Wl,--build-id")
        .start_with(|program, _| {
            let run = |program: &str, arguments: &[&Path]| {
                let status = Command::new(program).args(arguments).status().unwrap();
                assert!(status.success(), "{program} {arguments:?}");
            };
            run("objcopy", &[Path::new("--only-keep-debug"), program, &file]);
            run("strip", &[program]);
        });
    (workload, debug)
}

fn sample(workload: &Workload, cache: &Path, flags: &str) -> Finished {
    let tool = Tool::new("oncputime").pid(workload.pid());
    let tool = tool.args("-U -F 999 --duration 1").args(flags);
    tool.env("DEBUGINFOD_CACHE_PATH", cache).run().succeeded()
}

/// Asserts that nearly all samples have this frame at their leaf.
fn assert_leaf(finished: &Finished, leaf: &str) {
    let folded = Folded::parse(&finished.stdout);
    let meant = folded.only(|line| {
        let last = line.frames.last();
        last.is_some_and(|frame| frame.starts_with(leaf))
    });
    assert!(meant.total() * 10 >= folded.total() * 9, "{folded}");
    assert!(folded.total() > 0, "{folded}");
}

#[test]
fn functions_and_lines_come_from_a_server_once() {
    let _turn = Turn::share();
    let ((workload, debug), cache) = (stripped(), scratch());
    let server = Server::start(debug.path());
    server.wait_for(workload.binary());
    let flag = format!("--debuginfod={}", server.url);

    assert_leaf(
        &sample(&workload, cache.path(), "--debuginfod=off"),
        UNNAMED,
    );
    assert_eq!(fs::read_dir(cache.path()).unwrap().count(), 0);
    let fetched = sample(&workload, cache.path(), &flag);
    assert_leaf(&fetched, "outermost");
    assert!(
        fetched.stderr.contains("debuginfod: 1 debug file fetched"),
        "{fetched:?}"
    );
    // Without a server, the debug file is in the cache, and it has lines and inlined functions.
    drop(server);
    let cached = sample(
        &workload,
        cache.path(),
        &format!("{flag} --inline --srcline"),
    );
    assert_leaf(&cached, "innermost (inlined.c:");
    assert!(
        !cached.stderr.contains("1 debug file fetched"),
        "{cached:?}"
    );
}

#[test]
fn wallclock_lets_its_tools_fetch() {
    let _turn = Turn::share();
    let ((workload, debug), cache) = (stripped(), scratch());
    let server = Server::start(debug.path());
    server.wait_for(workload.binary());
    let capture = cache.path().join("run.scope");
    let run = |command: Tool| {
        let command = command.env("DEBUGINFOD_CACHE_PATH", cache.path());
        command.run().succeeded()
    };
    let wallclock = Tool::new("wallclock").arg(workload.pid().to_string());
    let wallclock = wallclock.args("-d 1 -f 499 -o").arg(&capture);
    let wallclock = run(wallclock.env("DEBUGINFOD_URLS", &server.url));
    assert!(
        wallclock.stderr.contains("debug file fetched"),
        "{wallclock:?}"
    );
    drop(server);
    // The capture has the names.
    let folded = run(Tool::new("systemscope")
        .args("export --format folded")
        .arg(&capture));
    let folded = String::from_utf8(folded.stdout).unwrap();
    assert!(folded.contains(";outermost"), "{folded}");
}

#[test]
fn servers_that_do_not_answer_cost_no_sample_and_at_most_the_wait() {
    let _turn = Turn::share();
    let ((workload, _debug), cache) = (stripped(), scratch());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let closed = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let silent = listener.local_addr().unwrap();
    for (address, longest) in [(closed, 0.0), (silent, 2.0)] {
        let begun = Instant::now();
        let tool = Tool::new("oncputime").pid(workload.pid());
        let tool = tool.args("-U -F 999 --duration 1");
        let tool = tool.arg(format!("--debuginfod=http://{address}"));
        let tool = tool.env("DEBUGINFOD_CACHE_PATH", cache.path());
        let finished = tool.env("DEBUGINFOD_MAXTIME", "2").run().succeeded();
        let taken = begun.elapsed().as_secs_f64();
        assert_leaf(&finished, UNNAMED);
        assert!(
            finished.stderr.contains("that could not be fetched"),
            "{finished:?}"
        );
        // Attaching takes time, too, on a busy machine. Other waits take 30 s and 90 s.
        assert!(taken < 1.0 + longest + 20.0, "{taken} s");
    }
}

#[test]
fn a_wrong_choice_of_servers_is_refused() {
    let folder = scratch();
    let tool = Tool::new("oncputime").args("-p 1 --debuginfod=ftp://server");
    let refused = tool.env("DEBUGINFOD_CACHE_PATH", folder.path()).run();
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(
        refused.stderr.contains("give http:// or https:// URLs"),
        "{refused:?}"
    );
}
