//! Cgroups chosen on a command line: by path, by unit or by container.

use std::ffi::OsStr;
use std::path::Path;

use loader::{
    AwaitedCgroup, Cgroup, CgroupMount, Container, containers, ids_of_name, is_hexadecimal,
    is_whole_id, unit_name, units,
};

use super::processes::{LEAST_LIKENESS, MOST_TOLD, likeness};

/// The cgroups that one word stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cgroups {
    /// The word.
    pub word: String,
    /// Those that there are.
    pub found: Vec<Cgroup>,
    /// Those that may come, or come again; none where nobody can know.
    pub later: Vec<AwaitedCgroup>,
    /// That there is none, if so, and what there is instead.
    pub missing: Option<String>,
}

/// So many digits of a container's ID will do.
const LEAST_DIGITS: usize = 4;

impl Cgroups {
    /// The cgroup of a path, as [`CgroupMount::path`] takes it.
    ///
    /// # Errors
    /// There can be none.
    pub fn at(word: &str) -> Result<Cgroups, String> {
        let mount = mount()?;
        let path = mount.path(Path::new(word));
        let path = path.map_err(|error| error.to_string())?;
        let found = mount.cgroup(&path);
        let missing = || {
            let all = mount.all();
            let name = path.rsplit('/').next();
            let like = like(
                name.unwrap_or(&path),
                all.iter().map(|cgroup| (cgroup.name(), &*cgroup.path)),
            );
            none_found("cgroup", &mount, &like)
        };
        Ok(Cgroups {
            word: word.to_owned(),
            missing: found.is_none().then(missing),
            found: found.into_iter().collect(),
            later: vec![AwaitedCgroup::At(path.clone())],
        })
    }

    /// Those of a systemd unit: `nginx` means `nginx.service`.
    ///
    /// # Errors
    /// No cgroups are mounted.
    pub fn of_unit(name: &str) -> Result<Cgroups, String> {
        let mount = mount()?;
        let all = mount.all();
        let wanted = unit_name(name);
        let found: Vec<Cgroup> = units(&all)
            .filter(|cgroup| cgroup.name() == wanted)
            .cloned()
            .collect();
        let missing = || {
            // All services are alike in how they end.
            let stem = |name| Path::new(name).file_stem().and_then(OsStr::to_str);
            let running = units(&all).map(Cgroup::name);
            let running = running.map(|name| (stem(name).unwrap_or(name), name));
            let like = like_or_first(stem(&wanted).unwrap_or(name), running);
            none_found("running unit", &mount, &like)
        };
        Ok(Cgroups {
            word: name.to_owned(),
            missing: found.is_empty().then(missing),
            found,
            later: vec![AwaitedCgroup::OfUnit(wanted)],
        })
    }

    /// Those of a container, by its name or the beginning of its ID.
    ///
    /// # Errors
    /// Several have such an ID.
    pub fn of_container(name: &str) -> Result<Cgroups, String> {
        let mount = mount()?;
        let root = Path::new("/");
        let running = containers(&mount.all(), root);
        let (found, missing) = match among(&running, name)? {
            found if found.is_empty() => (found, Some(none_runs(&running, name, &mount))),
            found => (found, None),
        };
        let cgroups = found.iter().map(|container| container.cgroup.clone());
        Ok(Cgroups {
            word: name.to_owned(),
            found: cgroups.collect(),
            later: containers_later(&found, name, root),
            missing,
        })
    }
}

fn mount() -> Result<CgroupMount, String> {
    CgroupMount::find().map_err(|error| error.to_string())
}

/// The containers of a name that may be started, or started again: those found, or else
/// those of which the runtimes know below a root folder.
fn containers_later(found: &[&Container], name: &str, root: &Path) -> Vec<AwaitedCgroup> {
    if !found.is_empty() {
        return found.iter().map(|container| again(container)).collect();
    }
    if is_whole_id(name) {
        return vec![AwaitedCgroup::OfContainer(name.to_owned())];
    }
    let ids = ids_of_name(name, root).into_iter();
    ids.map(AwaitedCgroup::OfContainer).collect()
}

/// What a container is when it is started again.
fn again(container: &Container) -> AwaitedCgroup {
    match container.id.is_empty() {
        true => AwaitedCgroup::At(container.cgroup.path.clone()),
        false => AwaitedCgroup::OfContainer(container.id.clone()),
    }
}

/// The containers of a name or ID among those that run.
fn among<'a>(running: &'a [Container], name: &str) -> Result<Vec<&'a Container>, String> {
    let with_name = |container: &&Container| container.names.iter().any(|own| own == name);
    let named: Vec<&Container> = running.iter().filter(with_name).collect();
    if !named.is_empty() {
        return Ok(named);
    }
    let is_id = name.len() >= LEAST_DIGITS && is_hexadecimal(name);
    let with_id = |container: &&Container| is_id && container.id.starts_with(name);
    let mut meant: Vec<&Container> = running.iter().filter(with_id).collect();
    meant.dedup_by_key(|container| &container.id);
    match meant[..] {
        [] | [_] => Ok(meant),
        _ => {
            let shown: Vec<&str> = meant.iter().map(|container| container.shown()).collect();
            Err(format!(
                "several containers have an ID that begins so, {}: give more of it",
                told(&shown)
            ))
        }
    }
}

/// That no container of that name runs, and what does.
fn none_runs(running: &[Container], name: &str, mount: &CgroupMount) -> String {
    let names = running.iter().flat_map(|container| {
        let names = container.names.iter().map(String::as_str);
        let shown = container.shown();
        names.chain([&*container.id]).map(move |name| (name, shown))
    });
    none_found("running container", mount, &like_or_first(name, names))
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
        let found = |name: &str| -> Vec<&str> {
            let found = among(&running, name).unwrap().into_iter();
            found.map(|container| &*container.cgroup.path).collect()
        };
        assert_eq!(found("db"), ["/docker/abcd2222db"]);
        assert_eq!(found("web"), ["/docker/abcd1111web", "/docker/9999aaaaweb"]);
        assert_eq!(found("abcd2"), ["/docker/abcd2222db"]);
        // A name is one, whatever begins so.
        assert_eq!(found("abcd"), ["/docker/abcd"]);
        assert_eq!(found("shop/api"), ["/docker/ffff0000shop/api"]);
        for (name, told) in [
            ("999", "there are"),
            ("webb", "there are web"),
            ("zzz", "there are abcd, db, shop/api and 1 more"),
            ("abcd3", "there is no such running container"),
        ] {
            assert!(found(name).is_empty(), "{name}");
            let missing = none_runs(&running, name, &mount);
            assert!(missing.contains(told), "{name}: {missing}");
        }
        let twice = [container("abcd1111", "a"), container("abcd2222", "b")];
        let error = among(&twice, "abcd").unwrap_err();
        assert!(error.contains("a, b: give more of it"), "{error}");
        let missing = none_runs(&[], "web", &mount);
        assert!(missing.contains("no such running container"), "{missing}");
    }

    #[test]
    fn those_most_alike_come_first_and_once() {
        let names = ["ngnix", "cron", "nginx", "nginx"];
        let shown = names.into_iter().map(|name| (name, name));
        assert_eq!(like("nginx", shown.clone()), ["nginx", "ngnix"]);
        assert_eq!(like_or_first("mariadb", shown), ["cron", "nginx", "ngnix"]);
    }
}
