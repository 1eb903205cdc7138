//! Programs whose files root cannot open.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use systemscope_tests::printed::user_stacks::assert_most;
use systemscope_tests::{Folded, Tool, Turn, WorkloadBuilder};

/// Root cannot read a FUSE file system without `allow_other`. Names and unwind tables come from the
/// program's memory, also if the program is too large to be read as a whole.
#[test]
#[ignore = "the image is read within half a second, of which other tests leave little"]
fn a_program_on_a_file_system_that_root_may_not_look_at_has_names_and_whole_stacks() {
    let _turn = Turn::share();
    for padding in [1, 60_000_000] {
        let mounted = WorkloadBuilder::new("mounted")
            .without_frame_pointers()
            .flag("-rdynamic")
            .flag(&format!("-DPADDING={padding}"))
            .start();
        let child = mounted.told("child") as u32;
        for (tool, leaf) in [("oncputime", "burn"), ("offcputime", "nap")] {
            let on_child = Tool::new(tool).pid(child).arg("-U").arg("1");
            let finished = on_child.run().succeeded();
            let folded = Folded::parse(&finished.stdout);
            let own = folded.under(leaf);
            assert!(own.total() > 0, "{tool}, {padding}: {folded}");
            assert_most(tool, &own, 950, |line| {
                line.has_path(&["main", "outer", "inner", leaf])
            });
            let said = finished.stderr;
            assert!(!said.contains("could not be opened"), "{tool}: {said}");
        }
    }
}
