//! Cgroups chosen on a command line: by path, by unit or by container.

use std::ffi::OsStr;
use std::path::Path;

use loader::{Cgroup, CgroupMount, Container, containers, is_hexadecimal, unit_name, units};

use super::processes::{LEAST_LIKENESS, MOST_TOLD, likeness};

/// The cgroups that one word stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cgroups(pub Vec<Cgroup>);

/// So many digits of a container's ID will do.
const LEAST_DIGITS: usize = 4;

impl Cgroups {
    /// The cgroup of a path, as [`CgroupMount::cgroup`] takes it.
    ///
    /// # Errors
    /// There is none.
    pub fn at(path: &str) -> Result<Cgroups, String> {
        let mount = mount()?;
        let found = mount.cgroup(Path::new(path));
        match found.map_err(|error| error.to_string())? {
            Some(cgroup) => Ok(Cgroups(vec![cgroup])),
            None => {
                let all = mount.all();
                let name = path.trim_end_matches('/').rsplit('/').next();
                let like = like(
                    name.unwrap_or(path),
                    all.iter().map(|cgroup| (cgroup.name(), &*cgroup.path)),
                );
                Err(none_found("cgroup", &mount, &like))
            }
        }
    }

    /// Those of a systemd unit: `nginx` means `nginx.service`.
    ///
    /// # Errors
    /// None of this name runs.
    pub fn of_unit(name: &str) -> Result<Cgroups, String> {
        let mount = mount()?;
        let all = mount.all();
        let wanted = unit_name(name);
        let found: Vec<Cgroup> = units(&all)
            .filter(|cgroup| cgroup.name() == wanted)
            .cloned()
            .collect();
        match found.is_empty() {
            false => Ok(Cgroups(found)),
            true => {
                // All services are alike in how they end.
                let stem = |name| Path::new(name).file_stem().and_then(OsStr::to_str);
                let running = units(&all).map(Cgroup::name);
                let running = running.map(|name| (stem(name).unwrap_or(name), name));
                let like = like_or_first(stem(&wanted).unwrap_or(name), running);
                Err(none_found("running unit", &mount, &like))
            }
        }
    }

    /// Those of a container, by its name or the beginning of its ID.
    ///
    /// # Errors
    /// None runs that is called so, or several have such an ID.
    pub fn of_container(name: &str) -> Result<Cgroups, String> {
        let mount = mount()?;
        among(&containers(&mount.all(), Path::new("/")), name, &mount)
    }
}

fn mount() -> Result<CgroupMount, String> {
    CgroupMount::find().map_err(|error| error.to_string())
}

/// The container of a name or ID among those that run.
fn among(running: &[Container], name: &str, mount: &CgroupMount) -> Result<Cgroups, String> {
    let cgroups = |chosen: &[&Container]| {
        let cgroups = chosen.iter().map(|container| container.cgroup.clone());
        Ok(Cgroups(cgroups.collect()))
    };
    let with_name = |container: &&Container| container.names.iter().any(|own| own == name);
    let named: Vec<&Container> = running.iter().filter(with_name).collect();
    if !named.is_empty() {
        return cgroups(&named);
    }
    let is_id = name.len() >= LEAST_DIGITS && is_hexadecimal(name);
    let with_id = |container: &&Container| is_id && container.id.starts_with(name);
    let mut meant: Vec<&Container> = running.iter().filter(with_id).collect();
    meant.dedup_by_key(|container| &container.id);
    match meant[..] {
        [_] => cgroups(&meant),
        [] => {
            let names = running.iter().flat_map(|container| {
                let names = container.names.iter().map(String::as_str);
                let shown = container.shown();
                names.chain([&*container.id]).map(move |name| (name, shown))
            });
            Err(none_found(
                "running container",
                mount,
                &like_or_first(name, names),
            ))
        }
        _ => {
            let shown: Vec<&str> = meant.iter().map(|container| container.shown()).collect();
            Err(format!(
                "several containers have an ID that begins so, {}: give more of it",
                told(&shown)
            ))
        }
    }
}

/// What to show of those whose name is most like the wanted one.
fn like<'a>(wanted: &str, names: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<&'a str> {
    let mut like: Vec<(f64, &str)> = names
        .map(|(name, shown)| (likeness(wanted, name), shown))
        .filter(|(likeness, _)| *likeness >= LEAST_LIKENESS)
        .collect();
    like.sort_by(|one, other| other.0.total_cmp(&one.0).then_with(|| one.1.cmp(other.1)));
    let mut shown: Vec<&str> = like.into_iter().map(|(_, shown)| shown).collect();
    shown.dedup();
    shown
}

/// The same, or where there are none some of all.
fn like_or_first<'a>(
    wanted: &str,
    names: impl Iterator<Item = (&'a str, &'a str)> + Clone,
) -> Vec<&'a str> {
    let like = like(wanted, names.clone());
    match like.is_empty() {
        false => like,
        true => {
            let mut shown: Vec<&str> = names.map(|(_, shown)| shown).collect();
            shown.sort_unstable();
            shown.dedup();
            shown
        }
    }
}

/// That there is none, and what there is.
fn none_found(what: &str, mount: &CgroupMount, others: &[&str]) -> String {
    let folder = mount.folder().display();
    match others.is_empty() {
        true => format!(
            "there is no such {what}, nor any that is called nearly so; `find {folder} -type d` lists all cgroups"
        ),
        false => format!("there is no such {what}; there are {}", told(others)),
    }
}

/// Some of them.
fn told(names: &[&str]) -> String {
    let shown = names.iter().take(MOST_TOLD).map(|name| name.escape_debug());
    let shown = shown.map(|name| name.to_string()).collect::<Vec<_>>();
    match names.len().saturating_sub(MOST_TOLD) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn container(id: &str, name: &str) -> Container {
        Container {
            id: id.to_owned(),
            names: vec![name.to_owned()],
            cgroup: Cgroup {
                path: format!("/docker/{id}{name}"),
                id: 1,
            },
        }
    }

    #[test]
    fn a_container_is_meant_by_its_name_or_the_start_of_its_id() {
        let mount = mount().unwrap();
        let running = [
            container("abcd1111", "web"),
            container("abcd2222", "db"),
            container("9999aaaa", "web"),
            container("", "abcd"),
            container("ffff0000", "shop/api"),
        ];
        let found = |name: &str| {
            let found = among(&running, name, &mount);
            found.map(|Cgroups(found)| found.into_iter().map(|cgroup| cgroup.path).collect())
        };
        let paths = |paths: &[&str]| -> Result<Vec<String>, String> {
            Ok(paths.iter().map(|path| (*path).to_owned()).collect())
        };
        assert_eq!(found("db"), paths(&["/docker/abcd2222db"]));
        assert_eq!(
            found("web"),
            paths(&["/docker/abcd1111web", "/docker/9999aaaaweb"])
        );
        assert_eq!(found("abcd2"), paths(&["/docker/abcd2222db"]));
        // A name is one, whatever begins so.
        assert_eq!(found("abcd"), paths(&["/docker/abcd"]));
        assert_eq!(found("shop/api"), paths(&["/docker/ffff0000shop/api"]));
        for (name, told) in [
            ("999", "there are"),
            ("webb", "there are web"),
            ("zzz", "there are abcd, db, shop/api and 1 more"),
            ("abcd3", "there is no such running container"),
        ] {
            let error = found(name).unwrap_err();
            assert!(error.contains(told), "{name}: {error}");
        }
        let twice = [container("abcd1111", "a"), container("abcd2222", "b")];
        let error = among(&twice, "abcd", &mount).unwrap_err();
        assert!(error.contains("a, b: give more of it"), "{error}");
        let error = among(&[], "web", &mount).unwrap_err();
        assert!(error.contains("no such running container"), "{error}");
    }

    #[test]
    fn those_most_alike_come_first_and_once() {
        let names = ["ngnix", "cron", "nginx", "nginx"];
        let shown = names.into_iter().map(|name| (name, name));
        assert_eq!(like("nginx", shown.clone()), ["nginx", "ngnix"]);
        assert_eq!(like_or_first("mariadb", shown), ["cron", "nginx", "ngnix"]);
    }

    #[test]
    fn paths_outside_of_the_mount_are_refused() {
        let root = Cgroups::at("/").unwrap();
        assert_eq!(root.0.len(), 1);
        let told = |path| Cgroups::at(path).unwrap_err();
        assert!(told("/proc").contains("outside"), "{}", told("/proc"));
        assert!(told("/no such cgroup").contains("no such cgroup"));
        let unit = Cgroups::of_unit("no such unit at all").unwrap_err();
        assert!(unit.contains("no such running unit"), "{unit}");
    }
}
