//! Processes of multiprocessing, which are born in the window or were there before.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use systemscope_tests::programs::pythons::some_pythons;
use systemscope_tests::programs::workload::scratch;
use systemscope_tests::{Tool, Turn, Workload};

use super::{Stack, assert_all_known, stacks, watched};

/// Four processes that sleep in a function, over and over.
const POOL: &str = "
import multiprocessing, os, sys, time
def doze(seconds):
    time.sleep(seconds)
    return os.getpid()
if __name__ == '__main__':
    context = multiprocessing.get_context(sys.argv[1])
    with context.Pool(4) as pool:
        workers = set()
        while len(workers) < 4:
            workers.update(pool.map(doze, [0.05] * 8, chunksize=1))
        print('ready', flush=True)
        pool.map(doze, [0.02] * int(sys.argv[2]), chunksize=1)
";

/// Four processes sleep in that function, and all that is known of them has a name.
fn assert_pool(what: &str, stacks: &[Stack]) {
    assert_all_known(what, stacks);
    let doze = |stack: &&Stack| {
        let calls = stack.calls();
        let last = calls.last().map(|call| (&*call.name, call.line));
        last == Some(("pool.py:doze", 4))
    };
    let workers: BTreeSet<u32> = stacks.iter().filter(doze).map(|stack| stack.pid).collect();
    assert_eq!(workers.len(), 4, "{what}: {workers:?} of {stacks:#?}");
}

#[test]
fn the_processes_of_a_pool_have_their_frames() {
    let _turn = Turn::share();
    for python in some_pythons() {
        for start in ["fork", "spawn", "forkserver"] {
            let folder = scratch();
            let path = folder.path().join("pool.py");
            fs::write(&path, POOL).unwrap();
            // They are born in the window, and end in it.
            let what = format!("{}, {start}", python.path.display());
            Tool::new("offcputime")
                .args("--format json -o run.json --")
                .arg(&python.path)
                .args("pool.py")
                .args(start)
                .arg("20")
                .in_folder(folder.path())
                .run()
                .succeeded();
            assert_pool(&what, &stacks(&folder.path().join("run.json")));

            // They were there before, and stay.
            let mut command = Command::new(&python.path);
            command.arg(&path).args([start, "100000"]);
            let pool = Workload::run(command, python.path.clone(), folder);
            let (_, stacks) = watched(pool.pid(), pool.folder(), "--children");
            assert_pool(&what, &stacks);
        }
    }
}
