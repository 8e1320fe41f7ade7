//! Environment variables that change what runs.
//!
//! A variable that is not listed here is taken for one that only the called program's own code looks at
//! (`FOO`, `LANG`, `RUST_LOG`, `NODE_ENV`).

/// Variables that make programs run other code, by exact name, and what they do.
const NAMES: &[(&str, &str)] = &[
    ("BASH_ALIASES", "defines aliases"),
    ("BASH_CMDS", "says where programs are found"),
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
    ("XDG_CONFIG_HOME", "says where personal configuration comes from"),
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
    ("GLOBIGNORE", "lets wildcards match hidden files"),
    ("ftp_proxy", "sends traffic through another machine"),
    ("FTP_PROXY", "sends traffic through another machine"),
    ("POSIXLY_CORRECT", "changes how options are told from operands"),
    ("BASH_LOADABLES_PATH", "names code that is loaded"),
    ("CARGO", "names a program that is run"),
    ("CLANG_CONFIG_FILE_SYSTEM_DIR", "names where configuration comes from"),
    ("CLANG_CONFIG_FILE_USER_DIR", "names where configuration comes from"),
    ("CCC_OVERRIDE_OPTIONS", "adds options of clang"),
    ("COMPILER_PATH", "names programs that are run"),
    ("GCC_EXEC_PREFIX", "names programs that are run"),
    ("DEPENDENCIES_OUTPUT", "names a file that is written"),
    ("SUNPRO_DEPENDENCIES", "names a file that is written"),
    ("CPATH", "names files that are read"),
    ("EXECIGNORE", "changes where programs are found"),
    ("FFREPORT", "names a file that is written"),
    ("FPATH", "names code that is loaded"),
    ("FREI0R_PATH", "names code that is loaded"),
    ("LADSPA_PATH", "names code that is loaded"),
    ("GOAUTH", "is a command that go runs"),
    ("GOCACHEPROG", "is a command that go runs"),
    ("GOENV", "names where configuration comes from"),
    ("GOPATH", "names code that is loaded"),
    ("GOPROXY", "says where packages come from"),
    ("GOSUMDB", "says which packages are trusted"),
    ("GONOSUMDB", "says which packages are trusted"),
    ("GONOSUMCHECK", "says which packages are trusted"),
    ("GOINSECURE", "says which packages are trusted"),
    ("GOPRIVATE", "says where packages come from"),
    ("GONOPROXY", "says where packages come from"),
    ("GOTOOLCHAIN", "names a program that is run"),
    ("GOVCS", "says which programs fetch packages"),
    ("GOMODCACHE", "names code that is loaded"),
    ("GCCGO", "names a program that is run"),
    ("GZIP", "adds options of gzip"),
    ("BZIP", "adds options of bzip2"),
    ("BZIP2", "adds options of bzip2"),
    ("XZ_OPT", "adds options of xz"),
    ("XZ_DEFAULTS", "adds options of xz"),
    ("HG", "names a program that is run"),
    ("HISTFILE", "names a file that the shell writes"),
    ("HISTFILESIZE", "says how much of the history of commands is kept"),
    ("HISTSIZE", "says how much of the history of commands is kept"),
    ("IPYTHONDIR", "names where configuration comes from"),
    ("JQ_LIBRARY_PATH", "names code that is loaded"),
    ("JUPYTER_PATH", "names code that is loaded"),
    ("KUBECTL_EXTERNAL_DIFF", "names a program that is run"),
    ("KUBE_EDITOR", "names a program that is run"),
    ("LLVM_PROFILE_FILE", "names a file that is written"),
    ("LOCALDOMAIN", "changes which machine a name means"),
    ("RES_OPTIONS", "changes which machine a name means"),
    ("RESOLV_HOST_CONF", "names a file that is read"),
    ("MAGIC", "names a file that is read"),
    ("MANPATH", "names pages that are formatted"),
    ("MANROFFOPT", "adds options of groff"),
    ("MANROFFSEQ", "adds programs that are run"),
    ("MORE", "adds options of more"),
    ("MOST_EDITOR", "names a program that is run"),
    ("MYPYPATH", "names code that is loaded"),
    ("MYVIMRC", "names a file that vim runs"),
    ("NODE_EXTRA_CA_CERTS", "says whom connections trust"),
    ("NODE_REPL_EXTERNAL_MODULE", "names code that is loaded"),
    ("NODE_REDIRECT_WARNINGS", "names a file that is written"),
    ("NODE_TLS_REJECT_UNAUTHORIZED", "says whom connections trust"),
    ("NODE_V8_COVERAGE", "names files that are written"),
    ("OCAMLRUNPARAM", "changes how OCaml runs"),
    ("PROXYCHAINS_CONF_FILE", "names where configuration comes from"),
    ("RAKEOPT", "adds options of rake"),
    ("RUSTFLAGS", "adds options that may name programs"),
    ("RUSTDOCFLAGS", "adds options that may name programs"),
    ("RUSTFMT", "names a program that is run"),
    ("RUSTUP_DIST_SERVER", "says where programs come from"),
    ("RUSTUP_UPDATE_ROOT", "says where programs come from"),
    ("R_HOME", "names code that is loaded"),
    ("R_LIBS", "names code that is loaded"),
    ("R_LIBS_USER", "names code that is loaded"),
    ("SCREENRC", "names a file that screen runs"),
    ("SSH_SK_PROVIDER", "names code that is loaded"),
    ("SSH_SK_HELPER", "names a program that is run"),
    ("SSH_PKCS11_HELPER", "names a program that is run"),
    ("SSL_CERT_FILE", "says whom connections trust"),
    ("SSL_CERT_DIR", "says whom connections trust"),
    ("CURL_CA_BUNDLE", "says whom connections trust"),
    ("REQUESTS_CA_BUNDLE", "says whom connections trust"),
    ("TCLLIBPATH", "names code that is loaded"),
    ("TERMCAP", "names data that is loaded"),
    ("TERMINFO_DIRS", "names data that is loaded"),
    ("VIM", "names code that vim runs"),
    ("VIMRUNTIME", "names code that vim runs"),
    ("VK_ICD_FILENAMES", "names code that is loaded"),
    ("VK_DRIVER_FILES", "names code that is loaded"),
    ("LIBGL_DRIVERS_PATH", "names code that is loaded"),
    ("LIBMYSQL_PLUGINS", "names code that is loaded"),
    ("LIBMYSQL_PLUGIN_DIR", "names code that is loaded"),
    ("XDG_DATA_DIRS", "names data that is loaded"),
    ("ACKRC", "names a file with options of ack"),
    ("ACK_PAGER", "names a program that is run"),
    ("ACK_PAGER_COLOR", "names a program that is run"),
    ("BORG_PASSCOMMAND", "is a command that borg runs"),
    ("BORG_REMOTE_PATH", "names a program that is run"),
    ("BORG_RSH", "is a command that borg runs"),
    ("CDPATH", "says where `cd` goes"),
    ("GREP", "names a program that is run"),
    ("HTTPIE_CONFIG_DIR", "names where configuration comes from"),
    ("LESSECHO", "names a program that is run"),
    ("PSQL_HISTORY", "names a file that is written"),
    ("SQLITE_HISTORY", "names a file that is written"),
    ("MYSQL_HISTFILE", "names a file that is written"),
    ("NODE_REPL_HISTORY", "names a file that is written"),
    ("REDISCLI_HISTFILE", "names a file that is written"),
    ("REDISCLI_RCFILE", "names where configuration comes from"),
    ("RESTIC_PASSWORD_COMMAND", "is a command that restic runs"),
    ("RESTIC_PASSWORD_FILE", "names a file that is read"),
    ("RESTIC_REPOSITORY", "says where copies are kept"),
    ("TAPE", "names the archive of tar, which may be on another machine"),
    ("PINENTRY_USER_DATA", "changes how passwords are asked for"),
    ("PASSWORD_STORE_DIR", "names where passwords are kept"),
    ("PASSWORD_STORE_ENABLE_EXTENSIONS", "lets programs run"),
    ("PASSWORD_STORE_EXTENSIONS_DIR", "names code that is loaded"),
    ("SOPS_EDITOR", "names a program that is run"),
    ("VIRTUALENVWRAPPER_HOOK_DIR", "names programs that are run"),
    ("WATCHMAN_CONFIG_FILE", "names where configuration comes from"),
    ("XAUTHORITY", "names a file that is read"),
    ("XINITRC", "names a file that is run"),
    ("PKG_CONFIG", "names a program that is run"),
    ("PKG_CONFIG_PATH", "names files that say what is compiled in"),
    ("NIX_PATH", "names code that is loaded"),
    ("NIX_CONFIG", "changes what nix runs"),
    ("NIX_REMOTE", "says where things are built"),
    ("TMUX_TMPDIR", "says which sessions are used"),
    ("STARSHIP_CONFIG", "names commands that are run"),
    ("ZELLIJ_CONFIG_DIR", "names where configuration comes from"),
    ("XDG_DATA_HOME", "names data that is loaded"),
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
    ("ANT_", "adds options that may load code"),
    ("ASAN_", "may name files that are written"),
    ("AWK", "names code that is loaded"),
    ("AWS_", "says who acts, where, and which programs help"),
    ("BAT_", "names a program that is run"),
    ("BUNDLE_", "changes which code Ruby loads"),
    ("CAML_", "names code that is loaded"),
    ("CARGO_", "changes what cargo runs and from where"),
    ("CGO_", "adds options of the compiler"),
    ("CLOUDSDK_", "changes what gcloud runs"),
    ("COMPOSE_", "names what docker compose runs"),
    ("COMPOSER", "changes what composer runs"),
    ("CONTAINER_", "says whose containers are used"),
    ("CONTAINERS_", "names where configuration comes from"),
    ("COREPACK_", "says where packages come from"),
    ("DELTA_", "names a program that is run"),
    ("DENO_", "changes where code comes from"),
    ("DOCKER_", "says whose containers are used"),
    ("BUILDX_", "changes how images are built"),
    ("DOTNET_", "may name code that is loaded"),
    ("EMACS", "names code that is loaded"),
    ("ERL_", "adds options that may load code"),
    ("GEM_", "names code that is loaded"),
    ("GCOV_", "names files that are written"),
    ("GH_", "changes what gh talks to and runs"),
    ("GIO_", "names code that is loaded"),
    ("GITLAB_", "changes what glab talks to"),
    ("GLAB_", "changes what glab talks to and runs"),
    ("GNUPG", "names where configuration comes from"),
    ("GRADLE_", "may load code"),
    ("GROFF_", "names programs that are run"),
    ("GS_", "names code that is loaded"),
    ("GST_", "names code that is loaded"),
    ("GUILE_", "names code that is loaded"),
    ("HELM_", "changes what helm talks to and runs"),
    ("JULIA_", "names code that is loaded"),
    ("KOTLIN_", "names programs that are run"),
    ("M2_", "names programs that are run"),
    ("MAGICK_", "names code that is loaded"),
    ("MAVEN_", "may load code"),
    ("MSBUILD", "names code that is loaded"),
    ("MSBuild", "names code that is loaded"),
    ("MYSQL_", "changes what mysql talks to"),
    ("NUGET_", "changes where packages come from"),
    ("NVIM_", "names code that is loaded"),
    ("P4", "changes what p4 talks to and runs"),
    ("PG", "changes what the database programs talk to"),
    ("PIPENV_", "changes where packages come from"),
    ("POETRY_", "changes where packages come from"),
    ("PULUMI_", "changes what pulumi runs"),
    ("PYTEST_", "adds options that may load code"),
    ("RSYNC_", "changes what rsync runs"),
    ("SBT_", "may load code"),
    ("SCALA_", "names programs that are run"),
    ("TERRAGRUNT_", "names programs that are run"),
    ("TG_", "changes what terragrunt runs"),
    ("TF_", "changes what terraform runs"),
    ("UBSAN_", "may name files that are written"),
    ("VAULT_", "changes what vault talks to"),
    ("YARN_", "changes what yarn runs and from where"),
    ("__fish", "names code that is loaded"),
    ("fish_", "names code that is loaded"),
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
    "AWS_DEFAULT_OUTPUT",
    "AWS_DEFAULT_REGION",
    "AWS_MAX_ATTEMPTS",
    "AWS_PROFILE",
    "AWS_REGION",
    "AWS_RETRY_MODE",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "BUNDLE_WITHOUT",
    "BUNDLE_JOBS",
    "CARGO_INCREMENTAL",
    "CARGO_NET_OFFLINE",
    "CARGO_TERM_COLOR",
    "CARGO_TERM_PROGRESS_WHEN",
    "CARGO_TERM_QUIET",
    "CARGO_TERM_VERBOSE",
    "CGO_ENABLED",
    "CLOUDSDK_CORE_PROJECT",
    "CLOUDSDK_CORE_DISABLE_PROMPTS",
    "COMPOSE_PROJECT_NAME",
    "COMPOSE_PROFILES",
    "COMPOSE_PROGRESS",
    "COMPOSER_ALLOW_SUPERUSER",
    "COMPOSER_NO_INTERACTION",
    "COMPOSER_MEMORY_LIMIT",
    "DOCKER_BUILDKIT",
    "DOCKER_CLI_HINTS",
    "DOCKER_DEFAULT_PLATFORM",
    "DOCKER_API_VERSION",
    "DOTNET_CLI_TELEMETRY_OPTOUT",
    "DOTNET_ENVIRONMENT",
    "DOTNET_NOLOGO",
    "DOTNET_SKIP_FIRST_TIME_EXPERIENCE",
    "DENO_NO_UPDATE_CHECK",
    "GH_DEBUG",
    "GH_FORCE_TTY",
    "GH_NO_UPDATE_NOTIFIER",
    "GH_PROMPT_DISABLED",
    "GH_TOKEN",
    "GITLAB_TOKEN",
    "HELM_NAMESPACE",
    "HELM_DEBUG",
    "HELM_KUBECONTEXT",
    "MYSQL_PWD",
    "PGAPPNAME",
    "PGCONNECT_TIMEOUT",
    "PGDATABASE",
    "PGPASSWORD",
    "PGPORT",
    "PGUSER",
    "PGTZ",
    "PGCLIENTENCODING",
    "PULUMI_SKIP_UPDATE_CHECK",
    "PULUMI_CONFIG_PASSPHRASE",
    "TF_IN_AUTOMATION",
    "TF_INPUT",
    "TF_LOG",
    "TF_WORKSPACE",
    "VAULT_FORMAT",
    "VAULT_NAMESPACE",
    "VAULT_TOKEN",
    "VAULT_CLIENT_TIMEOUT",
    "POETRY_NO_INTERACTION",
    "PIPENV_NOSPIN",
    "PIPENV_VERBOSITY",
    "YARN_ENABLE_TELEMETRY",
    "RSYNC_PASSWORD",
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
    ("LESS", &["", "F", "R", "X", "FR", "FX", "FRX", "-F", "-R", "-X", "-FR", "-FX", "-FRX", "-RFX"]),
    ("CC", &["cc", "gcc", "clang"]),
    ("CXX", &["c++", "g++", "clang++"]),
    ("GOFLAGS", &["", "-mod=mod", "-mod=vendor", "-mod=readonly", "-count=1", "-v"]),
    ("RUSTUP_TOOLCHAIN", &["stable", "beta", "nightly"]),
    ("SHELL", &["/bin/sh", "/bin/bash", "/usr/bin/bash", "/bin/zsh"]),
    ("GIT_CONFIG_NOSYSTEM", &["0", "1"]),
    ("GIT_CONFIG_GLOBAL", &["/dev/null"]),
    ("GIT_CONFIG_SYSTEM", &["/dev/null"]),
    ("GIT_TRACE", &["0", "1", "2"]),
    ("AWS_PAGER", &["", "cat", "less", "more"]),
    ("AWS_ENDPOINT_URL", &["http://localhost:4566", "http://127.0.0.1:4566"]),
    ("GH_PAGER", &["", "cat", "less", "more"]),
    ("GLAB_PAGER", &["", "cat", "less", "more"]),
    ("BAT_PAGER", &["", "cat", "less", "more"]),
    ("DELTA_PAGER", &["", "cat", "less", "more"]),
    ("BAT_STYLE", &["plain", "numbers", "full", "auto"]),
    ("PGHOST", &["localhost", "127.0.0.1"]),
    ("MYSQL_HOST", &["localhost", "127.0.0.1"]),
    ("VAULT_ADDR", &["http://localhost:8200", "http://127.0.0.1:8200"]),
    ("GOPROXY", &["off", "direct", "https://proxy.golang.org,direct"]),
    ("GOTOOLCHAIN", &["local", "auto"]),
    ("PYTEST_DISABLE_PLUGIN_AUTOLOAD", &["0", "1"]),
];

/// The first letters of names and prefixes: most variables of a script start with none of them.
#[expect(clippy::indexing_slicing, reason = "the compiler evaluates it")]
static INITIALS: [bool; 256] = {
    let mut initials = [false; 256];
    let mut lists = [NAMES, PREFIXES].as_slice();
    while let [list, other_lists @ ..] = lists {
        lists = other_lists;
        let mut rest = *list;
        while let [(name, _), others @ ..] = rest {
            rest = others;
            if let [first, ..] = name.as_bytes() {
                initials[*first as usize] = true;
            }
        }
    }
    initials
};

/// What setting this variable changes about what runs, if it does. A value that is not known is `None`.
pub fn influence(name: &str, value: Option<&str>) -> Option<&'static str> {
    let first = name.bytes().next()?;
    if !*INITIALS.get(usize::from(first))? {
        return None;
    }
    if HARMLESS.contains(&name) || name.starts_with("TF_VAR_") {
        return None;
    }
    let tame = |(known, values): &(&str, &[&str])| *known == name && value.is_some_and(|value| values.contains(&value));
    if HARMLESS_VALUES.iter().any(tame) {
        return None;
    }
    let exact = NAMES.iter().find(|(known, _)| *known == name);
    let family = || PREFIXES.iter().find(|(prefix, _)| name.starts_with(prefix));
    exact.or_else(family).map(|(_, what)| *what)
}

/// Whether a variable of the environment holds a secret, going by its name: `GITHUB_TOKEN`, `AWS_SECRET_ACCESS_KEY`.
pub(crate) fn is_secret(name: &str) -> bool {
    if name.bytes().any(|byte| byte.is_ascii_lowercase()) {
        return false;
    }
    let mut parts = name.split('_').peekable();
    let several = name.contains('_');
    parts.any(|part| {
        matches!(
            part,
            "TOKEN"
                | "SECRET"
                | "SECRETS"
                | "PASSWORD"
                | "PASSWORDS"
                | "PASS"
                | "PWD"
                | "PASSWD"
                | "PASSPHRASE"
                | "CREDENTIAL"
                | "CREDENTIALS"
                | "APIKEY"
                | "PAT"
        )
    }) && !matches!(name, "PWD" | "OLDPWD")
        || matches!(
            name,
            "DATABASE_URL"
                | "DB_URL"
                | "MONGO_URL"
                | "MONGO_URI"
                | "MONGODB_URI"
                | "REDIS_URL"
                | "POSTGRES_URL"
                | "AMQP_URL"
        )
        || name.ends_with("_DSN")
        || several && name.ends_with("_KEY") && !name.ends_with("PUBLIC_KEY") && !name.ends_with("HOST_KEY")
}

/// Words that people search an environment for when they look for secrets.
pub(crate) fn looks_for_secrets(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    ["key", "token", "secret", "pass", "pwd", "credential", "creds", "auth", "aws", "private"]
        .iter()
        .any(|part| word.contains(part))
}

#[cfg(test)]
mod tests {
    use super::{influence, is_secret, looks_for_secrets};

    #[test]
    fn what_changes_what_runs() {
        for name in ["PATH", "LD_PRELOAD", "GIT_SSH_COMMAND", "BASH_ENV", "PYTHONSTARTUP", "NODE_OPTIONS", "PERL5OPT"] {
            assert!(influence(name, Some("x")).is_some(), "{name}");
        }
        for name in
            ["FOO", "LANG", "LC_ALL", "TZ", "NO_COLOR", "CI", "TERM", "RUST_LOG", "NODE_ENV", "GIT_AUTHOR_NAME", "IFS"]
        {
            assert!(influence(name, None).is_none(), "{name}");
        }
    }

    #[test]
    fn commands_and_archives_that_single_programs_take_from_a_variable() {
        for name in ["GREP", "TAPE", "BORG_RSH", "RESTIC_PASSWORD_COMMAND", "CDPATH", "ACK_PAGER", "LESSECHO"] {
            assert!(influence(name, Some("x")).is_some(), "{name}");
        }
    }

    #[test]
    fn names_of_secrets() {
        for name in ["GITHUB_TOKEN", "DB_PASS", "API_KEY", "DATABASE_URL", "SENTRY_DSN"] {
            assert!(is_secret(name), "{name}");
        }
        for name in ["PWD", "OLDPWD", "HOME", "PATH", "SSH_PUBLIC_KEY", "BASE_URL"] {
            assert!(!is_secret(name), "{name}");
        }
        assert!(looks_for_secrets("^AWS_") && looks_for_secrets("pass") && !looks_for_secrets("LANG"));
    }

    #[test]
    fn a_harmless_value_makes_a_name_harmless() {
        assert!(influence("PAGER", Some("cat")).is_none());
        assert!(influence("PAGER", Some("./x")).is_some());
        assert!(influence("PAGER", None).is_some());
    }
}
