//! Cgroups chosen on a command line: by path, by unit or by container.

use std::ffi::OsStr;
use std::path::Path;

use loader::{
    AwaitedCgroup, Cgroup, CgroupMount, Container, containers, ids_of_name, is_hexadecimal,
    is_unit_of_system, is_whole_id, unit_name, units,
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
/// Cgroups of one name that an error lists, at most.
const MOST_LISTED: usize = 16;

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
            let all = mount.all().cgroups;
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

    /// Finds the cgroup of a unit of the system's systemd: `nginx` means `nginx.service`. A user can start
    /// units of any name: those count by their paths alone.
    ///
    /// # Errors
    /// No cgroups are mounted, or several are the unit's.
    pub fn of_unit(name: &str) -> Result<Cgroups, String> {
        let mount = mount()?;
        let all = mount.all().cgroups;
        let wanted = unit_name(name);
        let (found, of_users) = unit_among(&all, &wanted)?;
        let missing = || {
            // All services are alike in how they end.
            let stem = |name| Path::new(name).file_stem().and_then(OsStr::to_str);
            let running = units(&all).filter(|unit| is_unit_of_system(unit));
            let running = running.map(Cgroup::name);
            let running = running.map(|name| (stem(name).unwrap_or(name), name));
            let like = like_or_first(stem(&wanted).unwrap_or(name), running);
            match of_users.is_empty() {
                true => none_found("running unit", &mount, &like),
                false => format!(
                    "the system runs no such unit; give the path of a user's with --cgroup: {}",
                    listed(&of_users)
                ),
            }
        };
        Ok(Cgroups {
            word: name.to_owned(),
            missing: found.is_none().then(missing),
            found: found.into_iter().cloned().collect(),
            later: vec![AwaitedCgroup::OfUnit(wanted)],
        })
    }

    /// Finds the cgroup of a container, by its name or the beginning of its ID; where users can make
    /// cgroups, by all of the ID.
    ///
    /// # Errors
    /// Several have such a name or ID.
    pub fn of_container(name: &str) -> Result<Cgroups, String> {
        let mount = mount()?;
        let root = Path::new("/");
        let all = mount.all();
        let running = containers(&all.cgroups, root);
        let found = among(&running, name)?;
        let may_be_of_users = found.is_none_or(|found| found.cgroup.below_delegated);
        if !all.is_whole && is_whole_id(name) && may_be_of_users {
            return Err(
                "users have so many cgroups that not all were looked at; give the path of the container's with --cgroup"
                    .to_owned(),
            );
        }
        let missing = found.is_none().then(|| none_runs(&running, name, &mount));
        Ok(Cgroups {
            word: name.to_owned(),
            found: found.iter().map(|it| it.cgroup.clone()).collect(),
            later: containers_later(found, name, root),
            missing,
        })
    }
}

fn mount() -> Result<CgroupMount, String> {
    CgroupMount::find().map_err(|error| error.to_string())
}

/// The containers of a name that may be started, or started again: the one found, or else
/// those of which the runtimes know below a root folder.
fn containers_later(found: Option<&Container>, name: &str, root: &Path) -> Vec<AwaitedCgroup> {
    if let Some(container) = found {
        return vec![again(container)];
    }
    if is_whole_id(name) {
        return vec![AwaitedCgroup::OfContainer(name.to_owned())];
    }
    let ids = ids_of_name(name, root).into_iter();
    ids.map(AwaitedCgroup::OfContainer).collect()
}

/// What a container is when it is started again.
fn again(container: &Container) -> AwaitedCgroup {
    match container.id.is_empty() || container.cgroup.below_delegated {
        true => AwaitedCgroup::At(container.cgroup.path.clone()),
        false => AwaitedCgroup::OfContainer(container.id.clone()),
    }
}

/// The system's unit of a name, if it runs, and users' units of that name.
fn unit_among<'a>(
    all: &'a [Cgroup],
    name: &str,
) -> Result<(Option<&'a Cgroup>, Vec<&'a Cgroup>), String> {
    let named = units(all).filter(|unit| unit.name() == name);
    let (of_system, of_users): (Vec<_>, Vec<_>) = named.partition(|unit| is_unit_of_system(unit));
    let found = only_one(&of_system, |unit| unit, "units are called so")?;
    Ok((found, of_users))
}

/// The container of a name or ID among those that run. Below a delegated cgroup a user can
/// give one any name, and an ID that begins as another's: there all of the ID is needed, and
/// counts if no container of the system has it.
fn among<'a>(running: &'a [Container], name: &str) -> Result<Option<&'a Container>, String> {
    let (of_users, of_system): (Vec<_>, Vec<_>) =
        (running.iter()).partition(|container| container.cgroup.below_delegated);
    let those = |of: &[&'a Container], are_meant: &dyn Fn(&Container) -> bool| -> Vec<_> {
        of.iter().copied().filter(|it| are_meant(it)).collect()
    };
    let named = those(&of_system, &|container| is_called(container, name));
    let begun = those(&of_system, &|container| begins(&container.id, name));
    let whole = those(&of_users, &|container| {
        is_whole_id(name) && container.id == name
    });
    for (meant, what) in [
        (named, "containers are called so"),
        (begun, "containers have an ID that begins so"),
        (whole, "containers of users have this ID"),
    ] {
        if let Some(container) = only_one(&meant, |container| &container.cgroup, what)? {
            return Ok(Some(container));
        }
    }
    Ok(None)
}

fn is_called(container: &Container, name: &str) -> bool {
    container.names.iter().any(|own| own == name)
}

/// Whether an ID begins with these digits, which are enough.
fn begins(id: &str, digits: &str) -> bool {
    digits.len() >= LEAST_DIGITS && is_hexadecimal(digits) && id.starts_with(digits)
}

/// The one that is meant: what lies in its cgroup is a part of it.
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
                listed(&cgroups)
            ))
        }
    }
}

/// The paths of cgroups. Control characters are left out where errors are written.
fn listed(cgroups: &[&Cgroup]) -> String {
    let paths: Vec<&str> = cgroups.iter().map(|cgroup| &*cgroup.path).collect();
    some(&paths, MOST_LISTED)
}

/// That no container of that name runs, and what does.
fn none_runs(running: &[Container], name: &str, mount: &CgroupMount) -> String {
    let (of_users, of_system): (Vec<&Container>, Vec<&Container>) =
        (running.iter()).partition(|container| container.cgroup.below_delegated);
    let of_users = of_users.into_iter();
    let named = of_users.filter(|it| is_called(it, name) || begins(&it.id, name));
    let named: Vec<&Cgroup> = named.map(|container| &container.cgroup).collect();
    if !named.is_empty() {
        return format!(
            "the system runs no such container; give all of the ID of a user's, or its path with --cgroup: {}",
            listed(&named)
        );
    }
    let names = of_system.iter().flat_map(|container| {
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
    let names: Vec<String> = (names.iter())
        .map(|name| name.escape_debug().to_string())
        .collect();
    some(&names, MOST_TOLD)
}

/// The first of them, and how many more there are.
fn some<T: AsRef<str>>(names: &[T], most: usize) -> String {
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

    /// Path of the container that a name means among these; `None` for none.
    fn found<'a>(running: &'a [Container], name: &str) -> Option<&'a str> {
        let found = among(running, name).unwrap();
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
            // In each other, as Docker in Docker: who measures the outer one has both.
            container("/f", "eeee0000", "nest"),
            container("/f/g", "eeee0000", "nest"),
            container("/f/h", "dddd0000", "inner"),
        ];
        let found = |name: &str| found(&running, name);
        assert_eq!(found("db"), Some("/b"));
        assert_eq!(found("abcd2"), Some("/b"));
        // A name is one, whatever begins so.
        assert_eq!(found("abcd"), Some("/d"));
        assert_eq!(found("shop/api"), Some("/e"));
        assert_eq!(found("nest"), Some("/f"));
        assert_eq!(found("eeee"), Some("/f"));
        assert_eq!(found("inner"), Some("/f/h"));
        let told = among(&running, "web").unwrap_err();
        assert!(told.ends_with("with --cgroup: /a, /c"), "{told}");
        let told = among(&running[..2], "abcd").unwrap_err();
        assert!(told.ends_with("with --cgroup: /a, /b"), "{told}");
        for (name, told) in [
            ("999", "there are"),
            ("webb", "there are web"),
            ("zzz", "there are abcd, db, inner and 3 more"),
            ("abcd3", "there is no such running container"),
        ] {
            assert_eq!(found(name), None, "{name}");
            let missing = none_runs(&running, name, &mount);
            assert!(missing.contains(told), "{name}: {missing}");
        }
        let missing = none_runs(&[], "web", &mount);
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
            assert_eq!(found(&running, name), Some("/a"), "{name}");
        }
        assert_eq!(found(&running, &db), Some("/user/rootless"));
        for name in ["db", "b0b0", &db[..63]] {
            assert_eq!(found(&running, name), None, "{name}");
            let missing = none_runs(&running, name, &mount);
            assert!(missing.ends_with(": /user/rootless"), "{name}: {missing}");
        }
        // A user's name is not offered as one that is like the wanted one.
        let missing = none_runs(&running, "dbb", &mount);
        assert!(missing.ends_with("there are web"), "{missing}");
        let copy = of_user(container("/copy", &web, "web"));
        let told = among(&[forged, copy], &web).unwrap_err();
        assert!(told.ends_with(": /user/forged, /user/copy"), "{told}");
    }

    #[test]
    fn a_users_container_is_awaited_at_its_path() {
        let id = "a0".repeat(32);
        let root = tempfile::tempdir().unwrap();
        let later = |found| containers_later(found, &id, root.path());
        let system = container("/a", &id, "web");
        let by_id = vec![AwaitedCgroup::OfContainer(id.clone())];
        assert_eq!(later(None), by_id);
        assert_eq!(later(Some(&system)), by_id);
        let at = AwaitedCgroup::At("/user/a".to_owned());
        assert_eq!(later(Some(&of_user(system.clone()))), [at]);
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
        assert_eq!(like("nginx", shown.clone()), ["nginx", "ngnix"]);
        assert_eq!(like_or_first("mariadb", shown), ["cron", "nginx", "ngnix"]);
    }
}
