//! Accounts of users.
//!
//! `getent` knows them, and most systems have it. Elsewhere accounts are the lines of `/etc/passwd`
//! and `/etc/group`. musl's `getent` knows no `initgroups`.

use std::fs;
use std::io::ErrorKind;
use std::time::Duration;

use process::{Answer, getent};

/// Longest wait for an answer of `getent`, which may ask a server.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// The account of a user: a line of passwd(5), and the user's groups.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Account {
    pub(super) uid: u32,
    pub(super) gid: u32,
    /// Group IDs of all groups of the user, `gid` first.
    pub(super) groups: Vec<u32>,
    pub(super) home: String,
    pub(super) shell: String,
}

impl Account {
    /// Looks up an account by the name of its user. Returns `None` if no user has this name.
    ///
    /// # Errors
    /// `getent` fails, or a file cannot be read, with the reason in words.
    pub(super) fn named(name: &str) -> Result<Option<Account>, String> {
        // getent also takes IDs, and several lines make no name.
        if name.is_empty() || name.contains([':', '\n']) || name.parse::<u64>().is_ok() {
            return Ok(None);
        }
        let entry = match ask("passwd", name)? {
            Answer::Entry(entry) => Some(entry),
            Answer::Missing => None,
            Answer::Unable => line_of(&read("/etc/passwd")?, name),
        };
        let Some(entry) = entry else {
            return Ok(None);
        };
        let mut account = Account::parse(&entry)
            .ok_or_else(|| "its entry in the user database is malformed".to_owned())?;
        account.add_groups(match ask("initgroups", name)? {
            Answer::Entry(entry) => parse_initgroups(&entry),
            Answer::Missing => Vec::new(),
            Answer::Unable => groups_with(&read("/etc/group")?, name),
        });
        Ok(Some(account))
    }

    /// Parses a line of passwd(5). Returns `None` if the line is malformed.
    fn parse(line: &str) -> Option<Account> {
        let fields: Vec<&str> = line.trim_end().split(':').collect();
        let [_, _, uid, gid, _, home, shell] = fields[..] else {
            return None;
        };
        let gid = gid.parse().ok()?;
        Some(Account {
            uid: uid.parse().ok()?,
            gid,
            groups: vec![gid],
            home: home.to_owned(),
            // passwd(5): an empty field means this shell.
            shell: if shell.is_empty() { "/bin/sh" } else { shell }.to_owned(),
        })
    }

    fn add_groups(&mut self, groups: Vec<u32>) {
        for group in groups {
            if !self.groups.contains(&group) {
                self.groups.push(group);
            }
        }
    }
}

/// Asks `getent`, and describes a failure in words.
fn ask(database: &str, name: &str) -> Result<Answer, String> {
    getent(database, name, LONGEST_WAIT).map_err(|error| format!("getent: {error}"))
}

/// Reads a file. A file that does not exist is empty.
fn read(path: &str) -> Result<String, String> {
    match fs::read(path) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(format!("{path}: {error}")),
    }
}

/// Returns the line whose first field is `name`.
fn line_of(file: &str, name: &str) -> Option<String> {
    let mut lines = file.lines();
    let line = lines.find(|line| line.split(':').next() == Some(name))?;
    Some(line.to_owned())
}

/// Parses what `getent initgroups` prints: the user's name, and the IDs of its groups.
fn parse_initgroups(line: &str) -> Vec<u32> {
    let words = line.split_whitespace().skip(1);
    words.filter_map(|word| word.parse().ok()).collect()
}

/// Returns the IDs of the groups of group(5) that list `name` as a member.
fn groups_with(file: &str, name: &str) -> Vec<u32> {
    let group = |line: &str| {
        let mut fields = line.split(':').skip(2);
        let id = fields.next()?.parse().ok()?;
        let members = fields.next()?;
        members
            .split(',')
            .any(|member| member == name)
            .then_some(id)
    };
    file.lines().filter_map(group).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/bash\n\
        rooty:x:7:7::/:/bin/false\n\
        www:x:33:34:www:/var/www:\n\
        broken:x:many:34:www:/var/www:/bin/sh\n";
    const GROUP: &str = "root:x:0:\nwww:x:34:www\nadm:x:4:syslog,www\nnear:x:5:www2\nodd\n";

    #[test]
    fn an_account_is_its_lines() {
        let mut account = Account::parse(&line_of(PASSWD, "www").unwrap()).unwrap();
        account.add_groups(groups_with(GROUP, "www"));
        assert_eq!(
            account,
            Account {
                uid: 33,
                gid: 34,
                groups: vec![34, 4],
                home: "/var/www".to_owned(),
                shell: "/bin/sh".to_owned(),
            }
        );
        assert_eq!(line_of(PASSWD, "roo"), None);
        assert_eq!(Account::parse(&line_of(PASSWD, "broken").unwrap()), None);
        assert_eq!(parse_initgroups("www                  34 4 x\n"), [34, 4]);
    }

    #[test]
    fn root_is_found_and_others_are_not() {
        let root = Account::named("root").unwrap().unwrap();
        assert_eq!((root.uid, root.gid, root.groups[0]), (0, 0, 0));
        for name in ["no-such-user-here", "0", "", "root\nroot", "root:x"] {
            assert_eq!(Account::named(name), Ok(None), "{name:?}");
        }
    }
}
