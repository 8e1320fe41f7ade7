use std::collections::HashMap;

use callgate_model::fence::Network;
use proptest::prelude::*;

use super::super::hosts::HostList;
use super::*;

/// The registries beyond the well-known ones, with these files in the home directory and these variables.
fn found(files: &[(&str, &str)], variables: &[(&str, &str)]) -> Vec<String> {
    let home = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = home.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let variables: HashMap<String, String> = variables
        .iter()
        .map(|(name, value)| ((*name).into(), value.replace("HOME", home.path().to_str().unwrap())))
        .collect();
    let environment = |name: &str| variables.get(name).cloned();
    let all = registries(home.path(), &environment);
    HostList::new(&Network::Hosts(all.clone())).unwrap();
    // What the files of this machine name does not count here.
    let none = registries(&home.path().join("nobody"), &|_| None);
    all.into_iter().filter(|host| !none.contains(host)).collect()
}

#[test]
fn the_well_known_ones_are_always_there() {
    let hosts = registries(Path::new("/nonexistent"), &|_| None);
    for host in ["registry.npmjs.org:443", "pypi.org:443", "index.crates.io:443", "proxy.golang.org:443"] {
        assert!(hosts.iter().any(|known| known == host), "{host}");
    }
    let list = HostList::new(&Network::Hosts(hosts)).unwrap();
    assert!(list.allows_name("static.crates.io", 443));
    assert!(!list.allows_name("static.crates.io", 22));
}

#[test]
fn npm_and_its_kin() {
    let npmrc = "; comment\n# registry=https://old.example\nregistry = https://user:secret@npm.example:8443/path/\n\
        @scope:registry=http://scoped.example\n//npm.example/:_authToken=https://token.example\nproxy=http://proxy.example:3128\n\
        https-proxy=http://proxy.example:3128\nhomepage=https://no.example\nregistry=${REGISTRY}\n";
    assert_eq!(found(&[(".npmrc", npmrc)], &[]), ["npm.example:8443", "scoped.example:80"]);
    assert_eq!(found(&[("elsewhere", npmrc)], &[("NPM_CONFIG_USERCONFIG", "HOME/elsewhere")]).len(), 2);
    assert_eq!(
        found(&[(".yarnrc", "registry \"https://yarn.example/\"\n\"@a:registry\" \"https://a.example\"\n")], &[]),
        ["a.example:443", "yarn.example:443"]
    );
    let berry = "npmRegistryServer: \"https://berry.example\"\nhttpProxy: \"http://proxy.example\"\nnpmScopes:\n  team:\n    npmRegistryServer: https://team.example/npm\n";
    assert_eq!(found(&[(".yarnrc.yml", berry)], &[]), ["berry.example:443", "team.example:443"]);
    let bun = "[install]\nregistry = { url = \"https://bun.example\", token = \"x\" }\n[install.scopes]\nteam = \"https://t.example\"\n";
    assert_eq!(found(&[(".bunfig.toml", bun)], &[]), ["bun.example:443", "t.example:443"]);
}

#[test]
fn python() {
    let pip = "[global]\nindex-url = https://u:p@pip.example/simple\nextra-index-url =\n    https://one.example/simple\n    http://two.example:8080/\n\
        proxy = http://proxy.example\ntrusted-host = trusted.example\n[install]\nfind_links = https://links.example /opt/wheels\n";
    let expected = ["links.example:443", "one.example:443", "pip.example:443", "two.example:8080"];
    assert_eq!(found(&[(".config/pip/pip.conf", pip)], &[]), expected);
    assert_eq!(found(&[(".pip/pip.conf", pip)], &[]), expected);
    assert_eq!(found(&[("x/pip/pip.conf", pip)], &[("XDG_CONFIG_HOME", "HOME/x")]), expected);
    let uv = "index-url = \"https://old.example\"\n[[index]]\nname = \"a\"\nurl = \"https://uv.example/simple\"\n[pip]\nextra-index-url = [\"https://more.example\"]\n\
        [[other]]\nurl = \"https://no.example\"\n";
    assert_eq!(found(&[(".config/uv/uv.toml", uv)], &[]), ["more.example:443", "old.example:443", "uv.example:443"]);
    assert_eq!(
        found(&[(".config/pypoetry/config.toml", "[repositories.team]\nurl = \"https://poetry.example/\"\n")], &[]),
        ["poetry.example:443"]
    );
    let conda = "channels:\n  - defaults\n  - https://conda.example/team\nproxy_servers:\n  http: http://proxy.example\nchannel_alias: https://alias.example\n";
    assert_eq!(found(&[(".condarc", conda)], &[]), ["alias.example:443", "conda.example:443"]);
}

#[test]
fn cargo() {
    let config = "[registries.team-one]\nindex = \"sparse+https://cargo.example:8000/index/\"\n[source.crates-io]\nreplace-with = \"mirror\"\n\
        [source.mirror]\nregistry = \"https://mirror.example/git\"\n[http]\nproxy = \"proxy.example:3128\"\n[source.local]\ndirectory = \"vendor\"\n";
    assert_eq!(found(&[(".cargo/config.toml", config)], &[]), ["cargo.example:8000", "mirror.example:443"]);
    assert_eq!(found(&[("c/config", config)], &[("CARGO_HOME", "HOME/c")]).len(), 2);
    let variable = ("CARGO_REGISTRIES_TEAM_ONE_INDEX", "sparse+https://variable.example/");
    assert!(found(&[(".cargo/config.toml", config)], &[variable]).contains(&"variable.example:443".to_owned()));
    assert_eq!(found(&[], &[variable, ("CARGO_REGISTRY_DEFAULT", "team-one")]), ["variable.example:443"]);
    assert_eq!(
        found(&[(".cargo/config.toml", "[registries.x]\nindex = \"https://x.example\"\n[broken")], &[]),
        [""; 0]
    );
}

#[test]
fn others() {
    assert_eq!(
        found(
            &[(
                ".config/go/env",
                "GOPROXY=https://go.example|https://two.example,direct\nGOFLAGS=-mod=mod\nGONOSUMDB=https://no.example\n"
            )],
            &[]
        ),
        ["go.example:443", "two.example:443"]
    );
    assert_eq!(
        found(&[(".gemrc", "---\n:sources:\n- https://gems.example/\n:gemcutter_key: https://no.example\n")], &[]),
        ["gems.example:443"]
    );
    assert_eq!(
        found(
            &[(
                ".bundle/config",
                "---\nBUNDLE_MIRROR__HTTPS://RUBYGEMS__ORG/: \"https://bundle.example/\"\nBUNDLE_JOBS: \"4\"\n"
            )],
            &[]
        ),
        ["bundle.example:443"]
    );
    let maven = "<settings xmlns=\"http://schema.example/SETTINGS/1.0.0\"><proxies><proxy><host>proxy.example</host></proxy></proxies>\
        <!-- <mirror><url>http://sample.example</url></mirror> --><mirrors><mirror><url> https://maven.example:8081/repo </url></mirror></mirrors></settings>";
    assert_eq!(found(&[(".m2/settings.xml", maven)], &[]), ["maven.example:8081"]);
    let composer = r#"{"config": {"url": "https://no.example"}, "repositories": {"team": {"type": "composer", "url": "https://composer.example"}}}"#;
    assert_eq!(found(&[(".config/composer/config.json", composer)], &[]), ["composer.example:443"]);
    let list = r#"{"repositories": [{"type": "composer", "url": "https://composer.example"}]}"#;
    assert_eq!(found(&[(".composer/config.json", list)], &[]), ["composer.example:443"]);
    let nuget = "<configuration><packageSources><clear /><add key=\"a\" value=\"https://nuget.example/v3/index.json\" x=\"https://no.example\" />\
        <add key=\"b\" value='/local' /></packageSources><config><add key=\"http_proxy\" value=\"http://proxy.example\" /></config></configuration>";
    assert_eq!(found(&[(".nuget/NuGet/NuGet.Config", nuget)], &[]), ["nuget.example:443"]);
}

#[test]
fn variables() {
    assert_eq!(
        found(
            &[],
            &[
                ("NPM_CONFIG_REGISTRY", "https://npm.example/"),
                ("PIP_INDEX_URL", "https://user:secret@pip.example:8443/simple"),
                ("UV_INDEX", "team=https://uv.example/simple other=http://127.0.0.1:4000"),
                ("GOPROXY", "off"),
                ("HTTPS_PROXY", "http://proxy.example:3128"),
                ("https_proxy", "http://proxy.example:3128"),
                ("PUB_HOSTED_URL", "http://localhost:4873"),
            ]
        ),
        ["127.0.0.1:4000", "localhost:4873", "npm.example:443", "pip.example:8443", "uv.example:443"]
    );
}

#[test]
fn hosts_of_urls() {
    for (url, expected) in [
        ("https://A.Example./x", Some("a.example:443")),
        ("http://[::1]:8080/", Some("[::1]:8080")),
        ("https://[fd00::1]", Some("[fd00::1]:443")),
        ("http://[::ffff:10.0.0.1]/", Some("10.0.0.1:80")),
        ("https://user@host.example#x", Some("host.example:443")),
        ("https://good.example@evil.example/", Some("evil.example:443")),
        ("https://evil.example\\@good.example/", None),
        ("https://a@b@c.example/", None),
        ("https://a.example:0/", None),
        ("https://a.example:x/", None),
        ("https://::1/", None),
        ("https://*.example/", None),
        ("https://$HOST/", None),
        ("https:///x", None),
        ("https://", None),
    ] {
        assert_eq!(host_of(url).as_deref(), expected, "{url}");
    }
}

#[test]
fn odd_files_are_left_out() {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join(".npmrc")).unwrap();
    std::fs::create_dir_all(home.path().join(".config/pip")).unwrap();
    let fifo = home.path().join(".config/pip/pip.conf");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RWXU).unwrap();
    std::fs::write(home.path().join(".yarnrc"), vec![b'x'; 2_000_000]).unwrap();
    assert_eq!(registries(home.path(), &|_| None), registries(Path::new("/nonexistent"), &|_| None));
    assert_eq!(found(&[("x/.npmrc", "registry=https://x.example")], &[("NPM_CONFIG_USERCONFIG", ".npmrc")]), [""; 0]);
}

proptest! {
    #[test]
    fn any_settings_are_read(text in "(?s).{0,200}", url in "https?://.{0,30}") {
        for (_, format) in FILES {
            for setting in format.settings(&text) {
                urls(&setting.value).filter_map(host_of).for_each(drop);
            }
        }
        if let Some(host) = host_of(&url) {
            prop_assert!(HostList::new(&Network::Hosts(vec![host])).is_ok());
        }
    }
}
