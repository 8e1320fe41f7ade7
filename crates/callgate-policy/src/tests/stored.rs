//! A stored policy says what the compiled one says, or nothing is believed of it.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::{CompiledLayers, Locations, PolicyCache};

/// A home with a policy of its own and a cache.
struct Home {
    directory: tempfile::TempDir,
    cache: PolicyCache,
}

impl Home {
    fn new(policy: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("callgate.yaml"), policy).unwrap();
        let cache = PolicyCache::new(directory.path().join("cache"));
        let home = Self { directory, cache };
        home.age();
        home
    }

    /// Gives the policy another time.
    fn age(&self) {
        let file = std::fs::File::options().append(true).open(self.file()).unwrap();
        file.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(60)).unwrap();
    }

    fn file(&self) -> std::path::PathBuf {
        self.directory.path().join("callgate.yaml")
    }

    fn locations(&self) -> Locations {
        Locations { user: Some(self.file()), workspace: Some("/w".into()), ..Locations::default() }
    }

    fn load(&self) -> CompiledLayers {
        let mut loaded = Policy::layered_from(Some(&self.cache), &self.locations()).unwrap();
        let policy = Arc::into_inner(loaded.policy).unwrap();
        loaded.policy = Arc::new(policy.with_home("/home/me"));
        loaded
    }

    /// Loads, stores what is new, and loads again.
    fn stored(&self) -> CompiledLayers {
        self.load().save(&self.cache);
        let loaded = self.load();
        if !loaded.is_new {
            return loaded;
        }
        // Compiling took so long that the file's stamp can be believed now, so it was done once more.
        loaded.save(&self.cache);
        let loaded = self.load();
        assert!(!loaded.is_new);
        loaded
    }

    fn stored_file(&self) -> std::path::PathBuf {
        let mut files = std::fs::read_dir(self.cache.directory()).unwrap();
        files.next().unwrap().unwrap().path()
    }
}

fn scenes() -> Vec<Scene> {
    let mut scenes: Vec<Scene> =
        ["ls -l", "git push --force", "rm -rf /w/x", "curl https://example.com", "frob", "sudo ls"]
            .map(Scene::shell)
            .into();
    for place in ["/home/me/.ssh/id_rsa", "/w/src/main.rs", "/w/.env", "/etc/passwd", "/usr/bin/ls", "/w/.git/config"] {
        for action in [Action::Read, Action::Write, Action::Delete, Action::List] {
            scenes.push(Scene::tool("Read").effect(path(action, place)));
        }
    }
    for name in ["example.com", "169.254.169.254", "localhost", "api.internal"] {
        scenes.push(Scene::shell("curl x").effect(host(Action::Connect, Some(name))));
    }
    scenes.push(Scene::shell("curl x").effect(host(Action::Connect, None)));
    scenes.push(Scene::custom("github/search"));
    scenes.push(Scene::custom("mail_send").input(json!({"to": "a@example.com"})));
    scenes
}

const OWN: &str = r#"
extends: standard
rules:
  - {name: mail, tools: [mail_send], when: 'input.to.endsWith("@example.com")', action: allow}
  - {name: hub, tools: [{server: github}], action: deny}
  - {name: frob, commands: ["frob **"], action: allow}
  - {name: pattern, command_patterns: ['push\s+--force'], action: deny, reason: no force}
  - {name: inner, hosts: ["*.internal", "10.0.0.0/8"], action: deny}
"#;

#[test]
fn a_stored_policy_says_the_same_in_the_same_words() {
    let home = Home::new(OWN);
    let compiled = Policy::layered(&home.locations()).unwrap().with_home("/home/me");
    let stored = home.stored().policy;
    assert_eq!(stored.version(), compiled.version());
    assert_eq!(stored.boundary_settings(), compiled.boundary_settings());
    for scene in scenes() {
        assert_eq!(scene.judge(&stored), scene.judge(&compiled));
    }
    assert!(!stored.is_damaged());
}

#[test]
fn ten_thousand_rules_are_not_read_for_one_call() {
    let mut text = String::from("default: ask\nrules:\n");
    for number in 0..10_000 {
        text.push_str(&format!("  - {{name: rule-{number}, commands: [\"tool{number} do **\"], action: deny}}\n"));
    }
    let home = Home::new(&text);
    let stored = home.stored().policy;
    let file = home.stored_file();
    let size = std::fs::metadata(&file).unwrap().len();
    assert!(size > 1_000_000, "{size}");
    // What is cut off is not missed as long as nothing in it is needed.
    assert_eq!(Scene::shell("tool77 do it").decide(&stored), Decision::Deny);
    std::fs::File::options().write(true).open(&file).unwrap().set_len(64 << 10).unwrap();
    assert_eq!(Scene::shell("tool77 do it").decide(&stored), Decision::Deny);
    assert!(!stored.is_damaged());
    assert_eq!(
        Scene::shell("tool5077 do it").judge(&stored).ruling.reason,
        "the cached policy is damaged; it will be compiled again for the next call"
    );
}

#[test]
fn any_damage_refuses_or_is_compiled_anew() {
    let home = Home::new("default: allow\nrules:\n  - {name: no, commands: [\"frob **\"], action: deny, reason: no}\n");
    home.stored();
    let file = home.stored_file();
    let whole = std::fs::read(&file).unwrap();
    for place in (0..whole.len()).step_by(3) {
        let mut bytes = whole.clone();
        bytes[place] ^= 0x41;
        std::fs::write(&file, &bytes).unwrap();
        assert_eq!(Scene::shell("frob x").decide(&home.load().policy), Decision::Deny, "byte {place}");
    }
    for length in (0..whole.len()).step_by(7) {
        std::fs::write(&file, &whole[..length]).unwrap();
        assert_eq!(Scene::shell("frob x").decide(&home.load().policy), Decision::Deny, "length {length}");
    }
}

#[test]
fn a_changed_policy_is_noticed_even_with_the_same_size_and_time() {
    let home = Home::new("default: deny\nrules: []\n");
    let before = std::fs::metadata(home.file()).unwrap().modified().unwrap();
    home.stored();
    std::fs::write(home.file(), "default: 'ask'\nrules: []").unwrap();
    std::fs::File::options().append(true).open(home.file()).unwrap().set_modified(before).unwrap();
    assert!(home.load().is_new);
    assert_eq!(Scene::shell("frob").decide(&home.load().policy), Decision::Ask);
    // The same contents at another time are the same policy: nobody could have changed them since without it showing.
    home.stored();
    home.age();
    assert!(!home.load().is_new);
    // A link that leads elsewhere is another file.
    let other = home.directory.path().join("other.yaml");
    std::fs::rename(home.file(), &other).unwrap();
    std::os::unix::fs::symlink(&other, home.file()).unwrap();
    assert!(home.load().is_new);
    home.stored();
    let third = home.directory.path().join("third.yaml");
    std::fs::write(&third, "default: deny").unwrap();
    std::fs::remove_file(home.file()).unwrap();
    std::os::unix::fs::symlink(&third, home.file()).unwrap();
    assert_eq!(Scene::shell("frob").decide(&home.load().policy), Decision::Deny);
}

#[test]
fn only_what_nobody_else_can_write_is_believed() {
    let home = Home::new("default: deny");
    home.stored();
    let set = |path: &Path, mode| std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    let file = home.stored_file();
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    set(&file, 0o620);
    assert!(home.load().is_new);
    set(&file, 0o600);
    assert!(!home.load().is_new);
    set(home.cache.directory(), 0o777);
    assert!(home.load().is_new);
    set(home.cache.directory(), 0o700);
    // A link in its place is not followed.
    let moved = home.directory.path().join("moved");
    std::fs::rename(&file, &moved).unwrap();
    std::os::unix::fs::symlink(&moved, &file).unwrap();
    assert!(home.load().is_new);
    std::fs::remove_file(&file).unwrap();
    std::fs::rename(&moved, &file).unwrap();
    assert!(!home.load().is_new);
    // A cache inside the workspace says nothing.
    let inside = Locations { workspace: Some(home.directory.path().to_owned()), ..home.locations() };
    assert!(Policy::layered_from(Some(&home.cache), &inside).unwrap().is_new);
}
