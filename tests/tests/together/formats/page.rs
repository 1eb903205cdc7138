//! The page: what its first screen says, and the capture inside.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod views;

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use systemscope_tests::printed::refusal::{FAILED, assert_refused};
use systemscope_tests::programs::workload::scratch;
use systemscope_tests::{Tool, Turn, Workload, binary};

fn stdout_of(arguments: &str, folder: &Path) -> String {
    let tool = Tool::new("systemscope").args(arguments).in_folder(folder);
    String::from_utf8(tool.run().succeeded().stdout).unwrap()
}

/// Returns the lines of a report without losses. A page has those of samples and of off-CPU times
/// as one sum.
fn without_losses(report: &str) -> Vec<&str> {
    let lines = report.lines();
    lines.filter(|line| !line.starts_with("Lost: ")).collect()
}

#[test]
fn it_has_everything_that_the_capture_has() {
    let _turn = Turn::share();
    let mut phases = Workload::start("phases", &[60, 3]);
    phases.go();
    let folder = scratch();
    let folder = folder.path();
    let run = Tool::new("wallclock").arg(phases.pid().to_string());
    let run = run.args("-d 1 -f 499 --timeline -o run.html -o run.scope");
    run.in_folder(folder).run().succeeded();

    let export = "-o {}.json -o {}.folded -o {}.trace.json -o {}.pb.gz";
    for source in ["run.scope", "run.html"] {
        let files = export.replace("{}", source);
        stdout_of(&format!("export --reasons {files} {source}"), folder);
    }
    for ending in ["json", "folded", "trace.json", "pb.gz"] {
        let read = |source: &str| fs::read(folder.join(format!("{source}.{ending}"))).unwrap();
        assert!(read("run.scope") == read("run.html"), "{ending} differs");
    }
    stdout_of("export run.html -o again.scope", folder);
    stdout_of("report again.scope -o again.html", folder);
    let page = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    assert!(page("run.html") == page("again.html"));

    let [of_capture, of_page] =
        ["run.scope", "run.html"].map(|source| stdout_of(&format!("report {source}"), folder));
    assert_eq!(without_losses(&of_capture), without_losses(&of_page));

    // The first screen has the threads, and comes before the data.
    let page = page("run.html");
    let (screen, data) = page.split_once("</main>").unwrap();
    let tid = format!("data-tid=\"{}\"", phases.pid());
    let is_idle = screen.contains("idle thread");
    assert!(screen.contains(&tid) || is_idle, "{screen}");
    assert!(screen.contains("How far to trust this"), "{screen}");
    assert!(data.contains("id=\"capture\""), "{data:.500}");
}

/// The page's script reads two pages. Its samples, tables and lanes are those of the program's JSON
/// and clocks, and its changes are those of `systemscope diff`.
#[test]
fn the_script_reads_what_the_program_reads() {
    let _turn = Turn::share();
    let mut phases = Workload::start("phases", &[60, 3]);
    phases.go();
    let folder = scratch();
    let pages = ["old.html", "new.html"].map(|name| folder.path().join(name));
    for page in &pages {
        let run = Tool::new("wallclock").arg(phases.pid().to_string());
        let run = run.args("-d 1 -f 499 --timeline -o").arg(page);
        run.run().succeeded();
    }
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/page/web/tests");
    let output = Command::new("node")
        .args(["--test", "--test-reporter", "spec"])
        .args(["truth.mjs", "views.mjs"].map(|name| tests.join(name)))
        .env("PAGES", env::join_paths(&pages).unwrap())
        .env("SYSTEMSCOPE", binary("systemscope"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("pass 4"), "{said}");
}

/// Returns the text of the first screen.
fn first_screen(page: &str) -> String {
    let (screen, _) = page.split_once("</main>").unwrap();
    let (_, screen) = screen.split_once("<main").unwrap();
    let texts = screen.split('<').map(|part| part.split_once('>'));
    texts
        .map(|part| part.map_or("", |(_, text)| text))
        .collect()
}

/// The demo's threads are made to compute, to wait for a lock of each other, and to share CPUs.
#[test]
fn the_first_screen_says_what_the_demo_was_made_to_do() {
    // Beside other tests the demo's threads would hardly run.
    let _turn = Turn::take();
    let folder = scratch();
    let folder = folder.path();
    let command = format!(
        "-d 5 -f 199 -o demo.html -- {} --seconds 3",
        binary("systemscope-demo").display()
    );
    let run = Tool::new("wallclock").args(&command).in_folder(folder);
    run.run().succeeded();
    let page = fs::read_to_string(folder.join("demo.html")).unwrap();
    let screen = first_screen(&page);
    for told in [
        "waiting for a CPU",
        "a lock in systemscope_demo::wait_for_lock",
        "released by locker-",
        "of it in systemscope_demo::is_prime.",
        "idle hidden",
        "burner",
        "How far to trust this",
    ] {
        assert!(screen.contains(told), "{told}: {screen}");
    }
}

#[test]
fn two_captures_make_a_page_of_what_changed() {
    let _turn = Turn::share();
    let mut phases = Workload::start("phases", &[60, 3]);
    phases.go();
    let folder = scratch();
    let folder = folder.path();
    for name in ["old.html", "new.scope"] {
        let run = Tool::new("wallclock").arg(phases.pid().to_string());
        let run = run.args("-d 1 -o").arg(name).in_folder(folder);
        run.run().succeeded();
    }
    stdout_of("report old.html new.scope -o change.html", folder);
    stdout_of("diff old.html new.scope -o diff.html", folder);
    let page = fs::read_to_string(folder.join("change.html")).unwrap();
    assert!(
        page.contains("<h1>What changed in phases (PID "),
        "{page:.3000}"
    );
    assert!(page == fs::read_to_string(folder.join("diff.html")).unwrap());
    let [of_change, of_new] =
        ["change.html", "new.scope"].map(|source| stdout_of(&format!("report {source}"), folder));
    assert_eq!(without_losses(&of_change), without_losses(&of_new));

    let half = page.find("id=\"capture\"").unwrap() + 1_000;
    fs::write(folder.join("cut.html"), &page[..half]).unwrap();
    fs::write(folder.join("other.html"), "<p>Hello").unwrap();
    for (file, told) in [
        ("cut.html", "the capture is cut off: was it copied whole"),
        (
            "other.html",
            "the page holds no capture: another program wrote it",
        ),
    ] {
        let report = Tool::new("systemscope").args("report").arg(file);
        let refused = report.in_folder(folder).run();
        assert_refused("systemscope report", &refused, &[FAILED], &[told]);
    }
}
