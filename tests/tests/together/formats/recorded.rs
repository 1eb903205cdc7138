//! Captures of older versions. Their exports equal the exports of the older versions.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use systemscope_tests::Tool;

/// `version-1.scope` is wallclock's capture of a Python program with a lock and a connection. The
/// version that wrote it also exported the other files from it.
#[test]
fn a_capture_of_version_1_exports_as_it_did() {
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/together/formats/recorded");
    for (expected, args) in [
        ("version-1.json", "--format json"),
        ("version-1.folded", "--reasons --per-thread -a"),
    ] {
        let run = Tool::new("systemscope")
            .arg("export")
            .args(args)
            .arg(recorded.join("version-1.scope"))
            .run();
        let expected = fs::read_to_string(recorded.join(expected)).unwrap();
        assert_eq!(String::from_utf8(run.stdout).unwrap(), expected, "{args}");
    }
}
