//! Entries of the name service switch, by getent(1).
//!
//! A statically linked program cannot load the plugins of the switch, which belong to another libc.

use std::io::{self, ErrorKind, Read};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Folders with `getent`. `PATH` may lead to another program of this name.
const FOLDERS: [&str; 2] = ["/usr/bin", "/bin"];

/// Exit status of getent(1) for a key without an entry.
const NOT_FOUND: i32 = 2;

/// Maximum size of an answer, in bytes.
const LONGEST_ANSWER: u64 = 1 << 20;

/// Interval between checks whether `getent` has ended.
const PAUSE: Duration = Duration::from_millis(2);

/// Answer of `getent` for a key.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    /// The lines of the key's entry.
    Entry(String),
    /// The database has no such key.
    Missing,
    /// This system has no `getent`, or its `getent` does not know the database.
    Unable,
}

/// Asks `getent` for a key of a database, such as `passwd` or `ahosts`.
///
/// # Errors
/// `getent` cannot be run, or does not end within `longest`.
pub fn getent(database: &str, key: &str, longest: Duration) -> io::Result<Answer> {
    // getent would read it as a flag.
    if key.starts_with('-') {
        return Ok(Answer::Missing);
    }
    for folder in FOLDERS {
        let run = Command::new(format!("{folder}/getent"))
            .args([database, key])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        return match run {
            Ok(child) => answer(child, longest),
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => Err(error),
        };
    }
    Ok(Answer::Unable)
}

fn answer(mut child: Child, longest: Duration) -> io::Result<Answer> {
    // A pipe holds less than an answer may have, so a thread reads.
    let output = child.stdout.take();
    let reader = thread::spawn(move || {
        let mut text = Vec::new();
        let read = output.map(|output| output.take(LONGEST_ANSWER).read_to_end(&mut text));
        read.transpose().map(|_| text)
    });
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if begun.elapsed() > longest {
            child.kill()?;
            child.wait()?;
            return Err(ErrorKind::TimedOut.into());
        }
        thread::sleep(PAUSE);
    };
    let text = reader
        .join()
        .map_err(|_| io::Error::other("reading from getent failed"))??;
    Ok(match status.code() {
        Some(0) => Answer::Entry(String::from_utf8_lossy(&text).into_owned()),
        Some(NOT_FOUND) => Answer::Missing,
        _ => Answer::Unable,
    })
}
