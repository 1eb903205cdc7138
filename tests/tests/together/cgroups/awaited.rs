//! Awaited cgroups, units and containers. They are measured from the birth of their first process
//! on.

use std::fs;
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;
use systemscope_tests::printed::clocks;
use systemscope_tests::printed::refusal::{WRONG_COMMAND_LINE, assert_refused};
use systemscope_tests::programs::tool::{MEASURING, PATIENCE};
use systemscope_tests::programs::wallclock::start_measuring;
use systemscope_tests::programs::workload::scratch;
use systemscope_tests::{Cgroup, ClockRow, Running, Tool, Turn, Workload, now_ns};

use super::with_runtime_state;

/// Half of the sleep of `sleep_inside`, in ns. After the process has set its timer and before it
/// blocks, it may wait for a CPU.
const LEAST_ASLEEP_NS: u64 = 150_000_000;

/// Runs a shell that enters a cgroup and then executes `sleep 0.3`. Returns its PID and the times
/// before its birth and after its end.
fn sleep_inside(cgroup: &Cgroup) -> (u32, [u64; 2]) {
    let mut shell = Command::new("sh");
    shell.args(["-c", "echo $$ > \"$0/cgroup.procs\" && exec sleep 0.3"]);
    shell.arg(cgroup.folder());
    let before = now_ns();
    let mut child = shell.spawn().unwrap();
    assert!(child.wait().unwrap().success());
    (child.id(), [before, now_ns()])
}

/// Checks that the whole life of a process of `sleep_inside` is measured.
#[track_caller]
fn assert_slept(rows: &[ClockRow], (pid, [before, after]): (u32, [u64; 2])) {
    let row = rows.iter().find(|row| row.pid == pid);
    let row = row.unwrap_or_else(|| panic!("{pid} is not in {rows:#?}"));
    assert_eq!(row.accounted_ns(), row.lifetime_ns(), "{row:?}");
    assert!(before < row.started_ns && row.ended_ns < after, "{row:?}");
    assert!(row.blocked_ns >= LEAST_ASLEEP_NS, "{row:?}");
}

/// Runs offcputime with `--wait`, causes the awaited event, and ends offcputime with SIGINT.
/// Returns the accounts.
fn measure_awaited(tool: Tool, happen: impl FnOnce()) -> Vec<ClockRow> {
    let folder = scratch();
    let tool = tool.args("--wait --clocks clocks -o folded");
    let mut running = tool.in_folder(folder.path()).start();
    running.wait_until_said("Waiting for", PATIENCE);
    happen();
    running.wait_until_said(MEASURING, PATIENCE);
    running.signal(Signal::INT);
    running.finish_within(PATIENCE).succeeded();
    clocks::read(&folder.path().join("clocks"))
}

#[test]
fn a_cgroup_that_is_not_there_yet_is_waited_for() {
    let _turn = Turn::share();
    let path = format!("/systemscope-{}-awaited", std::process::id());
    let tool = Tool::new("offcputime").arg("--cgroup");
    let mut slept = Vec::new();
    let mut others = Vec::new();
    let rows = measure_awaited(tool.arg(format!("{path}/a/b")), || {
        // The second round is a restart, as of a service.
        for _ in 0..2 {
            let above = Cgroup::new("awaited");
            let beside = above.inside("b");
            let level = above.inside("a");
            others.push(sleep_inside(&level).0);
            others.push(sleep_inside(&beside).0);
            let cgroup = level.inside("b");
            slept.push(sleep_inside(&cgroup));
            let inside = cgroup.inside("inside");
            slept.push(sleep_inside(&inside));
        }
    });
    assert_eq!(rows.len(), slept.len(), "{rows:#?}");
    for slept in slept {
        assert_slept(&rows, slept);
    }
    assert!(rows.iter().all(|row| !others.contains(&row.pid)));
}

#[test]
fn the_first_in_an_empty_cgroup_is_waited_for() {
    let _turn = Turn::share();
    let cgroup = Cgroup::new("empty");
    let tool = Tool::new("offcputime").arg("--cgroup").arg(cgroup.folder());
    let mut slept = None;
    let rows = measure_awaited(tool, || slept = Some(sleep_inside(&cgroup)));
    assert_eq!(rows.len(), 1, "{rows:#?}");
    assert_slept(&rows, slept.unwrap());
}

/// The window opens when the first process enters, however late.
#[test]
fn the_window_begins_with_the_first() {
    let _turn = Turn::share();
    let cgroup = Cgroup::new("late");
    let folder = scratch();
    let tool = Tool::new("offcputime").arg("--cgroup").arg(cgroup.folder());
    let tool = tool.args("--wait --duration 0.2 --clocks clocks -o folded");
    let mut running = tool.in_folder(folder.path()).start();
    running.wait_until_said("Waiting for", PATIENCE);
    std::thread::sleep(Duration::from_millis(500));
    let (pid, _) = sleep_inside(&cgroup);
    running.finish_within(PATIENCE).succeeded();
    let rows = clocks::read(&folder.path().join("clocks"));
    assert!(rows.iter().any(|row| row.pid == pid), "{pid}: {rows:#?}");
}

/// `clone3` creates a process inside a cgroup, without a move.
#[test]
fn who_is_born_in_an_empty_cgroup_is_waited_for() {
    let _turn = Turn::share();
    let cgroup = Cgroup::new("born");
    let tool = Tool::new("offcputime").arg("--cgroup").arg(cgroup.folder());
    let mut slept = None;
    let rows = measure_awaited(tool, || {
        let parent = Workload::start("born_inside", &[cgroup.folder().display()]);
        let pid = u32::try_from(parent.told("child")).unwrap();
        slept = Some((pid, [parent.told("before"), parent.told("after")]));
    });
    assert_eq!(rows.len(), 1, "{rows:#?}");
    assert_slept(&rows, slept.unwrap());
}

/// With `--await-members true` a parent tool says that the cgroup was empty when the parent looked.
/// A process has entered the cgroup since then.
#[test]
fn who_is_inside_already_is_the_first() {
    let _turn = Turn::share();
    let cgroup = Cgroup::new("member");
    let mut sleep = Command::new("sleep");
    sleep.arg("1000");
    let sleep = Running::spawn(sleep, true);
    cgroup.take(sleep.pid());
    let folder = scratch();
    let tool = Tool::new("offcputime").arg("--cgroup").arg(cgroup.folder());
    let tool = tool.args("--wait --await-members true --duration 0.3 --clocks clocks -o folded");
    let running = tool.in_folder(folder.path()).start();
    running.finish_within(PATIENCE).succeeded();
    let rows = clocks::read(&folder.path().join("clocks"));
    let pids: Vec<u32> = rows.iter().map(|row| row.pid).collect();
    assert_eq!(pids, [sleep.pid()]);
}

#[test]
fn a_unit_is_waited_for_wherever_systemd_puts_it() {
    let _turn = Turn::share();
    let id = std::process::id();
    let tool = Tool::new("offcputime").arg("--unit");
    let tool = tool.arg(format!("systemscope-late-{id}"));
    let mut slept = None;
    let rows = measure_awaited(tool, || {
        let name = format!("systemscope-late-{id}.service");
        let other = Cgroup::new("container");
        let others = other.inside("system.slice");
        let of_others = others.inside(&name);
        sleep_inside(&of_others);
        let slice = Cgroup::new("late.slice");
        let inner = slice.inside("late-inner.slice");
        let service = inner.inside(&name);
        slept = Some(sleep_inside(&service));
    });
    assert_eq!(rows.len(), 1, "{rows:#?}");
    assert_slept(&rows, slept.unwrap());
}

/// A slice inside a user's cgroup is not a slice of the system.
#[test]
fn a_user_cannot_pose_as_a_unit_or_a_container_that_is_waited_for() {
    let _turn = Turn::share();
    let id = std::process::id();
    let unit = format!("systemscope-posed-{id}.service");
    let digits = format!("{:064x}", 0xfab0_0000_u64 + u64::from(id));
    let scope = format!("docker-{digits}.scope");
    for (flag, word, name) in [("--unit", &unit, &unit), ("--container", &digits, &scope)] {
        let tool = Tool::new("offcputime").arg(flag).arg(word);
        let mut slept = None;
        let rows = measure_awaited(tool, || {
            let slice = Cgroup::new("posed.slice");
            let manager = slice.inside("user@65534.service");
            manager.delegate();
            let own_slice = manager.inside_by_user("app.slice");
            for above in [&manager, &own_slice] {
                sleep_inside(&above.inside_by_user(name));
            }
            // If root makes a cgroup below the user's own cgroup, the user chooses its path, too.
            sleep_inside(&own_slice.inside(name));
            let of_user = Cgroup::new("users.slice");
            of_user.delegate();
            sleep_inside(&of_user.inside_by_user(name));
            slept = Some(sleep_inside(&slice.inside(name)));
        });
        assert_eq!(rows.len(), 1, "{flag}: {rows:#?}");
        assert_slept(&rows, slept.unwrap());
    }
}

#[test]
fn a_container_that_does_not_run_is_waited_for() {
    let _turn = Turn::share();
    let id = format!("{:064x}", 0xdef0_0000_u64 + u64::from(std::process::id()));
    let id: String = id.chars().rev().collect();
    let state = scratch();
    let files = state.path().join("docker/containers").join(&id);
    fs::create_dir_all(&files).unwrap();
    fs::write(
        files.join("config.v2.json"),
        r#"{"Name": "/systemscope-late"}"#,
    )
    .unwrap();
    for name in ["systemscope-late", &id] {
        let tool = with_runtime_state(state.path(), "offcputime").args("--container");
        let mut slept = None;
        let rows = measure_awaited(tool.arg(name), || {
            let cgroup = Cgroup::new("late-docker.slice");
            let scope = cgroup.inside(&format!("docker-{id}.scope"));
            slept = Some(sleep_inside(&scope));
        });
        assert_eq!(rows.len(), 1, "{rows:#?}");
        assert_slept(&rows, slept.unwrap());
    }
    // A container that does not exist has no ID that a tool can wait for.
    let unknown =
        with_runtime_state(state.path(), "offcputime").args("--wait --container systemscope-lat");
    let told = ["--container", "systemscope-lat", "create it first"];
    assert_refused("offcputime", &unknown.run(), &[WRONG_COMMAND_LINE], &told);
}

#[test]
fn other_tools_wait_for_cgroups_as_well() {
    let _turn = Turn::share();
    let folder = scratch();
    let path = format!("/systemscope-{}-all", std::process::id());
    let waiting = |tool: Tool| {
        let tool = tool.args("--wait --cgroup").arg(&path);
        tool.in_folder(folder.path())
    };
    let mut spans = waiting(Tool::new("cpudist").args("-O --json")).start();
    let mut samples = waiting(Tool::new("oncputime").args("-F 999 -o on.folded")).start();
    let mut wakers = waiting(Tool::new("offwaketime").args("-o wakers.folded")).start();
    let wallclock = waiting(Tool::new("wallclock").args("-d 1 -o run.json"));
    let wallclock = start_measuring(wallclock);
    for tool in [&mut spans, &mut samples, &mut wakers] {
        tool.wait_until_said("Waiting for", PATIENCE);
    }
    let cgroup = Cgroup::new("all");
    let (pid, [before, after]) = sleep_inside(&cgroup);
    let finished = wallclock.finish_within(PATIENCE).succeeded();
    for tool in [&spans, &samples, &wakers] {
        tool.signal(Signal::INT);
    }
    samples.finish_within(PATIENCE).succeeded();
    wakers.finish_within(PATIENCE).succeeded();
    let wakers = fs::read_to_string(folder.path().join("wakers.folded")).unwrap();
    let slept_us: u64 = (wakers.lines().filter(|line| line.starts_with("sleep;")))
        .filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
        .sum();
    assert!(slept_us * 1000 >= LEAST_ASLEEP_NS, "{wakers}");
    let spans = spans.finish_within(PATIENCE).succeeded();
    let spans: serde_json::Value = serde_json::from_slice(&spans.stdout).unwrap();
    let profile = fs::read(folder.path().join("run.json")).unwrap();
    let profile: serde_json::Value = serde_json::from_slice(&profile).unwrap();
    let threads = profile["threads"].as_array().unwrap();
    assert_eq!(threads.len(), 1, "{}", finished.stderr);
    assert_eq!(threads[0]["pid"], pid);
    let blocked = threads[0]["blocked_ns"].as_u64().unwrap();
    assert!(blocked >= LEAST_ASLEEP_NS, "{threads:#?}");
    // The window opens when the process enters. The process sleeps after it has entered.
    let window = profile["meta"]["window"]["start_ns"].as_u64().unwrap();
    let started = threads[0]["started_ns"].as_u64().unwrap();
    for begun in [window, started] {
        assert!(before < begun && begun + LEAST_ASLEEP_NS < after);
    }
    let text = spans.to_string();
    let total = spans["rows"][0]["total_ns"].as_u64();
    assert!(
        total.is_some_and(|total| total >= LEAST_ASLEEP_NS),
        "{text}"
    );
}
