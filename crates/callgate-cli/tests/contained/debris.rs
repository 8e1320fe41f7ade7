//! The wrapper is killed at random moments, and many run at once: the workspace stays as it was and nothing stays behind.

use std::process::Stdio;
use std::time::Duration;

use crate::case::Case;
use crate::run::Wrapper;
use crate::world::{Detail, Tree, User, World, differences, list, wait_until};

fn workspace(world: &World) -> Tree {
    let mut tree = Tree::new();
    list(&world.workspace, &mut tree, Detail::Everything);
    tree
}

#[test]
fn killed_at_random_moments_it_leaves_the_workspace_as_it_was() {
    let case = Case { class: "debris", ..Case::default() };
    let user = User::ordinary();
    let world = World::new(&case, user);
    world.outside_step("mkdir .vscode; echo x > .env; ln -s @outside@ .claude");
    let before = workspace(&world);
    let known = world.processes();
    let mut words = Wrapper::Callgate.words(&world, &case);
    words.extend(["sleep", "20"].map(str::to_owned));
    for round in 0..60_u64 {
        let mut command = user.command(words.first().expect("the command"), &world.home);
        command.args(words.iter().skip(1)).current_dir(&world.workspace).env("SUITE_MARK", &world.mark);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        // from the very beginning to well after the command has started, in steps that do not repeat
        std::thread::sleep(Duration::from_micros(round * round * 17 + round * 131 % 997));
        child.kill().expect("it is our child");
        child.wait().expect("it is our child");
        assert!(
            wait_until(Duration::from_secs(3), || world.processes().iter().all(|id| known.contains(id))),
            "round {round}: a process is still alive"
        );
        let found = differences(&before, &workspace(&world));
        assert!(found.is_empty(), "round {round}: {found:?}");
    }
    world.outside_step("mkdir .ghost");
    assert!(!differences(&before, &workspace(&world)).is_empty(), "the comparison sees nothing");
}

#[test]
fn many_at_once_leave_nothing() {
    let case = Case { class: "debris", ..Case::default() };
    let user = User::ordinary();
    let world = World::new(&case, user);
    let before = workspace(&world);
    let known = world.processes();
    let mut words = Wrapper::Callgate.words(&world, &case);
    words.extend(["/bin/bash", "-c", "cat README.md; echo x > .envrc; exit 7"].map(str::to_owned));
    let children: Vec<_> = (0..40)
        .map(|_| {
            let mut command = user.command(words.first().expect("the command"), &world.home);
            command.args(words.iter().skip(1)).current_dir(&world.workspace).env("SUITE_MARK", &world.mark);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
        })
        .collect();
    for child in children {
        let ended = child.wait_with_output().expect("it is our child");
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(
            (ended.status.code(), String::from_utf8_lossy(&ended.stdout).as_ref()),
            (Some(7), "read me\n"),
            "{said}"
        );
    }
    assert!(
        wait_until(Duration::from_secs(3), || world.processes().iter().all(|id| known.contains(id))),
        "a process is still alive"
    );
    let found = differences(&before, &workspace(&world));
    assert!(found.is_empty(), "{found:?}");
}
