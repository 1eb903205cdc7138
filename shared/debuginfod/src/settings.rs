//! Servers and limits, from a flag and from the environment variables of elfutils.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ureq::http::Uri;

/// Folder with the servers of the machine, in files that end in `.urls`.
const SERVERS_OF_MACHINE: &str = "/etc/debuginfod";
/// Maximum number of bytes that are read of each of these files.
const LONGEST_LIST: u64 = 64 << 10;
/// Maximum number of servers.
const MOST_SERVERS: usize = 16;
/// Time in which a server must send [`LEAST_BYTES`], unless `DEBUGINFOD_TIMEOUT` is set: the
/// default of elfutils.
const STALL: Duration = Duration::from_secs(90);
/// Number of bytes that a server must send in each [`Settings::stall`]: 100 KiB, as in elfutils.
pub(crate) const LEAST_BYTES: u64 = 100 << 10;
/// Wait after the window, unless `DEBUGINFOD_MAXTIME` is set.
const PATIENCE: Duration = Duration::from_secs(30);
/// Maximum size of a file in bytes, unless `DEBUGINFOD_MAXSIZE` is set. Browsers have debug files
/// of about this size.
const MOST_BYTES: u64 = 1 << 30;

/// Choice of servers by a flag.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// Servers of `DEBUGINFOD_URLS`; none if it is not set.
    #[default]
    Environment,
    /// Servers of `DEBUGINFOD_URLS`, or else those of the machine.
    Configured,
    /// These servers.
    Servers(Vec<String>),
    /// No servers.
    Off,
}

/// Word that chooses no servers.
const OFF: &str = "off";

impl Choice {
    /// Parses the value of a flag: nothing, `off`, or URLs with spaces between them.
    ///
    /// # Errors
    /// A URL is not an http or https URL. The message says which values are accepted.
    pub fn parse(text: &str) -> Result<Choice, String> {
        match text.trim() {
            "" => Ok(Choice::Configured),
            OFF => Ok(Choice::Off),
            text => {
                let urls: Vec<&str> = text.split_whitespace().collect();
                match urls.iter().find(|url| !is_supported(url)) {
                    None => Ok(Choice::Servers(own(urls))),
                    Some(url) => Err(format!(
                        "`{url}` is not a URL of a server: give http:// or https:// URLs, or `{OFF}`"
                    )),
                }
            }
        }
    }

    /// Returns the value of a flag with this choice, which [`Choice::parse`] reads; `None` if the
    /// flag is not given.
    #[must_use]
    pub fn to_text(&self) -> Option<String> {
        match self {
            Choice::Environment => None,
            Choice::Configured => Some(String::new()),
            Choice::Servers(urls) => Some(urls.join(" ")),
            Choice::Off => Some(OFF.to_owned()),
        }
    }
}

/// Environment variables, and the folder with the servers of the machine.
pub struct Environment {
    variable: fn(&str) -> Option<OsString>,
    servers_of_machine: PathBuf,
}

impl Environment {
    /// Returns the environment of this process.
    #[must_use]
    pub fn of_process() -> Environment {
        Environment {
            variable: |name| std::env::var_os(name),
            servers_of_machine: SERVERS_OF_MACHINE.into(),
        }
    }

    /// Returns the path of the cache that elfutils uses in this environment.
    #[must_use]
    pub fn cache(&self) -> PathBuf {
        let variable = |name| (self.variable)(name).filter(|value| !value.is_empty());
        if let Some(path) = variable("DEBUGINFOD_CACHE_PATH") {
            return path.into();
        }
        let home = PathBuf::from(variable("HOME").unwrap_or_else(|| "/".into()));
        let old = home.join(".debuginfod_client_cache");
        if old.exists() {
            return old;
        }
        let caches = variable("XDG_CACHE_HOME").map(PathBuf::from);
        let caches = caches.unwrap_or_else(|| home.join(".cache"));
        caches.join("debuginfod_client")
    }

    fn servers(&self) -> Vec<String> {
        let urls = (self.variable)("DEBUGINFOD_URLS").unwrap_or_default();
        usable(&urls.to_string_lossy())
    }

    /// Returns a whole number above 0; `None` if the variable has no such value.
    fn number(&self, name: &str) -> Option<u64> {
        let value = (self.variable)(name)?;
        let number = value.to_str()?.trim().parse().ok()?;
        (number > 0).then_some(number)
    }

    /// Returns whether the variable is 0, which means that there is no limit.
    fn is_zero(&self, name: &str) -> bool {
        (self.variable)(name).is_some_and(|value| value.to_str().map(str::trim) == Some("0"))
    }
}

/// Servers, and limits of their answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// URLs of the servers, in the order in which they are asked.
    pub(crate) servers: Vec<String>,
    /// Time in which a server must answer, and then send 100 KiB each; `None` for any time.
    pub(crate) stall: Option<Duration>,
    /// Maximum time of a download; `None` for any time.
    pub(crate) longest: Option<Duration>,
    /// Maximum wait for all files after the window.
    pub(crate) patience: Duration,
    /// Maximum size of a file, in bytes.
    pub(crate) most_bytes: u64,
}

impl Settings {
    /// Returns the settings of a choice; `None` if no servers are chosen.
    ///
    /// # Errors
    /// The choice needs servers, and none is known. The message says what to do.
    pub fn new(choice: &Choice, environment: &Environment) -> Result<Option<Settings>, String> {
        let servers = match choice {
            Choice::Off => Vec::new(),
            Choice::Servers(urls) => urls.clone(),
            Choice::Environment => environment.servers(),
            Choice::Configured => {
                let mut servers = environment.servers();
                if servers.is_empty() {
                    servers = servers_in(&environment.servers_of_machine);
                }
                if servers.is_empty() {
                    return Err(format!(
                        "no debuginfod server is known: give --debuginfod=URLS, or set \
                         DEBUGINFOD_URLS; `{}` has none",
                        environment.servers_of_machine.display()
                    ));
                }
                servers
            }
        };
        let longest = environment.number("DEBUGINFOD_MAXTIME");
        let longest = longest.map(Duration::from_secs);
        let stall = environment.number("DEBUGINFOD_TIMEOUT");
        let stall = stall.map_or(STALL, Duration::from_secs);
        let settings = Settings {
            servers: servers.into_iter().take(MOST_SERVERS).collect(),
            stall: (!environment.is_zero("DEBUGINFOD_TIMEOUT")).then_some(stall),
            longest,
            patience: longest.unwrap_or(PATIENCE),
            most_bytes: (environment.number("DEBUGINFOD_MAXSIZE")).unwrap_or(MOST_BYTES),
        };
        Ok((!settings.servers.is_empty()).then_some(settings))
    }
}

/// Returns the servers in the files of a folder that end in `.urls`, in the order of the names.
fn servers_in(folder: &Path) -> Vec<String> {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = files
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "urls"))
        .collect();
    files.sort();
    let servers = files.iter().flat_map(|path| {
        let mut text = String::new();
        let read = File::open(path).and_then(|file| {
            let mut file = file.take(LONGEST_LIST);
            file.read_to_string(&mut text)
        });
        read.map(|_| usable(&text)).unwrap_or_default()
    });
    servers.collect()
}

/// Returns the URLs of http and https in a list. Leaves out what else elfutils accepts there, such
/// as `ima:enforcing`.
fn usable(list: &str) -> Vec<String> {
    own(list
        .split_whitespace()
        .filter(|url| is_supported(url))
        .collect())
}

fn own(urls: Vec<&str>) -> Vec<String> {
    urls.into_iter().map(str::to_owned).collect()
}

fn is_supported(url: &str) -> bool {
    let url = Uri::try_from(url);
    url.is_ok_and(|url| {
        matches!(url.scheme_str(), Some("http" | "https"))
            && url.host().is_some_and(|host| !host.is_empty())
            && url.query().is_none()
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn environment(variable: fn(&str) -> Option<OsString>, folder: &Path) -> Environment {
        Environment {
            variable,
            servers_of_machine: folder.into(),
        }
    }

    #[test]
    fn servers_come_from_the_flag_the_environment_or_the_machine() {
        let folder = tempfile::tempdir().unwrap();
        let set = |name: &str| {
            let urls = "ima:enforcing https://one.example/ ima:ignore ftp://no http://two:8002";
            (name == "DEBUGINFOD_URLS").then(|| urls.into())
        };
        let servers = |choice, variable| {
            let settings = Settings::new(&choice, &environment(variable, folder.path()));
            settings.map(|settings| settings.map_or(Vec::new(), |settings| settings.servers))
        };
        let two = [
            "https://one.example/".to_owned(),
            "http://two:8002".to_owned(),
        ];
        assert_eq!(servers(Choice::Environment, set).unwrap(), two);
        assert_eq!(servers(Choice::Configured, set).unwrap(), two);
        assert!(servers(Choice::Off, set).unwrap().is_empty());
        let given = Choice::parse("http://given").unwrap();
        assert_eq!(servers(given, set).unwrap(), ["http://given"]);

        assert!(servers(Choice::Environment, |_| None).unwrap().is_empty());
        let unknown = servers(Choice::Configured, |_| None).unwrap_err();
        assert!(unknown.contains("give --debuginfod=URLS"), "{unknown}");
        for (name, urls) in [
            ("b.urls", "http://b\n"),
            ("a.urls", "http://a"),
            ("c", "http://c"),
        ] {
            fs::write(folder.path().join(name), urls).unwrap();
        }
        let found = servers(Choice::Configured, |_| None).unwrap();
        assert_eq!(found, ["http://a", "http://b"]);
        assert!(servers(Choice::Environment, |_| None).unwrap().is_empty());
    }

    #[test]
    fn choices_are_read_as_they_are_written() {
        for text in ["", "off", "http://a", "https://a/b http://c:1"] {
            let choice = Choice::parse(text).unwrap();
            assert_eq!(choice.to_text().as_deref(), Some(text));
        }
        assert_eq!(Choice::Environment.to_text(), None);
        for bad in [
            "on",
            "ftp://a",
            "http://a file:///b",
            "http://",
            "http://a?b",
        ] {
            assert!(Choice::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn limits_are_those_of_elfutils() {
        let limits = |variable| {
            let choice = Choice::parse("http://a").unwrap();
            let settings = Settings::new(&choice, &environment(variable, Path::new("/")));
            let settings = settings.unwrap().unwrap();
            let seconds = |time: Option<Duration>| time.map(|time| time.as_secs());
            (
                seconds(settings.stall),
                seconds(settings.longest),
                settings.patience.as_secs(),
                settings.most_bytes,
            )
        };
        assert_eq!(limits(|_| None), (Some(90), None, 30, 1 << 30));
        assert_eq!(limits(|_| Some("0".into())), (None, None, 30, 1 << 30));
        assert_eq!(limits(|_| Some("7".into())), (Some(7), Some(7), 7, 7));
        assert_eq!(limits(|_| Some("x".into())), (Some(90), None, 30, 1 << 30));
    }

    #[test]
    fn the_cache_is_that_of_elfutils() {
        let cache = |variable| environment(variable, Path::new("/")).cache();
        let expected = |path: &str| PathBuf::from(path);
        assert_eq!(cache(|_| None), expected("/.cache/debuginfod_client"));
        let home = |name: &str| (name == "HOME").then(|| "/nowhere".into());
        assert_eq!(cache(home), expected("/nowhere/.cache/debuginfod_client"));
        let caches = |name: &str| (name != "DEBUGINFOD_CACHE_PATH").then(|| "/x".into());
        assert_eq!(cache(caches), expected("/x/debuginfod_client"));
        assert_eq!(cache(|_| Some("/y".into())), expected("/y"));
    }
}
