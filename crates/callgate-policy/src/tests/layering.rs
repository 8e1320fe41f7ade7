use super::super::{CompiledLayers, LayerKind, Locations, TrustStore};
use super::*;
use Decision::{Allow, Ask, Deny};
use std::path::Path;

struct Machine {
    directory: tempfile::TempDir,
}

impl Machine {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    fn store(&self) -> TrustStore {
        TrustStore::new(self.path("data/trusted"))
    }

    fn locations(&self) -> Locations {
        std::fs::create_dir_all(self.path("project/deep/er")).unwrap();
        Locations {
            working: None,
            directory: Some(self.path("project/deep/er")),
            workspace: Some(self.path("project")),
            managed: Some(self.path("etc/callgate.yaml")),
            user: Some(self.path("config/callgate.yaml")),
            trusted: Some(self.store()),
        }
    }

    fn decide(&self, scene: &Scene) -> Decision {
        scene.decide(&Policy::layered(&self.locations()).unwrap())
    }
}

fn rule(effect: &str, action: &str) -> String {
    format!("rules:\n  - {{name: r, effects: [{effect}], action: {action}}}\n")
}

fn connect() -> Scene {
    Scene::tool("WebFetch").effect(host(Action::Connect, Some("x.example")))
}

#[test]
fn without_any_file_it_is_the_bundled_standard() {
    let machine = Machine::new();
    let CompiledLayers { policy, files, .. } = Policy::layered_from(None, &machine.locations()).unwrap();
    assert_eq!(files.len(), 1);
    assert_eq!((files[0].kind, &files[0].path), (LayerKind::User, &None));
    assert_eq!(connect().decide(&policy), Ask);
}

#[test]
fn a_lower_layer_never_loosens_a_higher_ones_deny() {
    let machine = Machine::new();
    machine.write("etc/callgate.yaml", &rule("connect", "deny"));
    machine.write("config/callgate.yaml", &rule("connect", "allow"));
    assert_eq!(machine.decide(&connect()), Deny);
    machine.write("etc/callgate.yaml", &rule("connect", "ask"));
    assert_eq!(machine.decide(&connect()), Allow);
    machine.write("etc/callgate.yaml", "default: deny\n");
    assert_eq!(machine.decide(&connect()), Deny);
}

#[test]
fn a_project_file_tightens_at_once_and_loosens_only_when_trusted() {
    let machine = Machine::new();
    machine.write("config/callgate.yaml", &rule("connect", "ask"));
    let project = machine.write("project/callgate.yaml", &rule("connect", "deny"));
    assert_eq!(machine.decide(&connect()), Deny);
    std::fs::write(&project, rule("connect", "allow")).unwrap();
    assert_eq!(machine.decide(&connect()), Ask);
    machine.store().trust(&project).unwrap();
    assert!(machine.store().is_trusted(&project));
    assert_eq!(machine.decide(&connect()), Allow);
    // A changed file is untrusted again.
    std::fs::write(&project, rule("connect", "allow") + "# changed\n").unwrap();
    assert!(!machine.store().is_trusted(&project));
    assert_eq!(machine.decide(&connect()), Ask);
    machine.store().trust(&project).unwrap();
    machine.store().untrust(&project).unwrap();
    assert_eq!(machine.decide(&connect()), Ask);
}

#[test]
fn trust_covers_what_the_file_extends() {
    let machine = Machine::new();
    machine.write("config/callgate.yaml", &rule("connect", "ask"));
    machine.write("project/team.yaml", "default: ask\n");
    let project = machine.write("project/callgate.yaml", "extends: ./team.yaml\n");
    machine.store().trust(&project).unwrap();
    machine.write("project/team.yaml", &rule("connect", "allow"));
    assert!(!machine.store().is_trusted(&project));
    assert_eq!(machine.decide(&connect()), Ask);
}

#[test]
fn a_copy_of_a_trusted_file_elsewhere_is_not_trusted() {
    let machine = Machine::new();
    let trusted = machine.write("other/callgate.yaml", &rule("connect", "allow"));
    machine.store().trust(&trusted).unwrap();
    machine.write("config/callgate.yaml", &rule("connect", "ask"));
    machine.write("project/callgate.yaml", &rule("connect", "allow"));
    assert_eq!(machine.decide(&connect()), Ask);
}

#[test]
fn a_store_inside_the_workspace_or_open_to_others_says_nothing() {
    let machine = Machine::new();
    machine.write("config/callgate.yaml", &rule("connect", "ask"));
    let project = machine.write("project/callgate.yaml", &rule("connect", "allow"));
    let inside = TrustStore::new(machine.path("project/.trusted"));
    inside.trust(&project).unwrap();
    let locations = Locations { trusted: Some(inside), ..machine.locations() };
    assert_eq!(connect().decide(&Policy::layered(&locations).unwrap()), Ask);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        machine.store().trust(&project).unwrap();
        let mode = std::fs::metadata(machine.store().path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(machine.decide(&connect()), Allow);
        std::fs::set_permissions(machine.store().path(), PermissionsExt::from_mode(0o666)).unwrap();
        assert_eq!(machine.decide(&connect()), Ask);
    }
}

#[test]
fn an_untrusted_default_changes_nothing_and_untrusted_tables_are_not_used() {
    let machine = Machine::new();
    machine.write("config/callgate.yaml", &rule("connect", "allow"));
    machine.write("project/callgate.yaml", "default: ask\nprograms: |\n  x: harmless\n");
    assert_eq!(machine.decide(&connect()), Allow);
    assert!(Policy::layered(&machine.locations()).unwrap().program_tables().is_empty());
}

#[test]
fn an_untrusted_project_cannot_widen_the_boundary() {
    let machine = Machine::new();
    machine.write("config/callgate.yaml", "boundary: {roots: ['.'], outside: ask}\n");
    machine.write("project/callgate.yaml", "boundary: {roots: ['/'], readable: ['/'], outside: deny}\n");
    let policy = Policy::layered(&machine.locations()).unwrap();
    let settings = policy.boundary_settings();
    assert_eq!(settings.roots.as_ref().unwrap()[0].path, ".");
    assert_eq!((settings.readable.as_ref(), settings.outside), (None, Some(Deny)));
}

#[test]
fn a_file_that_is_there_and_broken_is_an_error() {
    for name in ["etc/callgate.yaml", "config/callgate.yaml", "project/callgate.yaml"] {
        let machine = Machine::new();
        machine.write(name, "rulez: []\n");
        assert!(Policy::layered(&machine.locations()).is_err(), "{name}");
    }
    let machine = Machine::new();
    std::fs::create_dir_all(machine.path("project/callgate.yaml")).unwrap();
    assert!(Policy::layered(&machine.locations()).is_err());
}

#[test]
fn a_policy_without_layers_denies() {
    assert_eq!(connect().decide(&Policy::of_layers(Vec::new())), Deny);
}

#[test]
fn the_nearest_file_upwards_is_the_projects() {
    let machine = Machine::new();
    let locations = machine.locations();
    assert_eq!(locations.project_file(), None);
    let outer = machine.write("project/callgate.yaml", "");
    assert_eq!(locations.project_file().as_deref(), Some(outer.as_path()));
    let inner = machine.write("project/deep/callgate.yaml", "");
    assert_eq!(locations.project_file().as_deref(), Some(inner.as_path()));
    assert_eq!(Locations::of("/w").directory.as_deref(), Some(Path::new("/w")));
}
