//! Environment variables that change what runs.
//!
//! A variable that is not listed here is taken for one that only the called program's own code looks at
//! (`FOO`, `LANG`, `RUST_LOG`, `NODE_ENV`).

/// Variables that make programs run other code, by exact name, and what they do.
const NAMES: &[(&str, &str)] = &[
    ("BASH_ENV", "names a file that every bash runs first"),
    ("BASH_FUNC", "defines functions"),
    ("BASHOPTS", "sets shell options"),
    ("BROWSER", "names a program that is run"),
    ("BUNDLE_GEMFILE", "names code that is loaded"),
    ("CARGO_HOME", "names where configuration comes from"),
    ("CC", "names a program that is run"),
    ("CXX", "names a program that is run"),
    ("AR", "names a program that is run"),
    ("LD", "names a program that is run"),
    ("CLASSPATH", "names code that is loaded"),
    ("CMAKE_TOOLCHAIN_FILE", "names a file that is run"),
    ("COMSPEC", "names a program that is run"),
    ("CORECLR_PROFILER_PATH", "names code that is loaded"),
    ("DOTNET_STARTUP_HOOKS", "names code that is loaded"),
    ("DOCKER_HOST", "says whose containers are used"),
    ("DOCKER_CONFIG", "names where configuration comes from"),
    ("EDITOR", "names a program that is run"),
    ("ENV", "names a file that every sh runs first"),
    ("FCEDIT", "names a program that is run"),
    ("FZF_DEFAULT_COMMAND", "is a command that is run"),
    ("FZF_DEFAULT_OPTS", "may hold commands that are run"),
    ("GCONV_PATH", "names code that is loaded"),
    ("GEM_HOME", "names code that is loaded"),
    ("GEM_PATH", "names code that is loaded"),
    ("GLIBC_TUNABLES", "changes the C library"),
    ("GOFLAGS", "adds options such as -toolexec"),
    ("GOROOT", "names code that is loaded"),
    ("GRADLE_OPTS", "adds options that may load code"),
    ("HOME", "says where personal configuration comes from"),
    ("HOSTALIASES", "changes which machine a name means"),
    ("HTTP_PROXY", "sends traffic through another machine"),
    ("HTTPS_PROXY", "sends traffic through another machine"),
    ("ALL_PROXY", "sends traffic through another machine"),
    ("http_proxy", "sends traffic through another machine"),
    ("https_proxy", "sends traffic through another machine"),
    ("all_proxy", "sends traffic through another machine"),
    ("JAVA_OPTS", "adds options that may load code"),
    ("JAVA_HOME", "names a program that is run"),
    ("JDK_JAVA_OPTIONS", "adds options that may load code"),
    ("KUBECONFIG", "may name programs that are run"),
    ("LESSOPEN", "is a command that less runs"),
    ("LESSCLOSE", "is a command that less runs"),
    ("LESSKEYIN", "names a file with commands for less"),
    ("LESSKEY", "names a file with commands for less"),
    ("LESSEDIT", "is a command that less runs"),
    ("LESS", "adds options of less"),
    ("LOCPATH", "names data that is loaded"),
    ("MAKEFLAGS", "adds options of make"),
    ("MAKEFILES", "names files that make runs"),
    ("GNUMAKEFLAGS", "adds options of make"),
    ("MANPAGER", "names a program that is run"),
    ("MANOPT", "adds options of man"),
    ("MAVEN_OPTS", "adds options that may load code"),
    ("MAVEN_ARGS", "adds options that may load code"),
    ("METAFLAGS", "adds options"),
    ("NODE_OPTIONS", "adds options that may load code"),
    ("NODE_PATH", "names code that is loaded"),
    ("OPENSSL_CONF", "may name code that is loaded"),
    ("OPENSSL_ENGINES", "names code that is loaded"),
    ("OPENSSL_MODULES", "names code that is loaded"),
    ("PAGER", "names a program that is run"),
    ("PATH", "says where programs are found"),
    ("PHPRC", "names configuration that may load code"),
    ("PHP_INI_SCAN_DIR", "names configuration that may load code"),
    ("PROMPT_COMMAND", "is a command that the shell runs"),
    ("PS0", "may hold commands that the shell runs"),
    ("PS1", "may hold commands that the shell runs"),
    ("PS2", "may hold commands that the shell runs"),
    ("PS4", "may hold commands that the shell runs"),
    ("PSQLRC", "names a file that psql runs"),
    ("PSQL_PAGER", "names a program that is run"),
    ("PSQL_EDITOR", "names a program that is run"),
    ("RUBYLIB", "names code that is loaded"),
    ("RUBYOPT", "adds options that may load code"),
    ("RUSTC", "names a program that is run"),
    ("RUSTDOC", "names a program that is run"),
    ("RUSTC_WRAPPER", "names a program that is run"),
    ("RUSTC_WORKSPACE_WRAPPER", "names a program that is run"),
    ("RUSTUP_HOME", "names programs that are run"),
    ("RUSTUP_TOOLCHAIN", "names programs that are run"),
    ("SHELL", "names a program that is run"),
    ("SHELLOPTS", "sets shell options"),
    ("SSLKEYLOGFILE", "writes the keys of connections to a file"),
    ("SSH_ASKPASS", "names a program that is run"),
    ("SUDO_ASKPASS", "names a program that is run"),
    ("SUDO_EDITOR", "names a program that is run"),
    ("SYSTEMD_PAGER", "names a program that is run"),
    ("SYSTEMD_EDITOR", "names a program that is run"),
    ("TAR_OPTIONS", "adds options of tar"),
    ("TERMINFO", "names data that is loaded"),
    ("TMOUT", "ends the shell"),
    ("VISUAL", "names a program that is run"),
    ("VIMINIT", "holds commands that vim runs"),
    ("EXINIT", "holds commands that vi runs"),
    ("VIRTUAL_ENV", "names code that is loaded"),
    (
        "XDG_CONFIG_HOME",
        "says where personal configuration comes from",
    ),
    ("XDG_CONFIG_DIRS", "says where configuration comes from"),
    ("ZDOTDIR", "names where zsh's start-up files are"),
    ("ZIPOPT", "adds options of zip"),
    ("UNZIP", "adds options of unzip"),
    ("GREP_OPTIONS", "adds options of grep"),
    ("RIPGREP_CONFIG_PATH", "names a file with options of rg"),
    ("CURL_HOME", "names where configuration comes from"),
    ("WGETRC", "names where configuration comes from"),
    ("INPUTRC", "names a file with key commands"),
    ("KRB5_CONFIG", "names configuration that may load code"),
    ("LUA_INIT", "is code that lua runs"),
    ("LUA_PATH", "names code that is loaded"),
    ("LUA_CPATH", "names code that is loaded"),
    ("R_PROFILE", "names a file that R runs"),
    ("R_PROFILE_USER", "names a file that R runs"),
    ("R_ENVIRON", "names a file that R reads settings from"),
    ("JULIA_LOAD_PATH", "names code that is loaded"),
    ("ERL_FLAGS", "adds options that may load code"),
    ("ERL_AFLAGS", "adds options that may load code"),
    ("ELIXIR_ERL_OPTIONS", "adds options that may load code"),
    ("DENO_DIR", "names code that is loaded"),
    ("BUN_INSTALL", "names code that is loaded"),
    ("TERRAFORM_CONFIG", "names where configuration comes from"),
    ("TF_CLI_CONFIG_FILE", "names where configuration comes from"),
    ("HELM_PLUGINS", "names code that is loaded"),
    ("VAGRANT_VAGRANTFILE", "names a file that is run"),
    ("ANSIBLE_CONFIG", "names where configuration comes from"),
    ("TEXINPUTS", "names files that are loaded"),
    ("RSYNC_RSH", "is a command that rsync runs"),
    ("CVS_RSH", "is a command that cvs runs"),
    ("SVN_SSH", "is a command that svn runs"),
    ("SVN_EDITOR", "names a program that is run"),
    ("HGEDITOR", "names a program that is run"),
    ("HGRCPATH", "names where configuration comes from"),
];

/// Families of such variables, by how the name starts.
const PREFIXES: &[(&str, &str)] = &[
    ("LD_", "changes which code is loaded"),
    ("DYLD_", "changes which code is loaded"),
    ("GIT_", "changes which programs and files git uses"),
    ("PYTHON", "changes which code Python loads"),
    ("PERL", "changes which code Perl loads"),
    ("BASH_FUNC_", "defines functions"),
    ("npm_config_", "changes what npm runs and from where"),
    ("NPM_CONFIG_", "changes what npm runs and from where"),
    ("PIP_", "changes where packages come from"),
    ("UV_", "changes where packages come from"),
    ("CARGO_TARGET_", "may name programs that are run"),
    ("CARGO_BUILD_", "may name programs that are run"),
    ("JAVA_TOOL_", "adds options that may load code"),
    ("_JAVA_", "adds options that may load code"),
    ("COR_", "names code that is loaded"),
    ("CORECLR_", "names code that is loaded"),
    ("MALLOC_", "changes the C library"),
    ("ANSIBLE_", "changes what ansible runs"),
    ("GTK_", "names code that is loaded"),
    ("QT_", "names code that is loaded"),
];

/// Members of those families, and listed names, that change nothing that runs.
const HARMLESS: &[&str] = &[
    "GIT_AUTHOR_DATE",
    "GIT_AUTHOR_EMAIL",
    "GIT_AUTHOR_NAME",
    "GIT_COMMITTER_DATE",
    "GIT_COMMITTER_EMAIL",
    "GIT_COMMITTER_NAME",
    "GIT_TERMINAL_PROMPT",
    "GIT_OPTIONAL_LOCKS",
    "GIT_MERGE_AUTOEDIT",
    "GIT_LFS_SKIP_SMUDGE",
    "PYTHONUNBUFFERED",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONIOENCODING",
    "PYTHONUTF8",
    "PYTHONHASHSEED",
    "PYTHONFAULTHANDLER",
    "PYTHONASYNCIODEBUG",
    "PIP_NO_INPUT",
    "PIP_DISABLE_PIP_VERSION_CHECK",
    "PIP_QUIET",
    "PIP_NO_COLOR",
    "UV_NO_PROGRESS",
    "CARGO_BUILD_JOBS",
    "QT_QPA_PLATFORM",
];

/// Values with which a variable that names a program or options does no harm.
const HARMLESS_VALUES: &[(&str, &[&str])] = &[
    ("PAGER", &["", "cat", "less", "more"]),
    ("GIT_PAGER", &["", "cat", "less", "more"]),
    ("MANPAGER", &["", "cat", "less", "more"]),
    ("SYSTEMD_PAGER", &["", "cat", "less", "more"]),
    ("PSQL_PAGER", &["", "cat", "less", "more"]),
    ("EDITOR", &["true", "false", ":", "cat"]),
    ("VISUAL", &["true", "false", ":", "cat"]),
    ("GIT_EDITOR", &["true", "false", ":", "cat"]),
    ("GIT_SEQUENCE_EDITOR", &["true", "false", ":", "cat"]),
    (
        "LESS",
        &[
            "", "F", "R", "X", "FR", "FX", "FRX", "-F", "-R", "-X", "-FR", "-FX", "-FRX", "-RFX",
        ],
    ),
    ("CC", &["cc", "gcc", "clang"]),
    ("CXX", &["c++", "g++", "clang++"]),
    (
        "GOFLAGS",
        &[
            "",
            "-mod=mod",
            "-mod=vendor",
            "-mod=readonly",
            "-count=1",
            "-v",
        ],
    ),
    ("RUSTUP_TOOLCHAIN", &["stable", "beta", "nightly"]),
    (
        "SHELL",
        &["/bin/sh", "/bin/bash", "/usr/bin/bash", "/bin/zsh"],
    ),
    ("GIT_CONFIG_NOSYSTEM", &["0", "1"]),
    ("GIT_CONFIG_GLOBAL", &["/dev/null"]),
    ("GIT_CONFIG_SYSTEM", &["/dev/null"]),
    ("GIT_TRACE", &["0", "1", "2"]),
];

/// What setting this variable changes about what runs, if it does. A value that is not known is `None`.
pub fn influence(name: &str, value: Option<&str>) -> Option<&'static str> {
    if HARMLESS.contains(&name) {
        return None;
    }
    let tame = |(known, values): &(&str, &[&str])| {
        *known == name && value.is_some_and(|value| values.contains(&value))
    };
    if HARMLESS_VALUES.iter().any(tame) {
        return None;
    }
    let exact = NAMES.iter().find(|(known, _)| *known == name);
    let family = || PREFIXES.iter().find(|(prefix, _)| name.starts_with(prefix));
    exact.or_else(family).map(|(_, what)| *what)
}

#[cfg(test)]
mod tests {
    use super::influence;

    #[test]
    fn what_changes_what_runs() {
        for name in [
            "PATH",
            "LD_PRELOAD",
            "GIT_SSH_COMMAND",
            "BASH_ENV",
            "PYTHONSTARTUP",
            "NODE_OPTIONS",
            "PERL5OPT",
        ] {
            assert!(influence(name, Some("x")).is_some(), "{name}");
        }
        for name in [
            "FOO",
            "LANG",
            "LC_ALL",
            "TZ",
            "NO_COLOR",
            "CI",
            "TERM",
            "RUST_LOG",
            "NODE_ENV",
            "GIT_AUTHOR_NAME",
            "IFS",
        ] {
            assert!(influence(name, None).is_none(), "{name}");
        }
    }

    #[test]
    fn a_harmless_value_makes_a_name_harmless() {
        assert!(influence("PAGER", Some("cat")).is_none());
        assert!(influence("PAGER", Some("./x")).is_some());
        assert!(influence("PAGER", None).is_some());
    }
}
