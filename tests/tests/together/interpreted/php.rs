//! Frames of PHP.

use systemscope_tests::programs::php::{Fpm, phps};
use systemscope_tests::{Turn, patiently};

use super::*;

fn interpreter(path: PathBuf) -> Interpreter {
    Interpreter {
        language: "php",
        path,
        program: "nesting.php",
        innermost: ":Nesting\\innermost",
    }
}

#[test]
fn every_php_frame_is_where_the_interpreter_has_it() {
    let _turn = Turn::share();
    for path in phps() {
        let interpreter = interpreter(path);
        patiently(|| check_blocked(&interpreter));
    }
}

#[test]
fn php_that_computes_has_its_frames() {
    let _turn = Turn::share();
    for path in phps() {
        let interpreter = interpreter(path);
        patiently(|| check_running(&interpreter));
    }
}

#[test]
fn wakers_show_functions_of_php() {
    let _turn = Turn::share();
    let path = phps().into_iter().next().unwrap();
    let function = "nesting.php:Nesting\\socket";
    check_wakers(
        &interpreter(path),
        function,
        "fread",
        &format!(";fwrite;{function};"),
    );
}

#[test]
fn php_can_be_left_out() {
    let _turn = Turn::share();
    let path = phps().into_iter().next().unwrap();
    check_choice(&interpreter(path));
}

/// Number of requests of each script, and the time in ns for which each request blocks.
const REQUESTS: u64 = 10;
const REQUEST_NS: u64 = 20_000_000;

/// Without opcache the functions of each request are new, at the addresses of the functions of the
/// last request. The scripts differ in nothing but names.
#[test]
fn each_request_of_php_fpm_has_its_own_functions() {
    const A: &str = "<?php\nfunction aaaa()\n{\n    usleep(20000);\n}\naaaa();\necho 'done';\n";
    let _turn = Turn::share();
    let b = A.replace("aaaa", "bbbb");
    let fpm = Fpm::start(&[("a.php", A), ("b.php", &b)]);
    let [worker] = fpm.workers()[..] else {
        panic!("{:?}", fpm.workers())
    };
    let folder = scratch();
    let json = folder.path().join("run.json");
    let tool = Tool::new("offcputime").args("--states --format json -o");
    let running = tool.arg(&json).pid(worker).start_measuring();
    for name in ["a.php", "b.php"].repeat(REQUESTS as usize) {
        let answer = fpm.request(name);
        assert!(answer.contains("\r\n\r\ndone"), "{answer}");
    }
    running.signal(Signal::INT);
    running.finish_within(PATIENCE).succeeded();

    let mut times: BTreeMap<Vec<String>, u64> = BTreeMap::new();
    for stack in stacks(&json) {
        if stack.state.as_deref() == Some("runnable") {
            continue;
        }
        assert_eq!(marks(&stack, "php"), [""; 0], "{stack:#?}");
        let names = stack.calls_in("php").into_iter().map(|call| call.name);
        *times.entry(names.collect()).or_default() += stack.value;
    }
    // The worker waits for the next request without any function of PHP.
    assert!(times.remove(&Vec::new()).is_some(), "{times:?}");
    for (script, function) in [("a.php", "aaaa"), ("b.php", "bbbb")] {
        let chain = ["{main}", function].map(|name| format!("{script}:{name}"));
        let time = times.remove(&[&chain[..], &["usleep".to_owned()]].concat());
        let least = REQUESTS * (REQUEST_NS - SLACK_NS);
        assert!(
            time.is_some_and(|time| time >= least),
            "{time:?}, {times:?}"
        );
    }
    let others: u64 = times.values().sum();
    assert!(others <= SLACK_NS * REQUESTS, "{times:?}");
}
