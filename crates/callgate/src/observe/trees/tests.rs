//! What trees hold is judged name by name.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::json;
use tempfile::TempDir;

use super::members;
use crate::policy::{Decision, Policy};
use crate::{Call, Gate};

use Decision::{Allow, Ask, Deny};

/// A project with these files. `a -> b` is a symlink.
fn project(files: &[&str]) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for file in files {
        let (name, target) = file.split_once(" -> ").map_or((*file, None), |(name, target)| (name, Some(target)));
        let path = root(&directory).join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        match target {
            Some(target) => symlink(target, &path).unwrap(),
            None => fs::write(&path, "x\n").unwrap(),
        }
    }
    directory
}

/// Not right in the temporary directory, where names are everybody's.
fn root(directory: &TempDir) -> PathBuf {
    directory.path().join("project")
}

fn decide_call(directory: &Path, call: Call) -> Decision {
    let gate = Gate::builder().policy(Policy::bundled("standard").unwrap()).build();
    gate.assess(&call.directory(directory).workspace(directory)).unwrap().ruling().decision
}

fn decide(directory: &TempDir, command: &str) -> Decision {
    decide_call(&root(directory), Call::new("Bash", json!({"command": command})).shell("bash"))
}

fn check(files: &[&str], cases: &[(&str, Decision)]) {
    let directory = project(files);
    for (command, expected) in cases {
        assert_eq!(decide(&directory, command), *expected, "{command}");
    }
}

#[test]
fn a_search_that_meets_a_secret_is_asked_about() {
    let files = ["src/main.rs", "docs/a.md", "deploy/prod.pem", ".env"];
    check(
        &files,
        &[
            ("grep -rn x src docs", Allow),
            ("grep -rn x .", Ask),
            ("grep -rn x . --include='*.rs'", Allow),
            ("grep -rn x . --include=*.rs", Allow),
            ("grep -rn x . --include='*.p*'", Ask),
            ("grep -rn x . --exclude=.env --exclude='*.pem'", Allow),
            ("grep -rn x . --exclude=.env", Ask),
            ("grep -rn x . --exclude-dir=deploy --exclude=.env", Allow),
            ("grep -rn x . --exclude=.env --include=.env", Ask),
            ("rg x src", Allow),
            ("rg x", Ask),
            ("rg x -g '!*.pem'", Allow),
            ("rg x -g '*.{rs,md}'", Allow),
            ("rg x -g '.e*'", Ask),
            ("rg --hidden x -g '!*.pem'", Ask),
            ("rg -uu x docs", Allow),
            ("tar cf /dev/null .", Ask),
            ("cp -r . /tmp/copy", Ask),
            ("find . -name '*.rs' -exec head {} +", Allow),
            ("find . -name '*.rs' | xargs wc -l", Allow),
            ("find . -type f | xargs wc -l", Ask),
            ("find . -name '*.rs' -o -name '*.pem' | xargs cat", Ask),
            ("find . ! -name '*.pem' | xargs cat", Ask),
            ("cat $(find . -name '*.md')", Allow),
            ("cat $(find . -name '*.p?m')", Ask),
            ("find . -type f", Allow),
            ("ls -R", Allow),
        ],
    );
}

#[test]
fn tools_that_search_meet_secrets_too() {
    let directory = project(&["src/main.rs", ".env", "src/a.ts"]);
    for (tool, input, expected) in [
        ("Grep", json!({"pattern": "x", "path": "src"}), Allow),
        ("Grep", json!({"pattern": "x"}), Ask),
        ("Grep", json!({"pattern": "x", "glob": "*.{ts,rs}"}), Allow),
        ("Grep", json!({"pattern": "x", "glob": "*env*"}), Ask),
        ("Grep", json!({"pattern": "x", "glob": "*.ts .env"}), Ask),
        ("Glob", json!({"pattern": "**/*"}), Allow),
        ("read_many_files", json!({"paths": ["src/**"]}), Allow),
        ("read_many_files", json!({"paths": ["**/*"]}), Ask),
    ] {
        let shown = format!("{tool} {input}");
        let decision = decide_call(&root(&directory), Call::new(tool, input));
        assert_eq!(decision == Allow, expected == Allow, "{shown}: {decision:?}");
    }
}

#[test]
fn links_in_a_tree_are_judged_by_where_they_lead() {
    let directory = project(&["src/a.rs", "in -> src", "bin/tool -> ../src/a.rs"]);
    // Below /tmp everything is a root, so the link leads out of all of them.
    symlink("/srv", root(&directory).join("src/out")).unwrap();
    for (command, expected) in [
        ("grep -r x .", Allow),
        ("grep -R x .", Ask),
        ("grep -R x bin in", Ask),
        ("grep -R x bin", Allow),
        ("rg -L x", Ask),
        ("rg x", Allow),
        ("cp -r src /tmp/copy-of-it/y", Allow),
        ("cp -rL src /tmp/copy-of-it/y", Ask),
        ("find . -type l | xargs cat", Ask),
        ("find . -name '*.rs' | xargs cat", Allow),
        ("find -L . -name '*.rs' | xargs cat", Ask),
        ("ls src | while read f; do cat src/$f/x; done", Ask),
        ("zip -r /dev/null src", Ask),
        ("zip -ry /dev/null src", Allow),
        ("ln -s /etc k; grep -R x k", Ask),
    ] {
        let decision = decide(&directory, command);
        assert_eq!(decision == Allow, expected == Allow, "{command}: {decision:?}");
    }
}

#[test]
fn a_copied_tree_brings_its_links_along() {
    check(
        &["docs/a.md", "docs/out -> /etc/passwd", "b.md"],
        &[
            ("cp -r docs copy; cat copy/out", Ask),
            ("cp -r docs copy; cp b.md copy/out", Ask),
            ("cp b.md c.md; cat c.md", Allow),
            ("cp -r docs copy; cat b.md", Allow),
        ],
    );
}

#[test]
fn what_is_updated_in_place_gets_no_new_names() {
    check(
        &["src/a.py", "src/b.ts", "lib/a.py"],
        &[
            ("ruff check --fix src && ruff format src", Allow),
            ("black src; isort src; grep -rn x src", Allow),
            ("cp -r lib src && ruff format src", Ask),
            ("ln -s /etc src/a && cat src/a/x", Ask),
            ("git stash push src; cat src/a.py", Ask),
        ],
    );
}

#[test]
fn python_meets_the_names_that_its_patterns_match() {
    let python = |code: &str| format!("python3 - <<'E'\nfrom pathlib import Path\n{code}\nE");
    let directory =
        project(&["src/a.ts", "src/Makefile", "src/.env", "docs/a.md", "out/a.md", "out/b.md -> /etc/shadow"]);
    for (code, expected) in [
        ("for p in Path('src').rglob('*.ts'): print(p.read_text())", Allow),
        ("for p in Path('src').rglob('*.ts'): p.write_text('x')", Allow),
        ("for p in Path('docs').iterdir(): p.write_text('x')", Allow),
        ("for p in Path('src').rglob('*'): print(p)", Allow),
        ("for p in Path('src').rglob('*'): print(p.read_text())", Ask),
        ("for p in Path('src').rglob('M*'): p.write_text('x')", Ask),
        ("for p in Path('.').rglob('.e*'): print(p.read_text())", Ask),
        ("for p in Path('out').rglob('*.md'): print(p.read_text())", Ask),
        ("for p in Path('/root').rglob('*.md'): print(p.read_text())", Ask),
        ("Path('docs/b.md').write_text('x')", Allow),
        ("Path('src/Makefile').write_text('x')", Ask),
        ("Path('json.py').write_text('x')", Ask),
        ("p = Path('src') / '../.claude/settings.json'\np.write_text('{}')", Deny),
        ("print(Path('src/.env').read_text())", Deny),
    ] {
        let decision = decide(&directory, &python(code));
        assert!(decision == expected || expected == Ask && decision == Deny, "{code}: {decision:?}");
    }
}

#[test]
fn copies_take_their_names_along() {
    check(
        &["y/settings.json", "y/hooks.md", "z/a", "n/Makefile", "settings", "src/lib.c"],
        &[
            ("cp -r z copy", Allow),
            ("cp -r z/. y", Allow),
            ("cp -r y copy", Ask),
            ("cp -r y .claude", Deny),
            ("cp -rT y .claude", Deny),
            ("cp y/* .claude/", Deny),
            ("cp -r y/. .claude", Deny),
            ("for f in y/*; do cp $f .claude/; done", Deny),
            ("find y -type f -exec cp {} .claude/ \\;", Deny),
            ("rsync -a y/ .claude/", Deny),
            ("ln -s y .claude", Deny),
            ("ln -s ../y z/.claude", Deny),
            ("install y/* .claude/", Deny),
            ("cp -r n .", Ask),
            ("cp -r n/. z", Ask),
            ("cp -S .json -b x .claude/settings", Deny),
            ("cp src/lib.c z/", Allow),
            ("rsync -a src/ z/", Allow),
        ],
    );
}

#[test]
fn members_of_archives_and_patches_are_what_is_written() {
    let directory = project(&["src/a.rs"]);
    let write = |name: &str, bytes: &[u8]| fs::write(root(&directory).join(name), bytes).unwrap();
    let harmless = tar(&[("pkg/src/a.rs", b'0'), ("pkg/docs/", b'5'), ("pkg/docs/b.md", b'0')]);
    write("good.tar", &harmless);
    write("good.tgz", &gzip(&harmless));
    write("bad.tar", &tar(&[("a", b'0'), (".claude/settings.json", b'0')]));
    write("deep.tar", &tar(&[("pkg/.claude/settings.json", b'0')]));
    write("up.tar", &tar(&[("../x", b'0')]));
    write("link.tar", &tar(&[("a", b'2')]));
    write("cut.tar", &harmless[..700]);
    write("text.tar", b"hello");
    write("good.patch", b"--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1 +1 @@\n-x\n+y\n");
    write("bad.patch", b"--- a/Makefile\n+++ b/Makefile\n@@ -1 +1 @@\n-x\n+y\n");
    write("context.patch", b"*** .claude/settings.json\t2020\n--- .claude/settings.json\t2020\n***************\n*** 1 ****\n! x\n--- 1 ----\n! y\n");
    write("ed.patch", b"1c\ny\n.\n");
    write("good.zip", &zip(&["pkg/a.txt"], 0o100_644));
    write("bad.zip", &zip(&[".claude/settings.json"], 0o100_644));
    write("link.zip", &zip(&["a"], 0o120_777));
    for (command, silent) in [
        ("tar xf good.tar", true),
        ("tar xzf good.tgz -C out", true),
        ("tar xf bad.tar", false),
        ("tar xf bad.tar -C src", false),
        ("tar xf deep.tar", false),
        ("tar xf good.tar --strip-components=1", true),
        ("tar xf good.tar --xform=s/a/b/", false),
        ("tar xf up.tar", false),
        ("tar xf link.tar", false),
        ("tar xf cut.tar", false),
        ("tar xf text.tar", false),
        ("cp bad.tar good.tar; tar xf good.tar", false),
        ("cat good.tar | tar x", false),
        ("tar -C src -xf good.tar", false),
        ("unzip good.zip", true),
        ("unzip -d out good.zip", true),
        ("unzip bad.zip", false),
        ("unzip link.zip", false),
        ("7z x good.zip", false),
        ("patch -p1 -i good.patch", true),
        ("git apply --stat good.patch", true),
        ("patch -p1 -i bad.patch", false),
        ("patch -i bad.patch", false),
        ("patch -p1 -i context.patch", false),
        ("patch -p0 -i context.patch", false),
        ("patch -i ed.patch", false),
        ("patch -p1 <<'E'\n--- a/src/a.rs\n+++ b/src/a.rs\nE", true),
        ("patch -p1 <<'E'\n--- a/.claude/settings.json\n+++ b/.claude/settings.json\nE", false),
        ("patch -p1 < good.patch", true),
        ("tar x < good.tar", true),
        ("patch -p1 < bad.patch", false),
        ("tar x < bad.tar", false),
        ("patch -p1 < good.patch < bad.patch", false),
        ("cp bad.patch good.patch; patch -p1 < good.patch", false),
        // Of what several commands read, nobody knows which part the last one sees.
        ("{ head -1; patch -p1; } < good.patch", false),
        ("eval 'head -1; patch -p1' < good.patch", false),
        ("bash -c 'head -1; patch -p1' < good.patch", false),
        ("f() { head -1; patch -p1; }; f < good.patch", false),
        ("eval 'head -1; patch -p1' <<'E'\n--- a/src/a.rs\n+++ b/src/a.rs\nE", false),
        ("grep -v x < good.patch | patch -p1", false),
        ("cat < bad.patch | patch -p1", false),
        ("cat -n < good.patch | patch -p1", false),
        ("cat < good.patch |& patch -p1", false),
        ("while sleep 1; do unzip good.zip; cp bad.zip good.zip; done", false),
        ("(sleep 1; unzip good.zip) & cp bad.zip good.zip", false),
        ("unzip good.zip && rm -f none && make -n", false),
        ("git diff | git apply", false),
        ("gunzip -N x.gz", false),
        ("xz -d -S .y Makefile.y", false),
        ("wget http://localhost/a", false),
        ("curl -O http://localhost/a", false),
    ] {
        let decision = decide(&directory, command);
        assert_eq!(decision == Allow, silent, "{command}: {decision:?}");
    }
}

#[test]
fn what_has_no_input_writes_nothing() {
    let directory = project(&["src/a.rs", "deep/a.rs"]);
    fs::write(root(&directory).join("bad.zip"), zip(&[".claude/settings.json"], 0o100_644)).unwrap();
    for (command, silent) in [
        ("git apply none.patch", true),
        ("patch -p1 < none.patch", true),
        ("patch -p1 -i none.patch", true),
        ("unzip -o none.zip -d public/", true),
        ("tar xf none.tgz", true),
        ("tar xf none/none.tgz", true),
        // unzip adds the suffix, or reads a pattern
        ("unzip bad", false),
        ("unzip BAD", false),
        ("unzip '[b]ad.zip'", false),
        ("unzip 'none*'", false),
        ("cp bad.zip none.zip; unzip none.zip", false),
        ("cp bad.zip none.zip; unzip none", false),
        ("unzip none & cp bad.zip none.zip", false),
        ("while sleep 1; do unzip none.zip; cp bad.zip none.zip; done", false),
        ("ln -s deep d; unzip d/none.zip", false),
        ("unzip none.zip && unzip bad.zip", false),
        ("tar xf none.tar -f bad.zip", false),
        ("unzip -d .claude none.zip", false),
    ] {
        let decision = decide(&directory, command);
        assert_eq!(decision == Allow, silent, "{command}: {decision:?}");
    }
}

#[test]
fn a_damaged_archive_has_no_names_or_the_same_ones() {
    let names = |bytes: &[u8]| members::names_in(bytes, Some(0));
    for whole in [tar(&[("pkg/a", b'0'), ("b", b'0')]), zip(&["pkg/a", "b"], 0o100_644)] {
        let expected = names(&whole).unwrap();
        assert_eq!(expected, ["b", "pkg/a"].map(PathBuf::from));
        for length in 0..whole.len() {
            assert!(names(&whole[..length]).map_or(true, |names| names == expected), "cut at {length}");
        }
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x80;
            let _ = names(&damaged);
        }
    }
}

#[test]
fn a_tree_with_more_names_than_are_looked_at_may_hold_anything() {
    let directory = project(&["small/a", "large/a"]);
    for number in 0..super::walk::MAXIMUM_ENTRIES {
        fs::write(root(&directory).join(format!("large/{number}")), "").unwrap();
    }
    assert_eq!(decide(&directory, "grep -r x small"), Allow);
    assert_eq!(decide(&directory, "grep -r x ."), Ask);
    assert_eq!(decide(&directory, "grep -r x . --exclude-dir=large"), Allow);
}

#[test]
fn a_name_in_another_case_is_not_passed_in_silence() {
    check(
        &["y/settings.json"],
        &[("cp y/settings.json .CLAUDE/settings.json", Ask), ("mkdir build", Allow), ("touch BUILD", Ask)],
    );
}

#[test]
fn what_is_ignored_is_left_out_where_that_is_certain() {
    let directory = project(&["src/a.rs", "out/x.pem", "sub/out/y.pem", ".git/HEAD"]);
    let ignore = |text: &str| fs::write(root(&directory).join(".gitignore"), text).unwrap();
    ignore("out/\n");
    assert_eq!(decide(&directory, "rg x"), Allow);
    assert_eq!(decide(&directory, "rg --no-ignore x"), Ask);
    assert_eq!(decide(&directory, "rg -u x"), Ask);
    assert_eq!(decide(&directory, "grep -r x ."), Ask);
    ignore("/out/\n");
    assert_eq!(decide(&directory, "rg x"), Ask, "only the one in the first directory is ignored");
    ignore("out/\n!sub/out\n");
    assert_eq!(decide(&directory, "rg x"), Ask);
    ignore("out/\n");
    fs::write(root(&directory).join("sub/.ignore"), "!out\n").unwrap();
    assert_eq!(decide(&directory, "rg x"), Ask);
}

fn tar(members: &[(&str, u8)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, kind) in members {
        let mut header = [0_u8; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[100..107].copy_from_slice(b"0000644");
        header[124..135].copy_from_slice(b"00000000001");
        if *kind != b'0' {
            header[124..135].copy_from_slice(b"00000000000");
        }
        header[156] = *kind;
        header[257..265].copy_from_slice(b"ustar\x0000");
        header[148..156].fill(b' ');
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        bytes.extend(header);
        if *kind == b'0' {
            bytes.extend([b'x'; 1]);
            bytes.resize(bytes.len().next_multiple_of(512), 0);
        }
    }
    bytes.resize(bytes.len() + 1024, 0);
    bytes
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zip(names: &[&str], mode: u32) -> Vec<u8> {
    let (mut bytes, mut directory) = (Vec::new(), Vec::new());
    for name in names {
        let length = u16::try_from(name.len()).unwrap().to_le_bytes();
        let local = u32::try_from(bytes.len()).unwrap().to_le_bytes();
        bytes.extend(b"PK\x03\x04");
        bytes.extend([0; 22]);
        bytes.extend(length);
        bytes.extend([0; 2]);
        bytes.extend(name.as_bytes());
        directory.extend(b"PK\x01\x02");
        directory.extend([0; 24]);
        directory.extend(length);
        directory.extend([0; 8]);
        directory.extend((mode << 16).to_le_bytes());
        directory.extend(local);
        directory.extend(name.as_bytes());
    }
    let start = u32::try_from(bytes.len()).unwrap().to_le_bytes();
    let size = u32::try_from(directory.len()).unwrap().to_le_bytes();
    let count = u16::try_from(names.len()).unwrap().to_le_bytes();
    bytes.extend(directory);
    bytes.extend(b"PK\x05\x06");
    bytes.extend([0; 4]);
    bytes.extend(count);
    bytes.extend(count);
    bytes.extend(size);
    bytes.extend(start);
    bytes.extend([0; 2]);
    bytes
}

#[test]
fn an_archive_that_programs_read_differently_has_no_names() {
    let names = |bytes: &[u8]| members::names_in(bytes, Some(0));
    let resized = |at: usize, size: &[u8; 12]| {
        let mut bytes = tar(&[("a", b'0'), ("d/", b'5'), (".claude/settings.json", b'0')]);
        bytes[at + 124..at + 136].copy_from_slice(size);
        bytes[at + 148..at + 156].fill(b' ');
        let sum: u32 = bytes[at..at + 512].iter().map(|byte| u32::from(*byte)).sum();
        bytes[at + 148..at + 156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        bytes
    };
    assert!(names(&resized(0, b"00000000001\0")).is_ok());
    // a directory with contents, which some skip
    let directory = tar(&[("a", b'0')]).len() - 1024;
    assert!(names(&resized(directory, b"00000001000\0")).is_err());
    // a number in another notation
    assert!(names(&resized(0, b"+1\0\0\0\0\0\0\0\0\0\0")).is_err());
    // two archives in one file
    let (first, second) = (tar(&[("a", b'0')]), zip(&["b"], 0o100_644));
    assert!(names(&[first.clone(), second.clone()].concat()).is_err());
    assert!(names(&tar(&[("PK\x03\x04", b'0')])).is_err());
    assert!(names(&[first.clone(), first].concat()).is_err());
    // a second directory in front of the one that counts
    let mut moved = second.clone();
    let end = moved.len() - 22;
    moved.splice(end..end, *b"more");
    assert!(names(&moved).is_err());
    assert!(names(&second).is_ok());
}

#[test]
fn a_patch_that_programs_read_differently_has_no_names() {
    let hunk = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-x\n+y\n";
    let names = |more: &str| members::of_patch(&format!("{hunk}{more}"), Some(1));
    for more in [
        "",
        "\\ No newline at end of file\n",
        "@@ -9,2 +9,3 @@ fn x\n a\n\n+--- b/Makefile\n",
        "diff --git a/b b/b\nnew file mode 100644\nindex 0..1\n--- /dev/null\n+++ b/b\n@@ -0,0 +1 @@\n+x\n",
        "-- \n2.39.2\n",
        "From: Ada\nSubject: more\n\n---\n a.txt | 2 +-\n",
    ] {
        assert!(names(more).is_ok(), "{more}");
    }
    for more in [
        "X--- /dev/null\nX+++ .claude/settings.json\nX@@ -0,0 +1 @@\nX+x\n",
        "  +++ b/Makefile\n",
        "- --- b/Makefile\n",
        "--- \n",
        "*** b/Makefile\n--- b/Makefile\n",
        "@@ -1,9 +1 @@\n-x\n+y\n",
        "@@ -1 +1 @@\nx\n",
        "1c\ny\n.\n",
        "--- a/b\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n",
        "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+.claude\n",
        "diff --git a/l b/l\ndeleted file mode 100644\n",
        "GIT binary patch\n",
        "+++ b/a\r\n",
    ] {
        assert!(names(more).is_err(), "{more}");
    }
    let tab = members::of_patch("--- \t/dev/null\n+++ \t.claude/settings.json\n@@ -0,0 +1 @@\n+x\n", Some(0)).unwrap();
    assert_eq!(tab, [PathBuf::from(".claude/settings.json")]);
}
