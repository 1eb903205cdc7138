//! Servers of all kinds, on 127.0.0.1.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Seek, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::{Duration, Instant};

use symbolize::DebugFiles;
use tempfile::TempDir;

use crate::{Cache, Fetcher, Settings, Summary};

/// Time that is enough for any answer of these servers.
const LONG: Duration = Duration::from_secs(60);
const BUILD_ID: [u8; 8] = [0xab, 0xcd, 0xef, 1, 2, 3, 4, 5];
const PATH: &str = "/buildid/abcdef0102030405/debuginfo";

/// Bytes of a debug file with [`BUILD_ID`].
static DEBUG_FILE: LazyLock<Vec<u8>> = LazyLock::new(|| build("0xabcdef0102030405"));

fn build(build_id: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let [source, program] = ["program.c", "program"].map(|name| folder.path().join(name));
    fs::write(&source, "int main(void) { return 0; }").unwrap();
    let built = Command::new("cc")
        .args(["-g", &format!("-Wl,--build-id={build_id}"), "-o"])
        .args([&program, &source])
        .status();
    assert!(built.unwrap().success());
    fs::read(&program).unwrap()
}

/// Server that answers each request with a function. The function gets the path, and writes the
/// answer.
struct Server {
    url: String,
    requests: Arc<AtomicUsize>,
}

impl Server {
    fn start(answer: impl Fn(&str, &mut TcpStream) + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(AtomicUsize::new(0));
        let (count, answer) = (Arc::clone(&requests), Arc::new(answer));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (count, answer) = (Arc::clone(&count), Arc::clone(&answer));
                thread::spawn(move || {
                    let mut stream = stream.unwrap();
                    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                    let line = lines.next().unwrap().unwrap();
                    while lines.next().is_some_and(|line| !line.unwrap().is_empty()) {}
                    count.fetch_add(1, Ordering::SeqCst);
                    answer(line.split(' ').nth(1).unwrap(), &mut stream);
                });
            }
        });
        Server { url, requests }
    }

    /// Returns a server that has this body for every build ID.
    fn with(body: Vec<u8>) -> Server {
        Server::start(move |path, stream| {
            assert_eq!(path, PATH);
            send(stream, "200 OK", &[], &body);
        })
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

fn send(stream: &mut TcpStream, status: &str, headers: &[&str], body: &[u8]) {
    let length = format!("Content-Length: {}", body.len());
    let lines = [&[status, &length], headers].concat();
    // The client may go away before it has read everything.
    let _ = stream.write_all(format!("HTTP/1.1 {}\r\n\r\n", lines.join("\r\n")).as_bytes());
    let _ = stream.write_all(body);
}

/// Cache in a folder of its own.
struct Folder(TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("abcdef0102030405/debuginfo")
    }

    fn fetcher(&self, servers: &[&str]) -> Fetcher {
        self.fetcher_with(servers, |_| {})
    }

    fn fetcher_with(&self, servers: &[&str], change: impl Fn(&mut Settings)) -> Fetcher {
        let mut settings = Settings {
            servers: servers.iter().map(|url| (*url).to_owned()).collect(),
            stall: Some(LONG),
            longest: None,
            patience: LONG,
            most_bytes: 1 << 20,
        };
        change(&mut settings);
        let folder = File::open(self.0.path()).unwrap();
        Fetcher::new(settings, Cache::new(folder.into()).unwrap())
    }
}

/// Gets the file. Asserts that a file is the whole one.
fn get(fetcher: &Fetcher) -> Option<()> {
    let mut bytes = Vec::new();
    let mut file = fetcher.get(&BUILD_ID, Some(Instant::now() + LONG))?;
    file.rewind().unwrap();
    file.read_to_end(&mut bytes).unwrap();
    assert!(bytes == *DEBUG_FILE);
    Some(())
}

/// Returns the counts, and asserts that the first note contains `why`.
fn summary(fetcher: &Fetcher, why: &str) -> Summary {
    let mut summary = fetcher.take_summary();
    let notes = std::mem::take(&mut summary.notes);
    assert!(
        notes.first().is_none_or(|note| note.contains(why)),
        "{notes:?}"
    );
    assert_eq!(notes.is_empty(), why.is_empty());
    summary
}

#[test]
fn a_file_is_fetched_once_and_shared_with_other_tools() {
    let (folder, server) = (Folder::new(), Server::with(DEBUG_FILE.clone()));
    let fetcher = folder.fetcher(&[&server.url]);
    assert!(get(&fetcher).is_some());
    let expected = Summary {
        fetched: 1,
        bytes: DEBUG_FILE.len() as u64,
        ..Summary::default()
    };
    assert_eq!(summary(&fetcher, ""), expected);
    assert!(get(&fetcher).is_some());
    let mode = fs::metadata(folder.file()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o400);
    let mode = fs::metadata(folder.file().parent().unwrap());
    assert_eq!(mode.unwrap().permissions().mode() & 0o777, 0o700);

    let another = folder.fetcher(&[&server.url]);
    assert!(get(&another).is_some());
    assert_eq!(summary(&another, "").cached, 1);
    assert_eq!(server.requests(), 1);
}

#[test]
fn a_file_of_another_build_in_the_cache_is_replaced() {
    let (folder, server) = (Folder::new(), Server::with(DEBUG_FILE.clone()));
    fs::create_dir(folder.file().parent().unwrap()).unwrap();
    for other in [b"no ELF file".to_vec(), build("0x0123456789abcdef")] {
        fs::write(folder.file(), &other).unwrap();
        assert!(get(&folder.fetcher(&[&server.url])).is_some());
        fs::remove_file(folder.file()).unwrap();
    }
    // A link is not followed.
    let elsewhere = folder.0.path().join("elsewhere");
    fs::write(&elsewhere, &*DEBUG_FILE).unwrap();
    std::os::unix::fs::symlink(&elsewhere, folder.file()).unwrap();
    assert!(get(&folder.fetcher(&[&server.url])).is_some());
    assert!(fs::symlink_metadata(folder.file()).unwrap().is_file());
    assert_eq!(server.requests(), 3);
}

#[test]
fn a_file_that_no_server_has_is_not_asked_for_again_at_once() {
    let folder = Folder::new();
    let server = Server::start(|_, stream| send(stream, "404 Not Found", &[], b"no"));
    for _ in 0..2 {
        let fetcher = folder.fetcher(&[&server.url, &server.url]);
        assert_eq!(get(&fetcher), None);
        assert_eq!(
            summary(&fetcher, "no server has abcdef0102030405").absent,
            1
        );
        assert_eq!(server.requests(), 2);
    }
    assert_eq!(fs::metadata(folder.file()).unwrap().len(), 0);
    // The configuration of elfutils says for how long.
    fs::write(folder.0.path().join("cache_miss_s"), "0\n").unwrap();
    assert_eq!(get(&folder.fetcher(&[&server.url])), None);
    assert_eq!(server.requests(), 3);
    let server = Server::with(DEBUG_FILE.clone());
    assert!(get(&folder.fetcher(&[&server.url])).is_some());
}

#[test]
fn what_is_not_the_file_is_refused_and_leaves_nothing() {
    let other = build("0x0123456789abcdef");
    let cut = DEBUG_FILE[..DEBUG_FILE.len() - 1].to_vec();
    let endless = |_: &str, stream: &mut TcpStream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        while stream.write_all(&[0; 65536]).is_ok() {}
    };
    let announced = |_: &str, stream: &mut TcpStream| {
        send(stream, "200 OK", &["X-DEBUGINFOD-SIZE: 99999999"], b"");
    };
    let redirects = |path: &str, stream: &mut TcpStream| {
        send(stream, "302 Found", &[&format!("Location: {path}")], b"");
    };
    let something_else = "something else than an ELF file with this build ID";
    for (server, why) in [
        (Server::with(b"garbage".to_vec()), something_else),
        (Server::with(Vec::new()), something_else),
        (Server::with(other), something_else),
        (Server::with(cut), something_else),
        (Server::start(endless), "has more than 1048576 bytes"),
        (Server::start(announced), "has more than 1048576 bytes"),
        (Server::start(redirects), "redirects"),
    ] {
        let folder = Folder::new();
        let fetcher = folder.fetcher(&[&server.url]);
        assert_eq!(get(&fetcher), None, "{why}");
        assert_eq!(summary(&fetcher, why).refused, 1, "{why}");
        let left = fs::read_dir(folder.file().parent().unwrap()).unwrap();
        assert_eq!(left.count(), 0, "{why}");
    }
}

#[test]
fn servers_that_fail_leave_the_file_to_others_and_are_not_asked_again() {
    let folder = Folder::new();
    let closed = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    let broken = Server::start(|_, stream| send(stream, "500 No", &[], b""));
    let fetcher = folder.fetcher(&[&closed, &broken.url]);
    assert_eq!(get(&fetcher), None);
    assert_eq!(summary(&fetcher, "status 500").failed, 1);
    assert_eq!(
        fetcher.get(&[1; 8], Some(Instant::now() + LONG)).map(drop),
        None
    );
    assert_eq!((fetcher.take_summary().failed, broken.requests()), (1, 2));
    // A server that failed is asked again by the next tool.
    let server = Server::with(DEBUG_FILE.clone());
    assert!(get(&folder.fetcher(&[&closed, &broken.url, &server.url])).is_some());
}

#[test]
fn redirects_are_followed() {
    let server = Server::with(DEBUG_FILE.clone());
    let place = format!("Location: {}{PATH}", server.url);
    let first = Server::start(move |_, stream| send(stream, "302 Found", &[&place], b""));
    assert!(get(&Folder::new().fetcher(&[&first.url])).is_some());
}

/// Answers nothing until the client goes away.
fn stay_silent(_: &str, stream: &mut TcpStream) {
    let _ = stream.read(&mut [0]);
}

#[test]
fn nobody_waits_longer_than_is_said() {
    let folder = Folder::new();
    let silent = Server::start(stay_silent);
    let fetcher = folder.fetcher(&[&silent.url]);
    let begun = Instant::now();
    // Without a time, nothing waits.
    assert!(fetcher.get(&BUILD_ID, None).is_none());
    assert!(begun.elapsed() < Duration::from_millis(100));
    let until = begun + Duration::from_millis(300);
    for id in [BUILD_ID, [7; 8], [8; 8]] {
        assert!(fetcher.get(&id, Some(until)).is_none());
    }
    let waited = begun.elapsed();
    assert!((300..1000).contains(&waited.as_millis()), "{waited:?}");
    assert_eq!(summary(&fetcher, "did not arrive in time").late, 3);
    // The files may still arrive, for another measurement. Late files are counted once.
    assert_eq!(fetcher.take_summary(), Summary::default());
}

#[test]
fn a_server_that_stalls_is_given_up() {
    let slow = |_: &str, stream: &mut TcpStream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        while stream.write_all(b"x").is_ok() {
            thread::sleep(Duration::from_millis(20));
        }
    };
    for (server, why) in [
        (Server::start(stay_silent), "timeout"),
        (Server::start(slow), "less than 100 KiB in 0 s"),
    ] {
        let folder = Folder::new();
        let stall = Duration::from_millis(300);
        let fetcher = folder.fetcher_with(&[&server.url], |it| it.stall = Some(stall));
        assert_eq!(get(&fetcher), None);
        assert_eq!(summary(&fetcher, why).failed, 1);
        let fetcher = folder.fetcher_with(&[&server.url], |it| it.longest = Some(stall));
        assert_eq!(get(&fetcher), None);
        assert_eq!(summary(&fetcher, "timeout").failed, 1);
    }
}

#[test]
fn two_tools_fetch_a_file_once() {
    let folder = Folder::new();
    let server = Server::start(|_, stream| {
        thread::sleep(Duration::from_millis(300));
        send(stream, "200 OK", &[], &DEBUG_FILE);
    });
    let fetchers = [(); 2].map(|()| folder.fetcher(&[&server.url]));
    thread::scope(|scope| {
        for fetcher in &fetchers {
            scope.spawn(|| assert!(get(fetcher).is_some()));
        }
    });
    assert_eq!(server.requests(), 1);
    let sums = fetchers.map(|fetcher| fetcher.take_summary());
    let sum = |count: fn(&Summary) -> u64| sums.iter().map(count).sum::<u64>();
    assert_eq!((sum(|it| it.fetched), sum(|it| it.cached)), (1, 1));
}

#[test]
fn a_request_fetches_before_anybody_asks() {
    let (folder, server) = (Folder::new(), Server::with(DEBUG_FILE.clone()));
    let fetcher = folder.fetcher(&[&server.url]);
    fetcher.request(Box::new(|| None));
    fetcher.request(Box::new(|| Some(BUILD_ID.to_vec())));
    let begun = Instant::now();
    while !is_whole(&folder.file()) {
        assert!(begun.elapsed() < LONG);
        thread::sleep(Duration::from_millis(10));
    }
    while fetcher.get(&BUILD_ID, None).is_none() {
        assert!(begun.elapsed() < LONG);
    }
    assert_eq!(server.requests(), 1);
}

fn is_whole(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| file.len() == DEBUG_FILE.len() as u64)
}
