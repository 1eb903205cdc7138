//! Debug files from debuginfod servers, for the run of a tool.

use std::fs::DirBuilder;
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, absolute};
use std::sync::Arc;

use collect::DebugFiles;
use debuginfod::{Cache, Choice, Environment, Fetcher, Settings, Summary};

use crate::error::{say, usage};
use crate::output::Place;
use crate::output::diagnostics::count;

/// Returns a fetcher of debug files; `None` if no servers are chosen. If the cache cannot be used,
/// says so, and returns `None`: names of functions are not worth the failure of a measurement.
///
/// # Errors
/// A usage error if the choice needs servers, and none is known.
pub(crate) fn fetcher(tool: &str, choice: &Choice) -> anyhow::Result<Option<Arc<Fetcher>>> {
    let environment = Environment::of_process();
    let Some(settings) = Settings::new(choice, &environment).map_err(usage)? else {
        return Ok(None);
    };
    let path = environment.cache();
    match open_cache(&path) {
        Ok(cache) => Ok(Some(Arc::new(Fetcher::new(settings, cache)))),
        Err(error) => {
            say(format_args!(
                "{tool}: no debug files are fetched, because the cache `{}` cannot be used: \
                 {error}; set DEBUGINFOD_CACHE_PATH to a folder of your own",
                path.display()
            ));
            Ok(None)
        }
    }
}

/// Returns the choice for the tools that `tool` runs. If the cache cannot be used, says so, and
/// returns the choice of no servers.
///
/// # Errors
/// A usage error if the choice needs servers, and none is known.
pub fn check_debuginfod(tool: &str, choice: &Choice) -> anyhow::Result<Choice> {
    Ok(match fetcher(tool, choice)? {
        Some(_) => choice.clone(),
        None => Choice::Off,
    })
}

/// Prints that the tool waits, if debug files have not arrived yet.
pub(crate) fn announce_wait(tool: &str, fetcher: &Fetcher) {
    let pending = fetcher.pending() as u64;
    if pending > 0 {
        say(format_args!(
            "{tool}: waiting for {}, at most {} s",
            count(pending, "debug file"),
            fetcher.patience().as_secs()
        ));
    }
}

/// Returns a line about what was fetched and what was not; `None` if there is nothing to say.
pub(crate) fn describe(summary: &Summary) -> Option<String> {
    let Summary {
        cached: _,
        fetched,
        bytes,
        absent,
        refused,
        failed,
        late,
        notes: _,
    } = *summary;
    let megabytes = bytes as f64 / 1e6;
    let parts = [
        (fetched, format!("fetched ({megabytes:.1} MB)")),
        (absent, "that no server has".to_owned()),
        (refused, "refused".to_owned()),
        (failed, "that could not be fetched".to_owned()),
        (
            late,
            "that did not arrive in time (DEBUGINFOD_MAXTIME sets the wait)".to_owned(),
        ),
    ];
    let parts = parts.into_iter().filter(|(number, _)| *number > 0);
    let parts: Vec<String> = parts
        .map(|(number, what)| format!("{} {what}", count(number, "debug file")))
        .collect();
    (!parts.is_empty()).then(|| format!("debuginfod: {}", parts.join(", ")))
}

/// Opens the cache. Makes missing folders, except in folders of other users.
fn open_cache(path: &Path) -> io::Result<Cache> {
    let path = absolute(path)?;
    let mut folders: Vec<&Path> = path.ancestors().collect();
    folders.reverse();
    for folder in folders {
        let place = Place::find(folder)?;
        if place.exists() {
            continue;
        }
        place.check_folder()?;
        match DirBuilder::new().mode(0o700).create(place.path()) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => made?,
        }
    }
    Cache::new(Place::find(&path)?.open_folder()?)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs::{Permissions, create_dir, metadata, set_permissions};
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use super::*;

    #[test]
    fn what_was_fetched_and_what_was_not_is_one_line() {
        assert_eq!(describe(&Summary::default()), None);
        let cached = Summary {
            cached: 3,
            ..Summary::default()
        };
        assert_eq!(describe(&cached), None);
        let all = Summary {
            fetched: 1,
            bytes: 12_345_678,
            absent: 2,
            refused: 3,
            failed: 4,
            late: 5,
            ..cached
        };
        let expected = "debuginfod: 1 debug file fetched (12.3 MB), 2 debug files that no server has, \
            3 debug files refused, 4 debug files that could not be fetched, \
            5 debug files that did not arrive in time (DEBUGINFOD_MAXTIME sets the wait)";
        assert_eq!(describe(&all).as_deref(), Some(expected));
    }

    #[test]
    fn a_cache_is_made_but_not_in_a_folder_of_another_user() {
        const OTHER: u32 = 12345;
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        open_cache(&path("new/cache")).unwrap();
        let made = metadata(path("new")).unwrap().permissions().mode();
        assert_eq!(made & 0o777, 0o700);
        open_cache(&path("new/cache")).unwrap();

        create_dir(path("theirs")).unwrap();
        symlink(path("new"), path("link")).unwrap();
        open_cache(&path("link/cache")).unwrap();
        chown(path("theirs"), Some(OTHER), None).unwrap();
        rustix::fs::chownat(
            rustix::fs::CWD,
            path("link"),
            Some(rustix::process::Uid::from_raw(OTHER)),
            None,
            rustix::fs::AtFlags::SYMLINK_NOFOLLOW,
        )
        .unwrap();
        for refused in ["theirs", "theirs/cache", "link/cache"] {
            let error = open_cache(&path(refused)).unwrap_err().to_string();
            assert!(error.contains("another user, whose ID is 12345"), "{error}");
        }
        assert!(!path("theirs/cache").exists());

        set_permissions(path("new/cache"), Permissions::from_mode(0o770)).unwrap();
        let error = open_cache(&path("new/cache")).unwrap_err().to_string();
        assert_eq!(error, "other users may write to it");
    }
}
