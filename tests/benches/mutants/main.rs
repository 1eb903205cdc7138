//! `make mutants`: small changes to the BPF programs, one for each rule that they
//! follow, and the test that notices, as one table. Exit status 1 when a change
//! goes unnoticed. Words on the command line choose the changes that have one of
//! them in their rule or file.
//!
//! The changes are made to a copy of the source tree, and only the tools are built
//! of it: the tests are those of this tree, as `cargo test` built them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod mutant;
mod rules;
mod suite;
mod tools;

use std::process::ExitCode;

use systemscope_tests::parts::Wanted;
use systemscope_tests::printed::table::{Table, Verdict};

use mutant::{Expected, Mutant};
use suite::Suite;
use tools::MutatedTools;

fn main() -> ExitCode {
    let wanted = Wanted::read();
    let all: Vec<&Mutant> = rules::RULES.into_iter().flatten().collect();
    for mutant in &all {
        mutant.assert_applies();
    }
    let wanted = all
        .into_iter()
        .filter(|mutant| wanted.has(mutant.rule) || wanted.has(mutant.file));
    let wanted: Vec<&Mutant> = wanted.collect();

    let tools = MutatedTools::copy_tree();
    tools.build().expect("build the tools as they are");
    tools.assert_loads().expect("the tools as they are");
    tools.keep_unchanged();
    let mut suite = Suite::new(&tools);
    let mut table = Table::new(&["rule", "change", "noticed by"]);
    for mutant in wanted {
        eprintln!("==> {} ({})", mutant.rule, mutant.file);
        let (noticed_by, verdict) = judge(mutant, &tools, &mut suite);
        table.row(&[mutant.rule, &mutant.change(), &noticed_by], verdict);
    }
    table.finish()
}

/// Who noticed a change, or why nobody can; and whether it is as stated.
fn judge(mutant: &Mutant, tools: &MutatedTools, suite: &mut Suite) -> (String, Verdict) {
    let tests = match mutant.expected {
        Expected::Caught(tests) => tests,
        Expected::SameHere(why) => return (format!("changes nothing: {why}"), Verdict::Figure),
    };
    let _changed = tools.change(mutant);
    if let Err(said) = tools.build().and_then(|()| tools.assert_loads()) {
        eprintln!("{said}");
        return ("error: does not build or load".to_owned(), Verdict::Missed);
    }
    for test in tests {
        if let Some(said) = suite.notices(test) {
            eprintln!("    {said}");
            return (format!("`{test}`"), Verdict::Ok);
        }
    }
    (format!("none of {}", tests.join(", ")), Verdict::Missed)
}
