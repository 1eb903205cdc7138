//! Missing privileges, missing BTF or missing sibling programs. One line names what is missing.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use systemscope_tests::printed::output::files_below;
use systemscope_tests::printed::refusal::{FAILED, a_second_of, assert_refused};
use systemscope_tests::programs::binaries::copies;
use systemscope_tests::programs::tool::TOOLS;
use systemscope_tests::programs::workload::{install, scratch};
use systemscope_tests::{Tool, Turn, Workload, binary};

#[test]
fn without_privileges_the_missing_ones_are_named() {
    let _turn = Turn::share();
    let folder = copies(&TOOLS);
    let simple = Workload::plain("simple");
    let everyone = "--reuid=65534 --regid=65534 --clear-groups";
    let powerless_root = "--inh-caps=-all --bounding-set=-all";
    let open_to_all = folder.path().join("open");
    fs::create_dir(&open_to_all).unwrap();
    fs::set_permissions(&open_to_all, fs::Permissions::from_mode(0o777)).unwrap();
    for drop in [everyone, powerless_root] {
        for tool in TOOLS {
            let path = folder.path().join(tool);
            let output = if tool == "cpudist" { "--hgrm" } else { "-o" };
            let out = open_to_all.join("nothing");
            let finished = Tool::at(Path::new("setpriv"))
                .args(drop)
                .arg(&path)
                .args(a_second_of(tool))
                .arg(simple.pid().to_string())
                .arg(output)
                .arg(out)
                .in_folder(&open_to_all)
                .run();
            assert_refused(
                tool,
                &finished,
                &[FAILED],
                &["CAP_BPF", "CAP_PERFMON", "root"],
            );
        }
    }
    assert_eq!(
        files_below(folder.path()).len(),
        TOOLS.len(),
        "the tool has written a file"
    );
}

#[test]
fn a_kernel_without_btf_is_named() {
    let _turn = Turn::share();
    let simple = Workload::plain("simple");
    for tool in TOOLS {
        let script = format!(
            "mount -t tmpfs tmpfs /sys/kernel/btf && exec {} {} {}",
            binary(tool).display(),
            a_second_of(tool),
            simple.pid()
        );
        let folder = scratch();
        let finished = Tool::at(Path::new("unshare"))
            .args("--mount sh -c")
            .arg(script)
            .in_folder(folder.path())
            .run();
        assert_refused(tool, &finished, &[FAILED], &["BTF"]);
        assert!(files_below(folder.path()).is_empty());
    }
}

#[test]
fn wallclock_without_its_siblings_names_them() {
    let _turn = Turn::share();
    let simple = Workload::plain("simple");
    // Root runs no program that a tool finds on PATH.
    let elsewhere = scratch();
    let trap = elsewhere.path().join("oncputime");
    let ran = elsewhere.path().join("ran");
    fs::write(&trap, format!("#!/bin/sh\ntouch {}\n", ran.display())).unwrap();
    fs::set_permissions(&trap, fs::Permissions::from_mode(0o755)).unwrap();
    let run = |folder: &Path| {
        Tool::at(&folder.join("wallclock"))
            .arg(simple.pid().to_string())
            .args("-d 1")
            .in_folder(folder)
            .env("PATH", elsewhere.path().to_str().unwrap())
            .run()
    };
    let alone = copies(&["wallclock"]);
    assert_refused("wallclock", &run(alone.path()), &[FAILED], &["oncputime"]);
    let half = copies(&["wallclock", "oncputime"]);
    assert_refused("wallclock", &run(half.path()), &[FAILED], &["offcputime"]);
    assert_eq!(files_below(alone.path()).len(), 1);
    assert_eq!(files_below(half.path()).len(), 2);
    assert!(!ran.exists());
}

#[test]
fn wallclock_shows_the_error_of_a_child_that_fails() {
    let _turn = Turn::share();
    let simple = Workload::plain("simple");
    let folder = copies(&["wallclock", "oncputime"]);
    let sources = scratch();
    let broken = sources.path().join("offcputime");
    fs::write(
        &broken,
        "#!/bin/sh\necho 'offcputime: the moon is in the wrong quarter' >&2\nexit 1\n",
    )
    .unwrap();
    fs::set_permissions(&broken, fs::Permissions::from_mode(0o755)).unwrap();
    install(&broken, folder.path());
    let finished = Tool::at(&folder.path().join("wallclock"))
        .arg(simple.pid().to_string())
        .args("-d 1")
        .in_folder(folder.path())
        .run();
    assert_refused(
        "wallclock",
        &finished,
        &[FAILED],
        &["the moon is in the wrong quarter"],
    );
    assert_eq!(
        files_below(folder.path()).len(),
        3,
        "wallclock has written a file"
    );
}
