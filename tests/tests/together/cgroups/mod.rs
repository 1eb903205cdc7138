//! Cgroups, units and containers as targets, and bcc's filters.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod awaited;
mod podman;

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use libbpf_rs::MapType;
use systemscope_tests::printed::refusal::{FAILED, FOLDING, WRONG_COMMAND_LINE, assert_refused};
use systemscope_tests::programs::cgroup::mount;
use systemscope_tests::programs::tool::{PATIENCE, TOOLS};
use systemscope_tests::programs::wallclock::start_measuring;
use systemscope_tests::programs::workload::scratch;
use systemscope_tests::{Cgroup, Container, Folded, PinnedMap, Tool, Turn, Workload, binary};
use tempfile::TempDir;

fn processes(folded: &Folded) -> HashSet<u32> {
    let threads = folded.lines.iter().map(|line| line.thread.unwrap());
    threads.map(|(pid, _)| pid).collect()
}

/// Returns a tool that measures for 1 s. The caller must add a target.
fn brief(tool: &str) -> Tool {
    match tool {
        "wallclock" => Tool::new(tool).args("-d 1"),
        "cpudist" => Tool::new(tool).args("1 1"),
        _ => Tool::new(tool).args("--duration 1"),
    }
}

/// Three cgroups with a program each: an inner one, the outer one that contains it, and one beside
/// them.
struct Family {
    cgroups: [Cgroup; 3],
    programs: [Workload; 3],
}

impl Family {
    fn new(name: &str) -> Family {
        let outer = Cgroup::new(name);
        let inner = outer.inside("inner");
        let beside = Cgroup::new(&format!("{name}-not"));
        // The order in which the cgroups are removed.
        let cgroups = [inner, outer, beside];
        let programs = cgroups.each_ref().map(|cgroup| {
            let simple = Workload::plain("simple");
            cgroup.take(simple.pid());
            simple
        });
        Family { cgroups, programs }
    }
}

#[test]
fn what_is_in_a_cgroup_or_below_it_is_measured() {
    let _turn = Turn::share();
    let family = Family::new("family");
    let [below, above, _] = &family.programs;
    for tool in FOLDING {
        let tool = Tool::attentive(tool).args("--cgroup");
        let folded = tool.arg(family.cgroups[1].folder()).folded_per_thread(0.5);
        let expected = HashSet::from([above.pid(), below.pid()]);
        assert_eq!(processes(&folded), expected, "{folded}");
    }
}

#[test]
fn a_cgroup_has_several_paths_and_there_may_be_several() {
    let _turn = Turn::share();
    let family = Family::new("paths");
    let [inner, outer, beside] = &family.cgroups;
    let [below, above, other] = &family.programs;
    for path in [outer.path(), outer.path().trim_start_matches('/')] {
        let folded = Tool::new("offcputime").args("--cgroup").arg(path);
        let seen = processes(&folded.folded_per_thread(0.5));
        assert_eq!(seen, HashSet::from([above.pid(), below.pid()]), "{path}");
    }
    let two = Tool::new("offcputime").args(&format!("--cgroup {} --cgroup", inner.path()));
    let seen = processes(&two.arg(beside.path()).folded_per_thread(0.5));
    assert_eq!(seen, HashSet::from([below.pid(), other.pid()]));
}

#[test]
fn what_is_measured_is_told() {
    let _turn = Turn::share();
    let cgroup = Cgroup::new("told");
    let finished = brief("offcputime")
        .arg("--cgroup")
        .arg(cgroup.folder())
        .run();
    let said = format!("of cgroup {} by", cgroup.path());
    assert!(finished.stderr.contains(&said), "{}", finished.stderr);
    assert_eq!(finished.code, Some(0));
    // The cgroup is empty and stays empty.
    assert!(finished.stdout.is_empty());
}

#[test]
fn what_lies_deep_below_a_cgroup_is_measured() {
    const LEVELS: usize = 150;
    let _turn = Turn::share();
    let mut cgroups = vec![Cgroup::new("deep")];
    for _ in 0..LEVELS {
        cgroups.insert(0, cgroups[0].inside("d"));
    }
    let simple = Workload::plain("simple");
    cgroups[0].take(simple.pid());
    for tool in FOLDING {
        let tool = Tool::attentive(tool).args("--cgroup");
        let folded = tool.arg(cgroups[LEVELS].folder()).folded_per_thread(0.5);
        assert_eq!(
            processes(&folded),
            HashSet::from([simple.pid()]),
            "{folded}"
        );
    }
}

#[test]
fn a_unit_is_its_cgroup() {
    let _turn = Turn::share();
    let id = std::process::id();
    let slice = Cgroup::new("units.slice");
    let service = slice.inside(&format!("systemscope-web-{id}.service"));
    let simple = Workload::plain("simple");
    service.take(simple.pid());
    for name in [
        format!("systemscope-web-{id}"),
        format!("systemscope-web-{id}.service"),
    ] {
        let folded = Tool::new("offcputime").arg("--unit").arg(&name);
        assert_eq!(
            processes(&folded.folded_per_thread(1.0)),
            HashSet::from([simple.pid()])
        );
    }
    for tool in TOOLS {
        let misspelt = format!("systemscope-wbe-{id}");
        let finished = brief(tool).arg("--unit").arg(&misspelt).run();
        let told = [
            "--unit",
            &*misspelt,
            service.path().rsplit('/').next().unwrap(),
        ];
        assert_refused(tool, &finished, &[WRONG_COMMAND_LINE], &told);
    }
}

/// Returns a tool that sees the files of container runtimes below `state`.
fn with_runtime_state(state: &Path, tool: &str) -> Tool {
    fs::create_dir_all("/var/lib").unwrap();
    Tool::at(Path::new("unshare"))
        .args("--mount sh -c")
        .arg("mount --bind \"$0\" /var/lib && exec \"$@\"")
        .arg(state)
        .arg(binary(tool))
}

/// Writes Docker's configuration of a container.
fn docker_state(id: &str, name: &str) -> TempDir {
    let state = scratch();
    let files = state.path().join("docker/containers").join(id);
    fs::create_dir_all(&files).unwrap();
    let config = format!(r#"{{"ID": "…", "Name": "/{name}"}}"#);
    fs::write(files.join("config.v2.json"), config).unwrap();
    state
}

/// Returns a container ID whose first digits belong to this process alone.
fn container_id(kind: u64) -> String {
    let id = format!("{:064x}", kind + u64::from(std::process::id()));
    id.chars().rev().collect()
}

#[test]
fn a_container_is_its_cgroup() {
    let _turn = Turn::share();
    let id = container_id(0xabc0_0000_0000);
    let state = docker_state(&id, "systemscope-web");
    let slice = Cgroup::new("docker.slice");
    let cgroup = slice.inside(&format!("docker-{id}.scope"));
    let simple = Workload::plain("simple");
    cgroup.take(simple.pid());

    for name in ["systemscope-web", &id, &id[..12]] {
        let folded = with_runtime_state(state.path(), "offcputime")
            .arg("--container")
            .arg(name);
        assert_eq!(
            processes(&folded.folded_per_thread(1.0)),
            HashSet::from([simple.pid()]),
            "{name}"
        );
    }
    let tool = with_runtime_state(state.path(), "offcputime").args("--duration 1 --container");
    let finished = tool.arg("systemscope-wbe").run();
    let told = ["--container", "systemscope-wbe", "systemscope-web"];
    assert_refused("offcputime", &finished, &[WRONG_COMMAND_LINE], &told);
}

/// A user can read the IDs of all containers and the names of all units. The user makes cgroups of
/// the same names where systemd lets users make cgroups.
#[test]
fn a_user_cannot_pose_as_a_unit_or_a_container() {
    let _turn = Turn::share();
    let id = container_id(0xabd0_0000_0000);
    let unit = format!("systemscope-posed-{}.service", std::process::id());
    let state = docker_state(&id, "systemscope-posed");
    let slice = Cgroup::new("posed.slice");
    let manager = slice.inside("user@65534.service");
    manager.delegate();
    let escape = manager.inside_by_user("\u{1b}[31m.slice");
    let scope = format!("docker-{id}.scope");
    let posed = [&unit, &scope].map(|name| {
        let cgroup = escape.inside_by_user(name);
        let simple = Workload::plain("simple");
        cgroup.take(simple.pid());
        (cgroup, simple)
    });
    let measured = |flag: &str, word: &str| {
        let tool = with_runtime_state(state.path(), "offcputime")
            .arg(flag)
            .arg(word);
        processes(&tool.folded_per_thread(0.5))
    };
    let words = [
        ("--unit", &*unit),
        ("--container", "systemscope-posed"),
        ("--container", &id[..12]),
    ];
    for (flag, word) in words {
        let tool = with_runtime_state(state.path(), "offcputime").args("--duration 1");
        let finished = tool.arg(flag).arg(word).run();
        let told = [flag, word, "with --cgroup", "posed.slice"];
        assert_refused("offcputime", &finished, &[WRONG_COMMAND_LINE], &told);
        assert!(!finished.stderr.contains('\u{1b}'), "{}", finished.stderr);
    }
    let [(of_unit, in_unit), (_, in_container)] = &posed;
    let only = |simple: &Workload| HashSet::from([simple.pid()]);
    assert_eq!(measured("--cgroup", of_unit.path()), only(in_unit));
    assert_eq!(measured("--container", &id), only(in_container));

    // If cgroups of the system also have these names, the tools choose only these cgroups.
    let simple = Workload::plain("simple");
    for (flag, word) in words.into_iter().chain([("--container", &*id)]) {
        let cgroup = slice.inside(if flag == "--unit" { &unit } else { &scope });
        cgroup.take(simple.pid());
        assert_eq!(measured(flag, word), only(&simple), "{flag} {word}");
    }
}

#[test]
fn a_name_of_several_cgroups_is_refused_with_their_paths() {
    let _turn = Turn::share();
    let unit = format!("systemscope-twice-{}.service", std::process::id());
    let digits = &container_id(0xabe0_0000_0000)[..60];
    let [one, other] = ["one.slice", "other.slice"].map(Cgroup::new);
    let cgroups = [
        one.inside(&unit),
        other.inside(&unit),
        one.inside(&format!("docker-{digits}0000.scope")),
        other.inside(&format!("docker-{digits}1111.scope")),
    ];
    for (flag, word, cgroups) in [
        ("--unit", &*unit, &cgroups[..2]),
        ("--container", digits, &cgroups[2..]),
    ] {
        let finished = brief("offcputime").arg(flag).arg(word).run();
        let told = [flag, cgroups[0].path(), cgroups[1].path()];
        assert_refused("offcputime", &finished, &[WRONG_COMMAND_LINE], &told);
    }
}

#[test]
fn cgroups_that_cannot_be_are_refused() {
    let _turn = Turn::share();
    let cgroup = Cgroup::new("refused");
    let misspelt = cgroup.path().replace("refused", "refusde");
    let folder = mount();
    let folder = folder.to_str().unwrap();
    let cgroup_name = cgroup.path().trim_start_matches('/');
    let _simple = Workload::plain("simple");
    for tool in TOOLS {
        for (path, told) in [
            ("/proc", [folder, "outside"]),
            ("/a/../b", [folder, "goes up"]),
            (&*misspelt, ["no such cgroup", cgroup_name]),
        ] {
            let finished = brief(tool).arg("--cgroup").arg(path).run();
            let words = [path, told[0], told[1]];
            assert_refused(tool, &finished, &[WRONG_COMMAND_LINE], &words);
        }
        let finished = brief(tool).args("--container no-such-container").run();
        let words = ["no-such-container"];
        assert_refused(tool, &finished, &[WRONG_COMMAND_LINE], &words);
        let both = brief(tool).args("--cgroup / -n simple").run();
        assert_refused(tool, &both, &[WRONG_COMMAND_LINE], &["--cgroup"]);
    }
}

#[test]
fn a_machine_without_version_2_is_told_so() {
    let _turn = Turn::share();
    for flag in ["--cgroup", "--unit", "--container"] {
        let tool = Tool::at(Path::new("unshare")).args("--mount sh -c");
        let tool = tool.arg("umount -l \"$0\" && exec \"$@\"").arg(mount());
        let tool = tool.arg(binary("offcputime")).arg(flag).arg("any");
        let told = [flag, "cgroups", "or choose processes with -p"];
        assert_refused("offcputime", &tool.run(), &[WRONG_COMMAND_LINE], &told);
    }
}

/// A cgroup in the map is measured without its descendants.
#[test]
fn bccs_map_of_cgroups_says_who_is_let_through() {
    let _turn = Turn::share();
    let family = Family::new("mapped");
    let cgroups = PinnedMap::of_ids();
    cgroups.add(family.cgroups[1].id());
    for tool in FOLDING {
        let folded = Tool::attentive(tool).arg("--cgroupmap").arg(cgroups.path());
        let seen = processes(&folded.folded_per_thread(0.5));
        assert_eq!(seen, HashSet::from([family.programs[1].pid()]), "{tool}");
    }
}

#[test]
fn bccs_map_of_mount_namespaces_says_who_is_let_through() {
    let _turn = Turn::share();
    let other = Workload::plain("simple");
    let container = Container::start();
    let namespaces = PinnedMap::of_ids();
    let namespace = format!("/proc/{}/ns/mnt", container.outer_pid);
    namespaces.add(fs::metadata(namespace).unwrap().ino());
    for tool in ["oncputime", "offcputime"] {
        let folded = Tool::attentive(tool)
            .arg("--mntnsmap")
            .arg(namespaces.path());
        let folded = folded.folded_per_thread(0.5);
        let inside = folded.of_thread(container.outer_pid).total();
        let outside = folded.of_thread(other.pid()).total();
        assert!(inside > 0 && outside == 0, "{tool}: {folded}");
    }
}

#[test]
fn bccs_maps_come_on_top_of_another_choice() {
    let _turn = Turn::share();
    let family = Family::new("on-top");
    let [below, above, _] = &family.programs;
    let cgroups = PinnedMap::of_ids();
    cgroups.add(family.cgroups[1].id());
    let measure = |pids: &str| {
        let tool = Tool::new("offcputime").arg("-p").arg(pids);
        let tool = tool.arg("--cgroupmap").arg(cgroups.path());
        processes(&tool.folded_per_thread(0.5))
    };
    let both = format!("{},{}", above.pid(), below.pid());
    assert_eq!(measure(&both), HashSet::from([above.pid()]));
    assert_eq!(measure(&below.pid().to_string()), HashSet::new());
    let tool = Tool::new("offcputime")
        .args("--cgroup")
        .arg(family.cgroups[0].path());
    let tool = tool.arg("--cgroupmap").arg(cgroups.path());
    assert!(tool.folded_per_thread(0.5).lines.is_empty());
}

#[test]
fn maps_of_another_kind_are_refused() {
    let _turn = Turn::share();
    let array = PinnedMap::new(MapType::Array, 4, "array");
    let narrow = PinnedMap::new(MapType::Hash, 4, "narrow");
    let ours = PinnedMap::new(MapType::Hash, 8, "events");
    for flag in ["--cgroupmap", "--mntnsmap"] {
        for (map, told) in [
            (&array, "keys of 8 bytes"),
            (&narrow, "keys of 8 bytes"),
            (&ours, "another name"),
        ] {
            let finished = brief("offcputime").arg(flag).arg(map.path()).run();
            assert_refused("offcputime", &finished, &[FAILED], &[told]);
        }
        let nothing = array.folder().join("nothing");
        let finished = brief("offcputime").arg(flag).arg(&nothing).run();
        let told = [nothing.to_str().unwrap()];
        assert_refused("offcputime", &finished, &[FAILED], &told);
    }
}

#[test]
fn wallclock_shows_whoever_is_inside() {
    let _turn = Turn::share();
    let cgroup = Cgroup::new("wallclock");
    let first = Workload::plain("simple");
    cgroup.take(first.pid());
    let folder = scratch();
    let tool = Tool::new("wallclock").args("-d 2 -o out --cgroup");
    let running = start_measuring(tool.arg(cgroup.path()).in_folder(folder.path()));
    sleep(Duration::from_millis(500));
    let second = Workload::plain("simple");
    cgroup.take(second.pid());
    let finished = running.finish_within(PATIENCE).succeeded();
    let told = String::from_utf8(finished.stdout).unwrap();
    for simple in [&first, &second] {
        let pid = simple.pid();
        assert!(told.contains(&format!("\nsimple (PID {pid}) · ")), "{told}");
        let combined = folder
            .path()
            .join(format!("out/files/pid{pid}/combined.folded"));
        assert!(combined.is_file(), "{told}");
    }
}
