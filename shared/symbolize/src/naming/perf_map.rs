//! Perf maps: files in which JIT compilers list the code that they compiled.
//!
//! `/tmp/perf-PID.map` has a line `START SIZE NAME` for every piece of code, with hexadecimal
//! numbers. If code moves, a later line has its new place.

use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::{CWD, Stat};
use rustix::time::{ClockId, clock_gettime};

use crate::budget::Allowance;
use crate::lines::{for_each_line, hexadecimal};
use crate::naming::wanted::Wanted;
use crate::process::open;
use crate::process::proc::{Identity, Proc};
use process::Process;

const LARGEST: u64 = 256 << 20;
const LONGEST_LINE: usize = 4 << 10;
/// Maximum number of matches between addresses and lines that cover them. A map with more matches
/// is made to waste time.
const MAX_MATCHES: usize = 16 << 20;
/// Interval between searches for a map that does not exist yet.
const SEARCH_INTERVAL: Duration = Duration::from_millis(100);

/// Perf maps of one process. They are kept open from the process's first JIT-compiled address on.
pub(crate) struct PerfMaps {
    process: Process,
    started: u64,
    identity: Option<Identity>,
    files: Vec<File>,
    searched_at: Option<Instant>,
}

impl PerfMaps {
    /// Returns the maps of a process. `started` is its start time, in clock ticks after boot.
    pub(crate) fn new(process: Process, started: u64) -> Self {
        Self {
            process,
            started,
            identity: None,
            files: Vec::new(),
            searched_at: None,
        }
    }

    /// Searches for the maps while the process lives, if they are not open yet.
    pub(crate) fn search(&mut self) {
        let recently = |at: Instant| at.elapsed() < SEARCH_INTERVAL;
        if !self.files.is_empty() || self.searched_at.is_some_and(recently) {
            return;
        }
        self.searched_at = Some(Instant::now());
        let Ok(proc) = Proc::open(self.process.pid) else {
            return;
        };
        if proc.started().ok() != Some(self.started) {
            return;
        }
        if self.identity.is_none() {
            self.identity = proc.identity().ok();
        }
        let inner_pid = self
            .identity
            .as_ref()
            .map_or(0, |identity| identity.inner_pid);
        // The process writes the file in its own mount namespace, so that file is preferred.
        let inner = proc.root().and_then(|root| {
            let path = format!("tmp/perf-{inner_pid}.map");
            open::regular_within(&root, Path::new(&path), false)
        });
        let mut seen = None;
        for (file, stat) in inner.into_iter().chain(self.outer()) {
            let file_id = Some((stat.st_dev, stat.st_ino));
            if self.is_its_own(&stat) && seen != file_id {
                self.files.push(file);
                seen = file_id;
            }
        }
    }

    /// Searches for the map a last time. Some processes write their map when they end.
    pub(crate) fn search_last(&mut self) {
        if self.files.is_empty() {
            let outer = self.outer().ok().filter(|(_, stat)| self.is_its_own(stat));
            self.files.extend(outer.map(|(file, _)| file));
        }
    }

    /// Opens the map in the mount namespace of this program.
    fn outer(&self) -> Result<(File, Stat)> {
        let folder = open::directory(CWD, "/tmp")?;
        let path = format!("perf-{}.map", self.process.pid);
        open::regular_within(&folder, Path::new(&path), false)
    }

    /// Returns whether a file may be a map of this process. All users may write to `/tmp`, and
    /// `/tmp` keeps the maps of former processes with the same PID.
    fn is_its_own(&self, stat: &Stat) -> bool {
        let users = self
            .identity
            .as_ref()
            .map_or(&[][..], |identity| &identity.users);
        let owned = stat.st_uid == 0 || users.contains(&stat.st_uid);
        owned && began(self.started).is_some_and(|began| stat.st_mtime as u64 >= began)
    }

    /// Returns the ID of the process.
    pub(crate) fn pid(&self) -> u32 {
        self.process.pid
    }

    /// Returns the size of all maps, in bytes.
    pub(crate) fn size(&self) -> u64 {
        let metadata = self.files.iter().flat_map(File::metadata);
        metadata.map(|metadata| metadata.len()).sum()
    }

    /// Names each address with the first map that has a name for it.
    pub(crate) fn names(&self, wanted: &Wanted, allowance: &Allowance) -> Vec<Option<Arc<str>>> {
        let mut names = vec![None; wanted.addresses().len()];
        for file in &self.files {
            let Ok(found) = parse(file, wanted, allowance) else {
                continue;
            };
            for (name, found) in names.iter_mut().zip(found) {
                *name = name.take().or(found);
            }
        }
        names
    }
}

/// Returns the start time of a process, in seconds since 1970. The result is one second too early,
/// because clocks round differently.
fn began(ticks: u64) -> Option<u64> {
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .ok()?;
    let since_boot = clock_gettime(ClockId::Boottime).tv_sec as u64;
    let at = ticks / rustix::param::clock_ticks_per_second().max(1);
    Some((now.as_secs() + at).saturating_sub(since_boot + 1))
}

/// Finds the latest name of each address.
pub(crate) fn parse(
    file: &File,
    wanted: &Wanted,
    allowance: &Allowance,
) -> Result<Vec<Option<Arc<str>>>> {
    let size = file.metadata()?.len().min(LARGEST);
    allowance.take(size)?;
    let mut names = vec![None; wanted.addresses().len()];
    let mut matches = 0;
    // The position of the descriptor is not used, because names may be requested twice.
    let reader = ReadFrom { file, offset: 0 };
    for_each_line(reader, LONGEST_LINE, size, |line| {
        let Some((start, size, name)) = parse_line(line) else {
            return;
        };
        let covered = wanted.covered(start, size);
        matches += covered.len();
        if covered.is_empty() || matches > MAX_MATCHES {
            return;
        }
        names[covered].fill(Some(Arc::from(String::from_utf8_lossy(name))));
    })?;
    if matches > MAX_MATCHES {
        return Err(Error::new(ErrorKind::InvalidData, "too many entries"));
    }
    Ok(names)
}

/// Parses a line: `START SIZE NAME`. The name may contain spaces.
fn parse_line(line: &[u8]) -> Option<(u64, u64, &[u8])> {
    let mut fields = line.splitn(3, |&byte| byte == b' ');
    let start = hexadecimal(fields.next()?)?;
    let size = hexadecimal(fields.next()?)?;
    let name = fields.next()?.trim_ascii();
    (!name.is_empty()).then_some((start, size, name))
}

/// Reader of a file with a position of its own.
struct ReadFrom<'f> {
    file: &'f File,
    offset: u64,
}

impl std::io::Read for ReadFrom<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let read = std::os::unix::fs::FileExt::read_at(self.file, buffer, self.offset)?;
        self.offset += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::io::Write;

    fn names(map: &[u8], addresses: &[u64]) -> Vec<Option<String>> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(map).unwrap();
        let found = parse(&file, &Wanted::new(addresses.to_vec()), &Allowance::alone()).unwrap();
        found
            .iter()
            .map(|name| name.as_deref().map(str::to_owned))
            .collect()
    }

    #[test]
    fn the_latest_entry_names_an_address() {
        let map = b"1000 20 LazyCompile:old /a b.js:1\n1010 20 JS:new\n0x2000 10 prefixed\n";
        let found = names(map, &[0xfff, 0x1000, 0x1010, 0x102f, 0x1030, 0x2000]);
        let expected = [
            None,
            Some("LazyCompile:old /a b.js:1"),
            Some("JS:new"),
            Some("JS:new"),
            None,
            Some("prefixed"),
        ];
        assert_eq!(
            found.iter().map(Option::as_deref).collect::<Vec<_>>(),
            expected
        );
    }

    #[test]
    fn garbage_names_nothing() {
        let map = b"\n \nzz 10 a\n1000 10\n1000 10 \n1000 -1 b\n1000 0 c\n\xff\xfe\n1000 10 torn";
        assert_eq!(names(map, &[0x1000]), [None]);
        let endless = b"ffffffffffffffff ffffffffffffffff all\n0 ffffffffffffffff most\n";
        assert_eq!(names(endless, &[5]), [Some("most".into())]);
    }
}
