//! A real application: Django under gunicorn, with forked processes that have several threads.

use systemscope_tests::programs::django::Site;
use systemscope_tests::{Tool, Turn};

use super::{Stack, stacks};

/// First functions of a thread. Versions before 3.11 have names without qualifiers.
const OF_THREADS: [&str; 2] = ["threading.py:Thread._bootstrap", "threading.py:_bootstrap"];

/// Function that serves a request. Its sort in C calls the second function for each key.
const VIEW: &str = "django_site.py:page";
const KEY: &str = "django_site.py:key_of";

/// Returns whether a stack begins with the first function of its thread.
fn is_rooted(stack: &Stack) -> bool {
    let calls = stack.calls();
    let first = calls.first().map(|call| call.name.as_str());
    if stack.tid == stack.pid {
        return first == Some("gunicorn:<module>");
    }
    first.is_some_and(|first| OF_THREADS.contains(&first))
}

fn total<'a>(stacks: impl Iterator<Item = &'a Stack>) -> u64 {
    stacks.map(|stack| stack.value).sum()
}

/// Returns the value of the stacks that contain a function of Python.
fn within(function: &str, stacks: &[Stack]) -> u64 {
    let is_there = |stack: &&Stack| stack.calls().iter().any(|call| call.name == function);
    total(stacks.iter().filter(is_there))
}

/// Measures all processes of a site for 3 s.
fn measure(tool: &str, flags: &str, site: &Site) -> Vec<Stack> {
    let tool = Tool::new(tool).args("--children --format json -o run.json");
    let tool = tool.args(flags).pid(site.pid()).arg("3");
    tool.in_folder(site.folder()).run().succeeded();
    stacks(&site.folder().join("run.json"))
}

#[test]
#[ignore = "serves a site in Django under load"]
fn a_site_in_django_is_seen_from_where_its_threads_begin() {
    let _turn = Turn::share();
    let site = Site::start();
    let _visitors = site.visit();
    for (tool, flags) in [("oncputime", "-F 199"), ("offcputime", "")] {
        let stacks = measure(tool, flags, &site);
        let all = total(stacks.iter());
        let others: Vec<&Stack> = stacks.iter().filter(|stack| !is_rooted(stack)).collect();
        let elsewhere = total(others.iter().copied());
        assert!(
            all > 0 && elsewhere * 100 <= all,
            "{tool}: {elsewhere} of {all}: {others:#?}"
        );
        // A request is on a CPU for most of its time, and sleeps once.
        let view = within(VIEW, &stacks);
        assert!(view * 10 >= all, "{tool}: {view} of {all}");
        // The key function does not wait, so off-CPU stacks need not contain it.
        let key = within(KEY, &stacks);
        assert!(tool == "offcputime" || key > 0, "{tool}: no {KEY}");
    }
}
