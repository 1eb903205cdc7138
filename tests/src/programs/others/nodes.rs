//! Builds of Node.js that tests measure.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use super::pythons::ALL_VERSIONS;
use super::versions::{Version, all_fetched};

/// Build of Node.js.
#[derive(Debug)]
pub struct Node {
    /// Path of the program.
    pub path: PathBuf,
    /// Name of the build: `debian-` or `node-`, and the version.
    pub name: String,
}

/// Official build that the quick tests run.
const QUICK: &str = "node-24";
/// Debian's builds that the quick tests run, if `make test` could fetch them.
const DEBIANS_QUICK: [&str; 2] = ["debian-18", "debian-20"];

/// Oldest version whose functions the tools read.
const OLDEST: Version = (18, 0);

/// Returns Debian's builds that `scripts/runtimes/fetch.sh` has fetched, and an official build from
/// `tests/nodes`. With [`ALL_VERSIONS`] all official builds are returned.
///
/// # Panics
///
/// Panics if the official build is missing.
pub fn nodes() -> Vec<Node> {
    let debians = all_fetched("node").into_iter();
    let debians = debians.filter(|(version, _)| *version >= OLDEST);
    let mut nodes: Vec<Node> = debians
        .map(|((major, _), path)| Node {
            path,
            name: format!("debian-{major}"),
        })
        .collect();
    let official = concat!(env!("CARGO_MANIFEST_DIR"), "/nodes/node_modules");
    let mut official = builds(Path::new(official));
    if env::var_os(ALL_VERSIONS).is_none() {
        nodes.retain(|node| DEBIANS_QUICK.contains(&&*node.name));
        official.retain(|node| node.name == QUICK);
    }
    assert!(!official.is_empty(), "npm has installed no {QUICK}");
    nodes.append(&mut official);
    nodes
}

/// Returns the builds in a folder, each in a folder with its name.
fn builds(folder: &Path) -> Vec<Node> {
    let folders = fs::read_dir(folder).into_iter().flatten().flatten();
    let nodes = folders.filter_map(|folder| {
        let name = folder.file_name().into_string().ok()?;
        let path = folder.path().join("bin/node");
        path.exists().then_some(Node { path, name })
    });
    let mut nodes: Vec<Node> = nodes.collect();
    nodes.sort_by(|one, other| one.name.cmp(&other.name));
    nodes
}
