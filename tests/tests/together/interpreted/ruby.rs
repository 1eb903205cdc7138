//! Frames of Ruby.

use systemscope_tests::programs::rubies::rubies;
use systemscope_tests::{Turn, patiently};

use super::*;

fn interpreter(path: PathBuf) -> Interpreter {
    Interpreter {
        language: "ruby",
        path,
        program: "nesting.rb",
        innermost: ":innermost",
    }
}

#[test]
fn every_ruby_frame_is_where_the_interpreter_has_it() {
    let _turn = Turn::share();
    for path in rubies() {
        let interpreter = interpreter(path);
        patiently(|| check_blocked(&interpreter));
    }
}

#[test]
fn ruby_that_computes_has_its_frames() {
    let _turn = Turn::share();
    for path in rubies() {
        let interpreter = interpreter(path);
        patiently(|| check_running(&interpreter));
    }
}

#[test]
fn wakers_show_functions_of_ruby() {
    let _turn = Turn::share();
    let path = rubies().into_iter().next().unwrap();
    let writes = ";syswrite;nesting.rb:block in pipe;";
    check_wakers(&interpreter(path), "nesting.rb:pipe", "sysread", writes);
}

#[test]
fn ruby_can_be_left_out() {
    let _turn = Turn::share();
    let path = rubies().into_iter().next().unwrap();
    check_choice(&interpreter(path));
}

/// Returns the time in ns for which the main thread of `global_lock.rb` waited for the lock, as it
/// reports and as offcputime shows it.
fn measure_lock(path: &Path) -> (u64, u64) {
    let mut command = Command::new(path);
    command.arg(source("global_lock.rb"));
    let mut program = Workload::run(command, path.to_owned(), scratch());
    let tool = Tool::new("offcputime").args("--reasons --per-thread --nanoseconds");
    let running = tool.pid(program.pid()).start_measuring();
    program.go();
    let line = program.next_line();
    let ["waited", waiter, _, waited] = line.split(' ').collect::<Vec<_>>()[..] else {
        panic!("{line}")
    };
    program.wait_done();
    running.signal(Signal::INT);
    let folded = running.finish_within(PATIENCE).succeeded().stdout;
    let folded = String::from_utf8(folded).unwrap();
    let is_waiter = |line: &&str| {
        line.split(';')
            .next()
            .unwrap()
            .ends_with(&format!("/{waiter}"))
    };
    let shown = folded.lines().filter(is_waiter).filter_map(|line| {
        let (stack, value) = line.rsplit_once(' ')?;
        let is_held = stack.ends_with(";[lock: GVL, held by computes]");
        is_held.then(|| value.parse::<u64>().unwrap())
    });
    (waited.parse().unwrap(), shown.sum())
}

#[test]
fn waits_for_rubys_global_lock_are_under_who_held_it() {
    let _turn = Turn::share();
    for path in rubies() {
        patiently(|| {
            let (waited, shown) = measure_lock(&path);
            let off = shown.abs_diff(waited) as f64 / waited as f64;
            assert!(off < 0.1, "{path:?}: {shown} ns of {waited} ns");
        });
    }
}
