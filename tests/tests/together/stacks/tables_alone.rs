//! Code that was made at run time, and has no unwind tables. If only tables are used, its callers
//! are unknown.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use systemscope_tests::{Tool, Turn, Workload};

#[test]
fn code_without_tables_is_known_at_the_leaf_alone() {
    let _turn = Turn::share();
    let mut jit = Workload::start("jit", &[60]);
    jit.go();
    let stacks = |mode: &str| {
        let tool = Tool::new("offcputime").pid(jit.pid());
        let tool = tool.args("-U --call-graph").arg(mode);
        tool.folded(1.0).under("burn_and_sleep")
    };
    assert!(stacks("auto").under("main").total() > 0);
    let by_tables = stacks("dwarf");
    assert!(by_tables.total() > 0);
    std::fs::remove_file(format!("/tmp/perf-{}.map", jit.pid())).unwrap();
    assert_eq!(by_tables.under("main").total(), 0, "{by_tables}");
}
