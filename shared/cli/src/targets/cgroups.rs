//! Cgroups chosen on a command line by path, unit or container.

use std::ffi::OsStr;
use std::path::Path;

use loader::{
    AwaitedCgroup, Cgroup, CgroupMount, Container, containers, ids_of_name, is_hexadecimal,
    is_unit_of_system, is_whole_id, unit_name, units,
};

use super::processes::{LEAST_SIMILARITY, MAX_SIMILAR, similarity};

/// The cgroups that one word of the command line names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cgroups {
    /// Word on the command line.
    pub word: String,
    /// Cgroups that exist now.
    pub found: Vec<Cgroup>,
    /// Cgroups that may be created, or created anew; none if their paths or IDs are not known.
    pub awaited: Vec<AwaitedCgroup>,
    /// Error text with similar names, if no cgroup exists.
    pub missing: Option<String>,
}

/// Minimum digits that identify a container by its ID.
const LEAST_DIGITS: usize = 4;
/// Maximum cgroups of one name that an error lists.
const MAX_LISTED: usize = 16;

impl Cgroups {
    /// Finds the cgroup of a path, in any form that [`CgroupMount::path`] accepts.
    ///
    /// # Errors
    /// No cgroups are mounted, or no cgroup can have this path.
    pub fn from_path(word: &str) -> Result<Cgroups, String> {
        let mount = mount()?;
        let path = mount.path(Path::new(word));
        let path = path.map_err(|error| error.to_string())?;
        let found = mount.cgroup(&path);
        let missing = || {
            let all = mount.all().cgroups;
            let name = path.rsplit('/').next();
            let similar = similar(
                name.unwrap_or(&path),
                all.iter().map(|cgroup| (cgroup.name(), &*cgroup.path)),
            );
            describe_missing("cgroup", &mount, &similar)
        };
        Ok(Cgroups {
            word: word.to_owned(),
            missing: found.is_none().then(missing),
            found: found.into_iter().collect(),
            awaited: vec![AwaitedCgroup::At(path.clone())],
        })
    }

    /// Finds the cgroup of a unit of the system's systemd: `nginx` means `nginx.service`. Users can
    /// start units of any name. Only [`Cgroups::from_path`] finds the units of users.
    ///
    /// # Errors
    /// No cgroups are mounted, or several units of the system have this name.
    pub fn from_unit(name: &str) -> Result<Cgroups, String> {
        let mount = mount()?;
        let all = mount.all().cgroups;
        let wanted = unit_name(name);
        let (found, of_users) = unit_among(&all, &wanted)?;
        let missing = || {
            // All services share the ending, which would make every name similar.
            let stem = |name| Path::new(name).file_stem().and_then(OsStr::to_str);
            let running = units(&all).filter(|unit| is_unit_of_system(unit));
            let running = running.map(Cgroup::name);
            let running = running.map(|name| (stem(name).unwrap_or(name), name));
            let similar = similar_or_all(stem(&wanted).unwrap_or(name), running);
            if of_users.is_empty() {
                describe_missing("running unit", &mount, &similar)
            } else {
                format!(
                    "only users run a unit of this name; give the path of one with --cgroup: {}",
                    list_paths(&of_users)
                )
            }
        };
        Ok(Cgroups {
            word: name.to_owned(),
            missing: found.is_none().then(missing),
            found: found.into_iter().cloned().collect(),
            awaited: vec![AwaitedCgroup::OfUnit(wanted)],
        })
    }

    /// Finds the cgroup of a container by its name or the first digits of its ID. A container
    /// below a cgroup that is delegated to a user is found by its whole ID only.
    ///
    /// # Errors
    /// No cgroups are mounted, several containers have this name or ID, or users have too many
    /// cgroups to search all.
    pub fn from_container(name: &str) -> Result<Cgroups, String> {
        let mount = mount()?;
        let root = Path::new("/");
        let all = mount.all();
        let running = containers(&all.cgroups, root);
        let found = find_among(&running, name)?;
        let may_be_of_users = found.is_none_or(|found| found.cgroup.below_delegated);
        if !all.is_whole && is_whole_id(name) && may_be_of_users {
            return Err(
                "users have too many cgroups to search all; give the path of the container's cgroup with --cgroup"
                    .to_owned(),
            );
        }
        let missing = (found.is_none()).then(|| describe_no_container(&running, name, &mount));
        Ok(Cgroups {
            word: name.to_owned(),
            found: found.iter().map(|it| it.cgroup.clone()).collect(),
            awaited: awaited_containers(found, name, root),
            missing,
        })
    }
}

fn mount() -> Result<CgroupMount, String> {
    CgroupMount::find().map_err(|error| error.to_string())
}

/// Returns the containers of a name that may start or start again. The result is `found`, or else
/// the containers in the runtimes' files below the folder `root`.
fn awaited_containers(found: Option<&Container>, name: &str, root: &Path) -> Vec<AwaitedCgroup> {
    if let Some(container) = found {
        return vec![awaited_restart(container)];
    }
    if is_whole_id(name) {
        return vec![AwaitedCgroup::OfContainer(name.to_owned())];
    }
    let ids = ids_of_name(name, root).into_iter();
    ids.map(AwaitedCgroup::OfContainer).collect()
}

/// Returns the cgroup that a container has when it starts again.
fn awaited_restart(container: &Container) -> AwaitedCgroup {
    if container.id.is_empty() || container.cgroup.below_delegated {
        AwaitedCgroup::At(container.cgroup.path.clone())
    } else {
        AwaitedCgroup::OfContainer(container.id.clone())
    }
}

/// Returns the system's unit of a name, if it runs, and the users' units of that name.
fn unit_among<'a>(
    all: &'a [Cgroup],
    name: &str,
) -> Result<(Option<&'a Cgroup>, Vec<&'a Cgroup>), String> {
    let named = units(all).filter(|unit| unit.name() == name);
    let (of_system, of_users): (Vec<_>, Vec<_>) = named.partition(|unit| is_unit_of_system(unit));
    let found = only_one(&of_system, |unit| unit, "units have this name")?;
    Ok((found, of_users))
}

/// Finds a container by name or ID among the running ones.
///
/// Below a delegated cgroup a user can give a container any name, and an ID with the same first
/// digits as another's. There only the whole ID counts, and only if no container of the system
/// has it.
fn find_among<'a>(running: &'a [Container], name: &str) -> Result<Option<&'a Container>, String> {
    let (of_users, of_system): (Vec<_>, Vec<_>) =
        (running.iter()).partition(|container| container.cgroup.below_delegated);
    let select = |from: &[&'a Container], is_meant: &dyn Fn(&Container) -> bool| -> Vec<_> {
        (from.iter().copied())
            .filter(|container| is_meant(container))
            .collect()
    };
    let by_name = select(&of_system, &|container| has_name(container, name));
    let by_prefix = select(&of_system, &|container| has_prefix(&container.id, name));
    let by_id = select(&of_users, &|container| {
        is_whole_id(name) && container.id == name
    });
    for (found, what) in [
        (by_name, "containers have this name"),
        (
            by_prefix,
            "containers have an ID that begins with these digits",
        ),
        (by_id, "containers of users have this ID"),
    ] {
        if let Some(container) = only_one(&found, |container| &container.cgroup, what)? {
            return Ok(Some(container));
        }
    }
    Ok(None)
}

fn has_name(container: &Container, name: &str) -> bool {
    container.names.iter().any(|own| own == name)
}

/// Returns whether an ID begins with these digits, and they are enough to identify it.
fn has_prefix(id: &str, digits: &str) -> bool {
    digits.len() >= LEAST_DIGITS && is_hexadecimal(digits) && id.starts_with(digits)
}

/// Returns the only match. A match does not count if its cgroup lies inside the cgroup of another
/// match.
///
/// # Errors
/// Several matches remain.
fn only_one<'a, T>(
    meant: &[&'a T],
    cgroup: impl Fn(&'a T) -> &'a Cgroup,
    what: &str,
) -> Result<Option<&'a T>, String> {
    let is_inside = |inner: &Cgroup, outer: &Cgroup| {
        inner != outer && Path::new(&inner.path).starts_with(&outer.path)
    };
    let is_outermost =
        |one: &&'a T| !(meant.iter()).any(|other| is_inside(cgroup(one), cgroup(other)));
    let outermost: Vec<&T> = meant.iter().copied().filter(is_outermost).collect();
    match outermost[..] {
        [] => Ok(None),
        [one] => Ok(Some(one)),
        _ => {
            let cgroups: Vec<&Cgroup> = outermost.iter().map(|it| cgroup(it)).collect();
            Err(format!(
                "several {what}; give the path of one with --cgroup: {}",
                list_paths(&cgroups)
            ))
        }
    }
}

/// Lists the paths of cgroups. `say` replaces control characters when it prints the error.
fn list_paths(cgroups: &[&Cgroup]) -> String {
    let paths: Vec<&str> = cgroups.iter().map(|cgroup| &*cgroup.path).collect();
    list_first(&paths, MAX_LISTED)
}

/// Returns the error for a name that no running container has, with similar names.
fn describe_no_container(running: &[Container], name: &str, mount: &CgroupMount) -> String {
    let (of_users, of_system): (Vec<&Container>, Vec<&Container>) =
        (running.iter()).partition(|container| container.cgroup.below_delegated);
    let of_users = of_users.into_iter();
    let named = of_users.filter(|it| has_name(it, name) || has_prefix(&it.id, name));
    let named: Vec<&Cgroup> = named.map(|container| &container.cgroup).collect();
    if !named.is_empty() {
        return format!(
            "only users run a container of this name; give its whole ID, or its path with --cgroup: {}",
            list_paths(&named)
        );
    }
    let names = of_system.iter().flat_map(|container| {
        let names = container.names.iter().map(String::as_str);
        let shown = container.shown();
        names.chain([&*container.id]).map(move |name| (name, shown))
    });
    describe_missing("running container", mount, &similar_or_all(name, names))
}

/// Returns the display texts of names similar to the wanted one, the most similar first. Each item
/// of `names` is a name and its display text.
fn similar<'a>(wanted: &str, names: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<&'a str> {
    let mut similar: Vec<(f64, &str)> = names
        .map(|(name, shown)| (similarity(wanted, name), shown))
        .filter(|(similarity, _)| *similarity >= LEAST_SIMILARITY)
        .collect();
    similar.sort_by(|one, other| other.0.total_cmp(&one.0).then_with(|| one.1.cmp(other.1)));
    let mut shown: Vec<&str> = similar.into_iter().map(|(_, shown)| shown).collect();
    shown.dedup();
    shown
}

/// Returns the display texts of similar names, or all display texts in order if no name is similar.
fn similar_or_all<'a>(
    wanted: &str,
    names: impl Iterator<Item = (&'a str, &'a str)> + Clone,
) -> Vec<&'a str> {
    let similar = similar(wanted, names.clone());
    if !similar.is_empty() {
        return similar;
    }
    let mut shown: Vec<&str> = names.map(|(_, shown)| shown).collect();
    shown.sort_unstable();
    shown.dedup();
    shown
}

/// Returns the error for a cgroup, unit or container that does not exist. The error lists `others`,
/// which exist.
fn describe_missing(what: &str, mount: &CgroupMount, others: &[&str]) -> String {
    let folder = mount.folder().display();
    if others.is_empty() {
        return format!(
            "there is no such {what}, nor one with a similar name; `find {folder} -type d` lists all cgroups"
        );
    }
    let names: Vec<String> = (others.iter())
        .map(|name| name.escape_debug().to_string())
        .collect();
    let names = list_first(&names, MAX_SIMILAR);
    format!("there is no such {what}; there are {names}")
}

/// Lists the first names, and the number of the others.
fn list_first<T: AsRef<str>>(names: &[T], most: usize) -> String {
    let shown: Vec<&str> = names.iter().take(most).map(AsRef::as_ref).collect();
    let shown = shown.join(", ");
    match names.len().saturating_sub(most) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn cgroup(path: &str) -> Cgroup {
        Cgroup {
            path: path.to_owned(),
            id: 1,
            below_delegated: false,
        }
    }

    fn container(path: &str, id: &str, name: &str) -> Container {
        Container {
            id: id.to_owned(),
            names: vec![name.to_owned()],
            cgroup: cgroup(path),
        }
    }

    fn of_user(container: Container) -> Container {
        let cgroup = Cgroup {
            path: format!("/user{}", container.cgroup.path),
            below_delegated: true,
            ..container.cgroup
        };
        Container {
            cgroup,
            ..container
        }
    }

    /// Returns the cgroup path of the container that a name means; `None` if it means none.
    fn path_of<'a>(running: &'a [Container], name: &str) -> Option<&'a str> {
        let found = find_among(running, name).unwrap();
        found.map(|container| &*container.cgroup.path)
    }

    #[test]
    fn a_container_is_meant_by_its_name_or_the_start_of_its_id() {
        let mount = mount().unwrap();
        let running = [
            container("/a", "abcd1111", "web"),
            container("/b", "abcd2222", "db"),
            container("/c", "9999aaaa", "web"),
            container("/d", "", "abcd"),
            container("/e", "ffff0000", "shop/api"),
            // The containers are nested, as in Docker in Docker. The outer cgroup includes the
            // inner one.
            container("/f", "eeee0000", "nest"),
            container("/f/g", "eeee0000", "nest"),
            container("/f/h", "dddd0000", "inner"),
        ];
        let found = |name: &str| path_of(&running, name);
        assert_eq!(found("db"), Some("/b"));
        assert_eq!(found("abcd2"), Some("/b"));
        // A name wins over the first digits of an ID.
        assert_eq!(found("abcd"), Some("/d"));
        assert_eq!(found("shop/api"), Some("/e"));
        assert_eq!(found("nest"), Some("/f"));
        assert_eq!(found("eeee"), Some("/f"));
        assert_eq!(found("inner"), Some("/f/h"));
        let told = find_among(&running, "web").unwrap_err();
        assert!(told.ends_with("with --cgroup: /a, /c"), "{told}");
        let told = find_among(&running[..2], "abcd").unwrap_err();
        assert!(told.ends_with("with --cgroup: /a, /b"), "{told}");
        for (name, told) in [
            ("999", "there are"),
            ("webb", "there are web"),
            ("zzz", "there are abcd, db, inner and 3 more"),
            ("abcd3", "there is no such running container"),
        ] {
            assert_eq!(found(name), None, "{name}");
            let missing = describe_no_container(&running, name, &mount);
            assert!(missing.contains(told), "{name}: {missing}");
        }
        let missing = describe_no_container(&[], "web", &mount);
        assert!(missing.contains("no such running container"), "{missing}");
    }

    #[test]
    fn a_users_container_is_meant_by_all_of_its_id_alone() {
        let mount = mount().unwrap();
        let [web, db] = ["a0", "b0"].map(|digits| digits.repeat(32));
        let forged = of_user(container("/forged", &web, "web"));
        let rootless = of_user(container("/rootless", &db, "db"));
        let running = [forged.clone(), container("/a", &web, "web"), rootless];
        for name in ["web", "a0a0", &web] {
            assert_eq!(path_of(&running, name), Some("/a"), "{name}");
        }
        assert_eq!(path_of(&running, &db), Some("/user/rootless"));
        for name in ["db", "b0b0", &db[..63]] {
            assert_eq!(path_of(&running, name), None, "{name}");
            let missing = describe_no_container(&running, name, &mount);
            assert!(missing.ends_with(": /user/rootless"), "{name}: {missing}");
        }
        // The error does not offer names of users' containers.
        let missing = describe_no_container(&running, "dbb", &mount);
        assert!(missing.ends_with("there are web"), "{missing}");
        let copy = of_user(container("/copy", &web, "web"));
        let told = find_among(&[forged, copy], &web).unwrap_err();
        assert!(told.ends_with(": /user/forged, /user/copy"), "{told}");
    }

    #[test]
    fn a_users_container_is_awaited_at_its_path() {
        let id = "a0".repeat(32);
        let root = tempfile::tempdir().unwrap();
        let awaited = |found| awaited_containers(found, &id, root.path());
        let system = container("/a", &id, "web");
        let by_id = vec![AwaitedCgroup::OfContainer(id.clone())];
        assert_eq!(awaited(None), by_id);
        assert_eq!(awaited(Some(&system)), by_id);
        let at = AwaitedCgroup::At("/user/a".to_owned());
        assert_eq!(awaited(Some(&of_user(system.clone()))), [at]);
    }

    #[test]
    fn a_unit_of_the_system_is_meant_by_its_name() {
        let of_user = |path: &str| Cgroup {
            below_delegated: true,
            ..cgroup(path)
        };
        let all = [
            of_user("/user.slice/user-1.slice/user@1.service/app.slice/a.service"),
            of_user("/user.slice/user-1.slice/user@1.service/b.service"),
            cgroup("/system.slice/a.service"),
            cgroup("/x.slice/c.service"),
            cgroup("/y.slice/c.service"),
        ];
        let (found, of_users) = unit_among(&all, "a.service").unwrap();
        assert_eq!((found, of_users), (Some(&all[2]), vec![&all[0]]));
        let (found, of_users) = unit_among(&all, "b.service").unwrap();
        assert_eq!((found, of_users), (None, vec![&all[1]]));
        let told = unit_among(&all, "c.service").unwrap_err();
        assert!(
            told.ends_with(": /x.slice/c.service, /y.slice/c.service"),
            "{told}"
        );
    }

    #[test]
    fn those_most_alike_come_first_and_once() {
        let names = ["ngnix", "cron", "nginx", "nginx"];
        let shown = names.into_iter().map(|name| (name, name));
        assert_eq!(similar("nginx", shown.clone()), ["nginx", "ngnix"]);
        assert_eq!(similar_or_all("mariadb", shown), ["cron", "nginx", "ngnix"]);
    }
}
