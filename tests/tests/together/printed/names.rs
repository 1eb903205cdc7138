//! Thread names that could break formats. Programs can still parse the output, and files get safe
//! names.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::HashSet;
use std::path::Path;

use systemscope_tests::printed::output::files_below;
use systemscope_tests::programs::workload::scratch;
use systemscope_tests::truth::account::threads_of;
use systemscope_tests::{Folded, Tool, Turn, Watch, Workload};

/// Thread names of the workload `names`, as the tools print them.
const PRINTED: [&str; 15] = [
    "kworker/u:1",
    "a:b c",
    "two?lines",
    "\u{fffd}\u{fffd}\u{fffd} bytes",
    "[unnamed]",
    "../../up",
    ".",
    "..",
    "tab?here",
    "1 2 3",
    "a-1/2:x 9",
    "(brackets)",
    "bell??[31m",
    "<&\"'>",
    "Жук",
];

fn assert_all_named(folded: &Folded, function: &str) {
    let under = folded.under(function);
    let comms = under.comms();
    let expected: HashSet<&str> = PRINTED.into_iter().collect();
    assert_eq!(comms, expected);
}

#[test]
fn offcputime_prints_every_name_safely() {
    let _turn = Turn::share();
    let names = Workload::plain("names");
    assert_all_named(
        &Tool::new("offcputime").pid(names.pid()).folded(0.5),
        "pause_a_little",
    );
    let per_thread = Tool::new("offcputime")
        .pid(names.pid())
        .folded_per_thread(0.5);
    assert_all_named(&per_thread, "pause_a_little");
    let threads: HashSet<(u32, u32)> = per_thread
        .under("pause_a_little")
        .lines
        .iter()
        .filter_map(|line| line.thread)
        .collect();
    let expected = threads_of(names.pid())
        .into_iter()
        .filter(|tid| *tid != names.pid());
    assert_eq!(threads, expected.map(|tid| (names.pid(), tid)).collect());
}

#[test]
fn oncputime_prints_every_name_safely() {
    let _turn = Turn::share();
    let names = Workload::plain("names");
    let folded = Tool::new("oncputime")
        .pid(names.pid())
        .args("-F 999")
        .folded_per_thread(2.0);
    assert_all_named(&folded, "burn");
}

#[test]
fn the_table_of_clocks_keeps_its_columns() {
    let _turn = Turn::share();
    let names = Workload::plain("names");
    let mut watch = Watch::offcputime(names.pid(), "");
    watch.open();
    let seen = watch.close();
    let comms: HashSet<&str> = seen.clocks.iter().map(|row| row.comm.as_str()).collect();
    for name in PRINTED {
        assert!(comms.contains(name), "{name:?} is not in {comms:?}");
    }
}

#[test]
fn wallclock_gives_every_thread_safe_files_of_its_own() {
    let _turn = Turn::share();
    let names = Workload::plain("names");
    let folder = scratch();
    let (inside, elsewhere) = (folder.path().join("a/b/c"), folder.path().join("elsewhere"));
    std::fs::create_dir_all(&inside).unwrap();
    std::fs::create_dir_all(&elsewhere).unwrap();
    let finished = Tool::new("wallclock")
        .arg(names.pid().to_string())
        .args("-d 2 -o")
        .arg(inside.join("names"))
        .in_folder(&elsewhere)
        .run()
        .succeeded();

    let all = files_below(folder.path());
    let stray: Vec<_> = all
        .iter()
        .filter(|path| !path.starts_with(&inside))
        .collect();
    assert!(
        stray.is_empty(),
        "files outside of the folder: {stray:?}\n{}",
        finished.stderr
    );
    for path in &all {
        let name = path
            .strip_prefix(&inside)
            .unwrap()
            .to_str()
            .expect("a name in UTF-8");
        let bad = |character: char| character.is_control() || " ;\\\"'<>&|*?".contains(character);
        assert!(!name.contains(bad), "not a safe name: {name:?}");
        let hidden = path
            .strip_prefix(&inside)
            .unwrap()
            .iter()
            .any(|part| part.to_string_lossy().starts_with(['.', '-']));
        assert!(!hidden, "not a safe name: {name:?}");
    }
    for tid in threads_of(names.pid()) {
        for kind in ["svg", "folded"] {
            let of_thread = |path: &&std::path::PathBuf| {
                file_name(path).starts_with(&format!("thread_{tid}_"))
                    && file_name(path).ends_with(&format!(".{kind}"))
            };
            assert_eq!(
                all.iter().filter(of_thread).count(),
                1,
                "the .{kind} of thread {tid} in {all:?}"
            );
        }
    }
    for path in all
        .iter()
        .filter(|path| file_name(path).ends_with(".folded"))
    {
        Folded::parse(&std::fs::read(path).unwrap());
    }
}

fn file_name(path: &Path) -> &str {
    path.file_name().unwrap().to_str().unwrap()
}
