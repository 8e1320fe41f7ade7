//! Classes of bypasses that broke similar gates, with cases for each.

use super::check;
use crate::programs::store::bundled_files;

/// Checks commands against the effects they must have, in the form of a table's examples.
#[track_caller]
fn hold(examples: &[&str]) {
    let mut text = String::from(
        "lesson-helper: read and write\n  --pre <run-file>\n  --output -o <write>\n  args: <read>*\n  globs unsafe\n",
    );
    for example in examples {
        text.push_str(&format!("  example {example}\n"));
    }
    let mut files = bundled_files().to_vec();
    files.push(("lesson", &text));
    let wrong: Vec<String> = check(&files).into_iter().filter(|finding| finding.starts_with("lesson:")).collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn wrappers_do_not_hide_what_they_wrap() {
    hold(&[
        "sudo -u root -H cp a b => privilege, read a, write b",
        "doas cp a b => privilege, read a, write b",
        "env -i A=/x cp a b => read a, write b",
        "env -i TMPDIR=/x cp a b => read a, write b, opaque",
        "env -i PATH=/x cp a b => read a, write b, opaque",
        "env -S 'X=1 cp a b' => read a, write b",
        "env -vS 'cp a' b => read a, write b",
        "env -u HOME -- cp a b => read a, write b",
        "env --chdir dir cp a b => read dir/a, write dir/b",
        "nice -n19 ionice -c3 nohup setsid cp a b => write nohup.out, read a, write b",
        "timeout --kill-after=1 -s9 5 time -p stdbuf -o0 cp a b => read a, write b",
        "flock /tmp/l -c 'cp a b' => write /tmp/l, read a, write b",
        "watch -n 1 -d 'cp a b' => read a, write b",
        "busybox sh -c 'cp a b' => read a, write b",
        "su root -c 'cp a b' => privilege, read a, write b",
        "script -q -c 'cp a b' /dev/null => read a, write b",
        "chroot --userspec=me / cp a b => privilege, read a !elsewhere, write b !elsewhere",
        "/lib/ld-linux-aarch64.so.1 --argv0 x /usr/bin/cp a b => run file /lib/ld-linux-aarch64.so.1, read a, write b",
        "systemd-run --user --wait cp a b => privilege, read a, write b",
    ]);
}

#[test]
fn an_option_of_the_inner_command_is_not_one_of_the_wrapper() {
    hold(&[
        "timeout 5 cp --help =>",
        "sudo cp -t dir a => privilege, read a, write dir",
        "nice cp --frobnicate a b => read a, write b, opaque",
        "xargs -n1 cp -t dir => read ./**, write dir",
        "ssh host cp -r a b => send host, read a tree !elsewhere, write b !elsewhere",
    ]);
}

#[test]
fn a_wrapper_with_an_unknown_option_is_not_understood() {
    hold(&[
        "sudo --frobnicate x cp a b => privilege, opaque",
        "timeout --frob 5 cp a b => opaque, read a, write b",
        "env --frob=x cp a b => opaque, read a, write b",
        "nice $x cp a b => opaque",
    ]);
}

#[test]
fn shells_take_their_source_from_everywhere() {
    hold(&[
        "sh -c 'cp a b' => read a, write b",
        "bash -lc 'cp a b' => read a, write b",
        "bash -xc 'cp a b' => read a, write b",
        "bash -euxo pipefail -c 'cp a b' => read a, write b",
        "bash --norc -c 'cp a b' zero one => read a, write b",
        "bash +x -c 'cp a b' => read a, write b",
        "bash -c \"$x\" => opaque",
        "echo cp a b | bash => read a, write b, opaque",
        "printf 'cp a b' | sh -s => read a, write b, opaque",
        "echo -e x | sh => opaque",
        "bash ./x.sh => run file x.sh",
        "bash - => ",
    ]);
}

#[test]
fn names_are_followed_through_pipes_and_searches() {
    hold(&[
        "find src -type f -exec cp -t out {} + => list src tree, read src/**, write out",
        "find / -delete => list / tree, delete / tree",
        "find . -exec sh -c 'cp a b' \\; => list . tree, read a, write b",
        "find . -exec sh -c {} \\; => list . tree, opaque",
        "find . -name x -okdir cp {} out \\; => list . tree, list **/x, read ./**, write out",
        "fd -e rs . src -x cp {} out => list src tree, read src/**, write out",
        "find src | xargs -I{} sh -c 'cp {} out' => list src tree, opaque",
        "cp a b | xargs cp -t out => read a, write b, write out, opaque",
        "find src -printf %f | xargs cp -t out => list src tree, write out, opaque",
        "parallel cp {} out ::: 'a;b' => opaque",
    ]);
}

#[test]
fn flags_that_run_or_write_are_found_in_every_spelling() {
    hold(&[
        "lesson-helper a --output x => read a, write x",
        "lesson-helper a --out=x => read a, write x",
        "lesson-helper a --o=x => read a, write x",
        "lesson-helper a -ox => read a, write x",
        "lesson-helper '--output' x a => read a, write x",
        "lesson-helper \"-o\"x a => read a, write x",
        "lesson-helper --pre ./evil a => run file evil, read a",
        "lesson-helper --pr=./evil a => run file evil, read a",
        "lesson-helper --p ./evil a => run file evil, read a",
        "lesson-helper a -- --output x => read a, read --output, read x",
        "lesson-helper -x a => opaque, read a",
        "lesson-helper * => opaque, read *",
        "lesson-helper -* => opaque, read -*",
    ]);
}

#[test]
fn remote_shells_and_terminals_run_what_they_are_told() {
    hold(&[
        "ssh -i key -p 2222 me@HOST.example. 'cp a b' => read key, send host.example, read a !elsewhere, write b !elsewhere",
        "ssh -o ProxyCommand='sh -c id' host => send host, opaque",
        "ssh -o StrictHostKeyChecking=no -oLocalCommand=x host => send host, opaque",
        "ssh -F ./config host => read config, send host, opaque",
        "tmux send-keys -t 0 'cp a b' Enter => opaque",
        "tmux new-session -d 'cp a b' => read a, write b",
        "screen -S x -X stuff 'cp a b' => opaque",
    ]);
}
