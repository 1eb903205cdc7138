//! Builds of Node.js that tests measure.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use super::pythons::ALL_VERSIONS;

/// Build of Node.js.
#[derive(Debug)]
pub struct Node {
    /// Path of the program.
    pub path: PathBuf,
    /// Name of the build: the release of Debian, or `node-` and the version.
    pub name: String,
}

/// Official build that the quick tests run.
const QUICK: &str = "node-24";

/// Returns Debian's builds that `scripts/nodes/fetch.sh` has fetched, and an official build from
/// `tests/nodes`. With [`ALL_VERSIONS`] all official builds are returned.
///
/// # Panics
///
/// Panics if the official build is missing.
pub fn nodes() -> Vec<Node> {
    let home = PathBuf::from(env::var_os("HOME").unwrap_or_default());
    let cache = env::var_os("XDG_CACHE_HOME").map_or_else(|| home.join(".cache"), PathBuf::from);
    let mut nodes = builds(&cache.join("systemscope/nodes"));
    let official = concat!(env!("CARGO_MANIFEST_DIR"), "/nodes/node_modules");
    let mut official = builds(Path::new(official));
    if env::var_os(ALL_VERSIONS).is_none() {
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
