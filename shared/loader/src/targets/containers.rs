//! Finds running containers by the paths of their cgroups, and reads their names from files of the
//! container runtimes. Asks no daemon.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, open};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::cgroups::{Cgroup, folders_in};

/// Docker's folders. A folder contains `ID/config.v2.json` for each container.
const DOCKER: [&str; 2] = [
    "var/lib/docker/containers",
    "var/snap/docker/common/var-lib-docker/containers",
];
/// Files with the containers of Podman and CRI-O.
const STORAGE: [&str; 2] = [
    "var/lib/containers/storage/overlay-containers/containers.json",
    "var/lib/containers/storage/vfs-containers/containers.json",
];
/// containerd's folder, which contains `NAMESPACE/ID/config.json`.
const CONTAINERD: &str = "run/containerd/io.containerd.runtime.v2.task";
/// CRI-O's folder, which contains `ID/userdata/config.json`.
const CRI_O: &str = "run/containers/storage/overlay-containers";

/// Annotations that contain the name of a container.
const NAMES: [&str; 3] = [
    "io.kubernetes.cri.container-name",
    "io.kubernetes.container.name",
    "nerdctl/name",
];
/// Annotations that contain the name of a container's pod.
const PODS: [&str; 2] = ["io.kubernetes.cri.sandbox-name", "io.kubernetes.pod.name"];

/// Number of digits of a container's ID.
const ID_LENGTH: usize = 64;
/// Maximum bytes that are read of the file of one container, and of a list of containers.
const MAX_OF_ONE: u64 = 4 << 20;
const MAX_OF_LIST: u64 = 64 << 20;
/// Maximum number of containerd's namespaces that are read.
const MAX_NAMESPACES: usize = 256;

/// Running container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Container {
    /// ID in hexadecimal digits; empty if the runtime uses names only.
    pub id: String,
    /// Names, possibly none. A container in a pod also has the name `POD/NAME`.
    pub names: Vec<String>,
    /// Cgroup of the container.
    pub cgroup: Cgroup,
}

impl Container {
    /// Returns the name for messages: the first name, or the start of the ID if there is no name.
    #[must_use]
    pub fn shown(&self) -> &str {
        let first = self.names.first();
        first.map_or_else(|| self.id.get(..12).unwrap_or(&self.id), String::as_str)
    }
}

/// Returns the containers among all cgroups. Their names come from files below `root`, which is `/`
/// except in tests.
#[must_use]
pub fn containers(all: &[Cgroup], root: &Path) -> Vec<Container> {
    let marked: Vec<(Mark, &Cgroup)> = all
        .iter()
        .filter_map(|cgroup| Some((mark(&cgroup.path)?, cgroup)))
        .collect();
    if marked.is_empty() {
        return Vec::new();
    }
    let runtimes = Runtimes::below(root);
    let container = |(mark, cgroup): (Mark, &Cgroup)| {
        let (id, names) = match mark {
            Mark::Id(id) => (id.to_owned(), runtimes.names(id)),
            Mark::Name(name) => (String::new(), vec![name]),
        };
        Container {
            id,
            names,
            cgroup: cgroup.clone(),
        }
    };
    marked.into_iter().map(container).collect()
}

/// Returns the IDs of the containers with this name, ascending. Reads the files of Docker, Podman
/// or CRI-O below `root`, which also describe stopped containers. Other runtimes keep no files for
/// stopped containers.
#[must_use]
pub fn ids_of_name(name: &str, root: &Path) -> Vec<String> {
    let runtimes = Runtimes::below(root);
    let of_docker = DOCKER
        .iter()
        .flat_map(|folder| folders_in(&root.join(folder)));
    let stored = runtimes.stored.keys().cloned();
    let mut ids: Vec<String> = of_docker.chain(stored).collect();
    ids.retain(|id| is_whole_id(id) && runtimes.names(id).iter().any(|own| own == name));
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// Returns whether a text is a complete container ID.
#[must_use]
pub fn is_whole_id(text: &str) -> bool {
    text.len() == ID_LENGTH && is_hexadecimal(text)
}

/// ID or name in the path of a container's cgroup.
#[derive(Debug, PartialEq, Eq)]
enum Mark<'a> {
    Id(&'a str),
    Name(String),
}

fn mark(path: &str) -> Option<Mark<'_>> {
    let (above, name) = path.rsplit_once('/')?;
    // LXC and LXD use this name.
    if let Some(name) = name.strip_prefix("lxc.payload.") {
        return Some(Mark::Name(name.to_owned()));
    }
    let parent = above.rsplit('/').next().unwrap_or_default();
    if matches!(parent, "lxc" | "lxc.payload") {
        return Some(Mark::Name(name.to_owned()));
    }
    // systemd-nspawn uses these names.
    let of_machine = |name: &str| Some(Mark::Name(unescaped(name)));
    if let Some(instance) = name.strip_prefix("systemd-nspawn@") {
        return instance.strip_suffix(".service").and_then(of_machine);
    }
    let scope = name.strip_suffix(".scope");
    if let Some(machine) = scope.and_then(|scope| scope.strip_prefix("machine-")) {
        return of_machine(machine);
    }
    // With systemd, the name is `docker-ID.scope`, `libpod-ID.scope`, `crio-ID.scope` or
    // `cri-containerd-ID.scope`. Without systemd, it is `libpod-ID` or `ID`.
    let (runtime, id) = match scope.unwrap_or(name).rsplit_once('-') {
        Some((runtime, id)) => (runtime, id),
        None => ("", name),
    };
    // The cgroup of a container's monitor (conmon) is no container.
    (is_whole_id(id) && !runtime.ends_with("conmon")).then_some(Mark::Id(id))
}

/// Returns whether a text consists of at least one lower-case hexadecimal digit.
#[must_use]
pub fn is_hexadecimal(text: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    !text.is_empty() && text.bytes().all(is_digit)
}

/// Decodes the escapes of a unit's name: `\x2d` is a dash (systemd.unit(5), "String escaping").
fn unescaped(name: &str) -> String {
    let mut parts = name.split("\\x");
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let digits = part
            .get(..2)
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match digits {
            Some(byte) => {
                bytes.push(byte);
                bytes.extend(&part.as_bytes()[2..]);
            }
            None => {
                bytes.extend(b"\\x");
                bytes.extend(part.as_bytes());
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Docker's description of a container.
#[derive(Deserialize)]
struct DockerContainer {
    /// Name with a leading `/`.
    #[serde(rename = "Name")]
    name: String,
}

/// Entry of a container in the list of Podman or CRI-O.
#[derive(Deserialize)]
struct StoredContainer {
    id: String,
    names: Option<Vec<String>>,
}

/// OCI description of a container (config.json), which containerd and CRI-O write.
#[derive(Deserialize)]
struct OciContainer {
    annotations: Option<HashMap<String, String>>,
}

/// Data from the files of container runtimes.
struct Runtimes<'a> {
    root: &'a Path,
    stored: HashMap<String, Vec<String>>,
    /// Folders of containerd's namespaces.
    namespaces: Vec<PathBuf>,
}

impl Runtimes<'_> {
    fn below(root: &Path) -> Runtimes<'_> {
        let lists = STORAGE.iter().map(|list| root.join(list));
        let lists = lists.filter_map(|list| parse::<Vec<StoredContainer>>(&list, MAX_OF_LIST));
        let stored = lists.flatten().map(|StoredContainer { id, names }| {
            let names = names.unwrap_or_default();
            (id, names)
        });
        let containerd = root.join(CONTAINERD);
        let namespaces = folders_in(&containerd).take(MAX_NAMESPACES);
        Runtimes {
            root,
            stored: stored.collect(),
            namespaces: namespaces.map(|name| containerd.join(name)).collect(),
        }
    }

    /// Returns all names of the container with this ID.
    fn names(&self, id: &str) -> Vec<String> {
        let mut names = self.stored.get(id).cloned().unwrap_or_default();
        for folder in DOCKER {
            let file = self.root.join(folder).join(id).join("config.v2.json");
            if let Some(DockerContainer { name }) = parse(&file, MAX_OF_ONE) {
                names.push(name.trim_start_matches('/').to_owned());
            }
        }
        let of_cri_o = self.root.join(CRI_O).join(id).join("userdata");
        let of_containerd = self.namespaces.iter().map(|folder| folder.join(id));
        for folder in of_containerd.chain([of_cri_o]) {
            let config: Option<OciContainer> = parse(&folder.join("config.json"), MAX_OF_ONE);
            let annotations = config.and_then(|config| config.annotations);
            names.extend(annotated(&annotations.unwrap_or_default()));
        }
        names.retain(|name| !name.is_empty());
        names
    }
}

/// Returns the names of a container from its annotations.
fn annotated(annotations: &HashMap<String, String>) -> Vec<String> {
    let first = |keys: &[&str]| keys.iter().find_map(|key| annotations.get(*key)).cloned();
    let Some(name) = first(&NAMES) else {
        return Vec::new();
    };
    let in_pod = first(&PODS).map(|pod| format!("{pod}/{name}"));
    std::iter::once(name).chain(in_pod).collect()
}

/// Parses a JSON file; `None` if the file is missing, has another form, or is too large.
fn parse<T: DeserializeOwned>(path: &Path, most: u64) -> Option<T> {
    // NONBLOCK keeps `open` from waiting if the path is a FIFO.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = File::from(open(path, flags, Mode::empty()).ok()?);
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() || metadata.len() > most {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes).ok()?;
    serde_json::from_slice(&bytes).ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;

    use super::*;

    fn id(digit: char) -> String {
        digit.to_string().repeat(ID_LENGTH)
    }

    #[test]
    fn every_runtimes_cgroups_are_known() {
        let id = &*id('a');
        for path in [
            format!("/system.slice/docker-{id}.scope"),
            format!("/docker/{id}"),
            format!("/machine.slice/libpod-{id}.scope"),
            format!("/libpod_parent/libpod-{id}"),
            format!("/kubepods.slice/kubepods-pod1.slice/cri-containerd-{id}.scope"),
            format!("/kubepods.slice/kubepods-burstable.slice/crio-{id}.scope"),
            format!("/kubepods/besteffort/podb1/{id}"),
        ] {
            assert_eq!(mark(&path), Some(Mark::Id(id)), "{path}");
        }
        for (path, name) in [
            ("/lxc.payload.web", "web"),
            ("/lxc/web", "web"),
            ("/lxc.payload/web", "web"),
            ("/machine.slice/systemd-nspawn@web.service", "web"),
            ("/machine.slice/machine-my\\x2dweb.scope", "my-web"),
        ] {
            assert_eq!(mark(path), Some(Mark::Name(name.to_owned())), "{path}");
        }
        for path in [
            format!("/machine.slice/libpod-conmon-{id}.scope"),
            format!("/system.slice/crio-conmon-{id}.scope"),
            format!("/machine.slice/libpod-{id}.scope/container"),
            "/system.slice/docker-abc.scope".to_owned(),
            "/system.slice/docker.service".to_owned(),
            "/lxc.monitor.web".to_owned(),
            format!("/docker/{}", id.replace('a', "g")),
            "/".to_owned(),
        ] {
            assert_eq!(mark(&path), None, "{path}");
        }
        assert_eq!(unescaped("a\\x2db\\xzz\\x2"), "a-b\\xzz\\x2");
    }

    /// Makes the files of each runtime, with only the fields that matter.
    fn state() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let write = |path: String, text: String| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write(
            format!("{}/{}/config.v2.json", DOCKER[0], id('a')),
            r#"{"State": {"Running": true}, "Name": "/web", "Path": "nginx"}"#.to_owned(),
        );
        let [b, c] = [id('b'), id('c')];
        write(
            STORAGE[0].to_owned(),
            format!(r#"[{{"id": "{b}", "names": ["db"]}}, {{"id": "{c}", "names": null}}]"#),
        );
        let annotations = |name: &str, pod: &str| {
            format!(r#"{{"ociVersion": "1.0", "annotations": {{{name}: "api", {pod}: "shop"}}}}"#)
        };
        write(
            format!("{CONTAINERD}/k8s.io/{}/config.json", id('d')),
            annotations(
                "\"io.kubernetes.cri.container-name\"",
                "\"io.kubernetes.cri.sandbox-name\"",
            ),
        );
        write(
            format!("{CRI_O}/{}/userdata/config.json", id('e')),
            annotations(
                "\"io.kubernetes.container.name\"",
                "\"io.kubernetes.pod.name\"",
            ),
        );
        write(
            format!("{}/{}/config.v2.json", DOCKER[0], id('f')),
            "no JSON".to_owned(),
        );
        root
    }

    #[test]
    fn containers_are_called_what_their_runtime_calls_them() {
        let root = state();
        let cgroup = |digit| Cgroup {
            path: format!("/docker/{}", id(digit)),
            id: 1,
            below_delegated: false,
        };
        let all: Vec<Cgroup> = "abcdef".chars().map(cgroup).collect();
        let found = containers(&all, root.path());
        let names: Vec<Vec<&str>> = (found.iter())
            .map(|container| container.names.iter().map(String::as_str).collect())
            .collect();
        let in_pod = vec!["api", "shop/api"];
        let expected = [
            vec!["web"],
            vec!["db"],
            vec![],
            in_pod.clone(),
            in_pod,
            vec![],
        ];
        assert_eq!(names, expected);
        assert_eq!(found[0].shown(), "web");
        assert_eq!(found[2].shown(), "cccccccccccc");
        assert!(containers(&[], root.path()).is_empty());
    }

    #[test]
    fn containers_on_file_are_found_by_their_names() {
        let root = state();
        let ids = |name| ids_of_name(name, root.path());
        assert_eq!(ids("web"), [id('a')]);
        assert_eq!(ids("db"), [id('b')]);
        assert!(ids("cache").is_empty());
        // Docker also has folders there that are no containers.
        let other = root.path().join(DOCKER[0]).join("abc");
        fs::create_dir_all(&other).unwrap();
        fs::write(other.join("config.v2.json"), r#"{"Name": "/web"}"#).unwrap();
        assert_eq!(ids("web"), [id('a')]);
    }

    #[test]
    fn only_files_of_some_size_are_read() {
        let root = state();
        let path = root.path().join("large.json");
        fs::write(&path, "[1, 2, 3]").unwrap();
        assert_eq!(parse::<Vec<u32>>(&path, 9), Some(vec![1, 2, 3]));
        assert_eq!(parse::<Vec<u32>>(&path, 8), None);
        fs::write(&path, "[1, 2, 3] ").unwrap();
        assert_eq!(parse::<Vec<u32>>(&path, 9), None);
        let link = root.path().join("link.json");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert_eq!(parse::<Vec<u32>>(&link, 10), None);
        assert_eq!(parse::<Vec<u32>>(root.path(), 9), None);
        let fifo = root.path().join("fifo");
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, Mode::RWXU).unwrap();
        assert_eq!(parse::<Vec<u32>>(&fifo, 9), None);
    }
}
