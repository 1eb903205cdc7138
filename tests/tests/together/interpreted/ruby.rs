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
