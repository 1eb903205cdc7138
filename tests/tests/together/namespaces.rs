//! Process IDs belong to the caller's PID namespace.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::Path;

use systemscope_tests::printed::clocks;
use systemscope_tests::printed::output::{assert_close, files_below};
use systemscope_tests::programs::workload::scratch;
use systemscope_tests::{Container, Folded, Running, Tool, Turn, Workload, binary, patiently};

#[track_caller]
fn assert_is_simple(folded: &Folded, function: &str) {
    let own = folded.only(|line| line.has_path(&["main", "known_work", function]));
    assert!(own.total() > 0, "no {function}: {folded:#?}");
    assert_eq!(folded.comms().into_iter().collect::<Vec<_>>(), ["simple"]);
}

#[test]
fn inside_the_inner_pid_works() {
    let _turn = Turn::share();
    let container = Container::start();
    for tool in ["offcputime", "offwaketime"] {
        let folded = container.enter(tool).pid(1).folded(0.5);
        assert_is_simple(&folded, "known_sleep");
    }
    assert_is_simple(
        &container
            .enter("oncputime")
            .pid(1)
            .args("-F 499")
            .folded(0.5),
        "known_burn",
    );
}

#[test]
fn outside_the_outer_pid_works() {
    let _turn = Turn::share();
    let container = Container::start();
    for tool in ["offcputime", "offwaketime"] {
        let folded = Tool::new(tool).pid(container.outer_pid).folded(0.5);
        assert_is_simple(&folded, "known_sleep");
    }
    assert_is_simple(
        &Tool::new("oncputime")
            .pid(container.outer_pid)
            .args("-F 499")
            .folded(0.5),
        "known_burn",
    );
}

#[test]
fn ids_are_printed_as_the_caller_knows_them() {
    let _turn = Turn::share();
    let container = Container::start();
    for tool in ["offcputime", "offwaketime"] {
        let inside = container.enter(tool).pid(1).folded_per_thread(0.5);
        assert!(inside.of_thread(1).total() > 0, "{inside:#?}");
        assert!(
            inside.lines.iter().all(|line| line.thread.unwrap().0 == 1),
            "{inside:#?}"
        );
        let outside = Tool::new(tool)
            .pid(container.outer_pid)
            .folded_per_thread(0.5);
        assert!(
            outside.of_thread(container.outer_pid).total() > 0,
            "{outside:#?}"
        );
    }
}

#[test]
fn a_thread_is_chosen_by_its_inner_tid() {
    let _turn = Turn::share();
    let container = Container::start();
    let folded = container
        .enter("offcputime")
        .args("-t 1")
        .folded_per_thread(0.5);
    assert!(
        folded.lines.iter().all(|line| line.thread == Some((1, 1))),
        "{folded:#?}"
    );
    assert!(folded.under("known_sleep").total() > 0);
}

#[test]
fn an_outer_pid_means_nothing_inside() {
    let _turn = Turn::share();
    let container = Container::start();
    let outer = container.outer_pid.to_string();
    let finished = container
        .enter("offcputime")
        .args("--duration 1 -p")
        .arg(&outer)
        .run();
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    assert!(finished.stderr.contains(&outer), "{}", finished.stderr);
}

#[test]
fn all_of_the_machine_from_inside_is_what_the_caller_can_name() {
    let _turn = Turn::share();
    let container = Container::start();
    let folded = container.enter("offcputime").folded_per_thread(0.5);
    assert!(
        folded.of_thread(1).under("known_sleep").total() > 0,
        "{folded:#?}"
    );
}

#[test]
fn wallclock_works_inside() {
    let _turn = Turn::share();
    patiently(assert_wallclock_works_inside);
}

fn assert_wallclock_works_inside() {
    let container = Container::start();
    let folder = scratch();
    container
        .enter("wallclock")
        .arg("1")
        .args("-d 2 -f 199 -o")
        .arg(folder.path().join("inner"))
        .run()
        .succeeded();
    let files = files_below(folder.path());
    let main = files
        .iter()
        .find(|path| path.file_name().unwrap().to_str().unwrap() == "thread_1_main.folded");
    let main = main.unwrap_or_else(|| panic!("no file of thread 1 in {files:#?}"));
    let folded = Folded::parse(&fs::read(main).unwrap());
    // Each line is rounded to whole microseconds.
    let lines = folded.lines.len() as u64;
    assert_close("widths in us", folded.total(), 2_000_000, lines);
    assert!(
        folded.under("known_sleep").marked("_[o]").total() > 0,
        "{folded:#?}"
    );
    assert!(
        folded.under("known_burn").marked("_[c]").total() > 0,
        "{folded:#?}"
    );
}

#[test]
fn a_command_inside_and_its_children_have_inner_ids() {
    let _turn = Turn::share();
    let container = Container::start();
    let folder = scratch();
    let path = folder.path().join("clocks");
    let finished = container
        .enter("offcputime")
        .arg("-o")
        .arg(folder.path().join("folded"))
        .arg("--clocks")
        .arg(&path)
        .args("-- sh -c")
        .arg("sh -c 'sleep 0.1; echo $$'; echo $$")
        .run()
        .succeeded();
    let told = String::from_utf8(finished.stdout).unwrap();
    let told: Vec<u32> = told.lines().map(|line| line.parse().unwrap()).collect();
    let rows = clocks::read(&path);
    let seen: Vec<u32> = rows.iter().map(|row| row.pid).collect();
    assert_eq!(told.len(), 2);
    assert!(
        told.iter().all(|pid| seen.contains(pid)),
        "{told:?} {seen:?}"
    );
    // The third process is sleep.
    assert_eq!(seen.len(), 3, "{rows:#?}");
}

#[test]
fn a_machine_seen_from_inside_is_what_is_there() {
    let _turn = Turn::share();
    let container = Container::start();
    let folder = scratch();
    let tool = container.enter("wallclock").args("--all -d 1 -o");
    let finished = tool.arg(folder.path().join("inner")).run().succeeded();
    let told = String::from_utf8(finished.stdout).unwrap();
    let is_simple = |line: &str| line.starts_with("      1 ") && line.contains("simple");
    assert!(told.lines().any(is_simple), "{told}");
    assert!(!told.contains("KERNEL THREADS"), "{told}");
    assert!(told.contains("\nCPUS  "), "{told}");
}

/// Returns a tool in a time namespace. The clocks of the namespace are shifted by `shift` against
/// the clocks of the kernel.
fn in_time_namespace(tool: &str, shift: &str) -> Tool {
    Tool::at(Path::new("unshare"))
        .args("--time --monotonic")
        .arg(shift)
        .arg("--boottime")
        .arg(shift)
        .arg(binary(tool))
}

#[test]
fn a_shifted_clock_changes_no_number() {
    let _turn = Turn::share();
    let (sleeper, simple) = (Running::asleep(), Workload::plain("simple"));
    for shift in ["100000", "-100"] {
        let off = in_time_namespace("offcputime", shift).pid(sleeper.pid());
        assert_close("us asleep", off.folded(1.0).total(), 1_000_000, 1);
        let on = in_time_namespace("oncputime", shift).pid(simple.pid());
        assert_is_simple(&on.args("-F 499").folded(1.0), "known_burn");
        let distribution = in_time_namespace("cpudist", shift).pid(simple.pid());
        let output = distribution.args("1 1").run().succeeded();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains('*'), "{text}");
        let folder = scratch();
        in_time_namespace("wallclock", shift)
            .arg(sleeper.pid().to_string())
            .args("-d 1 -o run")
            .in_folder(folder.path())
            .run()
            .succeeded();
        let folded = Folded::parse(&fs::read(folder.path().join("run.folded")).unwrap());
        assert_close("us in all states", folded.total(), 1_000_000, 1);
    }
}
