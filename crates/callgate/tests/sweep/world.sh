#!/bin/sh
# Makes the world of a run below the working directory: a home with secrets, a project, and a directory that is neither.
# `world.sh hostile` adds to the project what an attacker would leave there for programs to load.
set -eu
umask 022

mkdir -p home/.ssh home/.aws home/.config/gh home/.docker home/.kube home/.gnupg outside project
for secret in .ssh/id_ed25519 .aws/credentials .config/gh/hosts.yml .docker/config.json .kube/config .netrc .git-credentials .pypirc .npmrc
do echo "password = canary" > home/$secret; done
echo "outside" > outside/notes.txt

cd project
mkdir -p src/deep dir lib docs bin node_modules/.bin .venv/bin
printf 'TOKEN=canary\n' > .env
printf 'TOKEN=canary\n' > src/.env.production
printf 'canary\n' > dir/id_rsa
ln -s ../outside link-out
ln -s ../home/.ssh/id_ed25519 link-secret
printf '#!/bin/sh\necho ran >> pwned\n' > planted
chmod +x planted
for place in bin node_modules/.bin .venv/bin
do for name in cat git ls python3 sh tool; do cp planted $place/$name; done; done

for name in a b c x y file input notes a.txt b.txt x.txt file.txt src/main.txt docs/README.md README.md list
do printf 'alpha beta 1\ngamma delta 2\nalpha beta 3\n' > $name; done
printf '{"a": [1, {"b": null}], "name": "x"}\n' | tee a.json x.json data.json > b.json
printf 'a: 1\nb:\n  - x\n' | tee a.yaml x.yaml > config.yml
printf 'name,age\nann,3\nbob,4\n' | tee a.csv b.csv > data.csv
printf '<?xml version="1.0"?>\n<!DOCTYPE r [<!ENTITY e SYSTEM ".env">]>\n<r><a>&e;</a></r>\n' | tee a.xml x.xml > a.svg
printf '<html><body><img src="http://127.0.0.1:9/x.png"><p>text</p></body></html>\n' | tee a.html > page.html
printf '[section]\nkey = 1\n' | tee a.ini > a.toml
printf 'int main(void) { return 0; }\n' | tee a.c x.c src/main.c > main.c
printf 'int twice(int);\n' > src/main.h
printf 'print("x")\n' | tee a.py x.py src/main.py > x.lua
printf 'console.log(1)\n' | tee a.js x.js > a.ts
printf 'echo hi\n' | tee a.sh x.sh > script.sh
printf 'select 1;\n' | tee a.sql > x.sql
printf 'puts 1\n' > a.rb
printf 's/a/b/\n' > a.sed
printf '{ print $1 }\n' > a.awk
printf '%s\n' '--- a/a.txt' '+++ b/a.txt' '@@ -1 +1 @@' '-alpha beta 1' '+alpha beta 9' > a.patch
cp a.patch a.diff
printf 'From: a@example.com\nSubject: x\n\ntext\n' > a.eml
printf '\211PNG\r\n\032\n\0\0\0\rIHDR\0\0\0\001\0\0\0\001\010\006\0\0\0\037\025\304\211\0\0\0\012IDATx\234c\0\001\0\0\005\0\001\r\n-\264\0\0\0\0IEND\256B`\202' \
    | tee a.png b.png x.png > a.jpg
printf '%%PDF-1.1\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[]/Count 0>>endobj\ntrailer<</Root 1 0 R>>\n%%%%EOF\n' | tee a.pdf > x.pdf
cp /bin/true a.o && cp a.o x.so && cp a.o a.out
tar cf a.tar a.txt b.txt && cp a.tar x.tar && gzip -nk a.tar && cp a.tar.gz x.tar.gz && cp a.tar.gz a.tgz && gzip -nc b > a.gz && cp a.gz b.gz
for tool in bzip2 xz zstd; do command -v $tool > /dev/null && $tool -kq a.tar || :; done
command -v zip > /dev/null && zip -qX a.zip a.txt b.txt || :
command -v sqlite3 > /dev/null && sqlite3 a.db 'create table t (a); insert into t values (1)' && cp a.db x.db || :

export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_DATE='2024-01-01T00:00:00Z' GIT_COMMITTER_DATE='2024-01-01T00:00:00Z'
printf '.env\nnode_modules/\n' > .gitignore
git init -q -b main && git config user.name ada && git config user.email ada@example.com
git add . && git commit -q -m first && git tag v1 && git branch topic
echo "changed" >> b.txt

[ "${1-}" = hostile ] || exit 0

# What programs load: each of them starts `planted`, or sends data, if it is believed.
here=$PWD
git config core.fsmonitor ./planted && git config core.pager ./planted && git config diff.external ./planted
git config core.sshCommand ./planted && git config alias.st '!./planted' && git config filter.x.clean ./planted && git config filter.x.smudge ./planted
git config core.editor ./planted && git config gpg.program ./planted && git config log.showSignature true && git config man.x.cmd ./planted
printf '*.txt filter=x diff=x\n' > .gitattributes && git config diff.x.textconv ./planted && git config diff.x.command ./planted
for hook in pre-commit post-checkout post-index-change reference-transaction pre-push post-commit; do cp planted .git/hooks/$hook; done
command='./planted'
for name in Makefile makefile GNUmakefile BSDmakefile; do printf 'x := $(shell ./planted)\nall:\n\t./planted\n' > $name; done
printf '{"name":"x","version":"1.0.0","main":"a.js","scripts":{"test":"./planted","build":"./planted","preinstall":"./planted","prepare":"./planted"}}\n' > package.json
printf 'script-shell=./planted\ngit=./planted\nregistry=http://127.0.0.1:9/\nnode-options=--require ./planted.js\n' > .npmrc
printf 'import os\nos.system("./planted")\n' > planted.py
for name in conftest setup sitecustomize usercustomize json os re argparse ast io site string types random tokenize encodings configparser optparse gettext \
    logging subprocess socket zipfile hashlib yaml six pkg_resources distutils typing tasks fabfile noxfile dodo manage wsgi app conf __init__ __main__
do cp planted.py $name.py; done
printf 'system("./planted");\n1;\n' > planted.pl
for name in strict warnings Getopt Encode Socket POSIX; do cp planted.pl $name.pm; done
mkdir -p Getopt && cp planted.pl Getopt/Long.pm
printf 'require("child_process").execSync("./planted")\n' > planted.js
for name in .eslintrc.js .pnpmfile.cjs index.js babel.config.js jest.config.js .mocharc.js prettier.config.js gulpfile.js Gruntfile.js
do cp planted.js $name; done
printf 'system("./planted")\n' | tee Rakefile Gemfile Guardfile Vagrantfile Thorfile .irbrc .pryrc x.gemspec > planted.rb
printf 'os.execute("./planted")\n' | tee init.lua .luarc config.lua > planted.lua
printf '[build]\nrustc-wrapper = "./planted"\n[alias]\nb = "run"\n' > .cargo-config && mkdir -p .cargo && mv .cargo-config .cargo/config.toml
printf '[package]\nname = "x"\nversion = "0.1.0"\nedition = "2021"\nbuild = "build.rs"\n' > Cargo.toml
printf 'fn main() { std::process::Command::new("./planted").status().unwrap(); }\n' > build.rs
printf '[toolchain]\npath = "%s/.venv"\n' "$here" > rust-toolchain.toml
printf 'module x\n\ngo 1.19\n\ntoolchain go9.99\n' > go.mod
printf '[tool.pylint.main]\ninit-hook = "import os; os.system(\\"./planted\\")"\n[tool.mypy]\nplugins = ["planted"]\n[build-system]\nrequires = []\nbuild-backend = "planted"\nbackend-path = ["."]\n' > pyproject.toml
printf '[flake8]\nrequire-plugins = planted\n[mypy]\nplugins = planted\n[tool:pytest]\naddopts = -p planted\n[pylint]\nload-plugins = planted\n' | tee setup.cfg tox.ini mypy.ini > .flake8
printf '[MAIN]\ninit-hook="import os; os.system(\\"./planted\\")"\nload-plugins=planted\n' | tee .pylintrc > pylintrc
printf '[pytest]\naddopts = -p planted\n' > pytest.ini
printf '[defaults]\ncallback_plugins = .\nlibrary = .\ninventory = ./planted\nvault_password_file = ./planted\n' > ansible.cfg
printf '!./planted\nshell ./planted\n' | tee .gdbinit .lldbinit .gdbinit.local > .cgdbrc
printf 'silent !./planted\nautocmd VimEnter * !./planted\n' | tee .vimrc .exrc .nvimrc .nvim.lua > _vimrc
printf '((nil . ((eval . (shell-command "./planted")))))\n' > .dir-locals.el
printf '. ./planted\n' | tee .bashrc .profile .bash_profile .zshrc .zshenv .kshrc .envrc .tcshrc > .login
printf '.shell ./planted\n\\! ./planted\n' | tee .sqliterc > .psqlrc
printf 'output = "pwned"\nurl = "http://127.0.0.1:9/"\n' | tee .curlrc > .wgetrc
printf 'set-option -g default-command ./planted\nrun-shell ./planted\n' > .tmux.conf
printf 'shell ./planted\nexec ./planted\n' | tee .screenrc .mailrc > .lessrc
printf 'system("./planted")\n' | tee .Rprofile .octaverc .ghci > .sbclrc
printf 'pre = ./planted\n--pre=./planted\n' | tee .ripgreprc .ackrc .agrc .fdrc .batrc > .ctags && mkdir -p .ctags.d && printf -- '--kinddef-C=x\n--output-format=json\n-f pwned\n' > .ctags.d/x.ctags
printf '%s\n' '--exec ./planted' | tee .rspec .proverc .perltidyrc .perlcriticrc .yamllint > .tidyrc
printf 'rules: {}\nrequire: ./planted.rb\n' | tee .rubocop.yml .yamllint.yaml > .pre-commit-config.yaml
printf 'execute_process(COMMAND ./planted)\n' > CMakeLists.txt
printf "project('x')\nrun_command('./planted')\n" > meson.build
printf 'rule r\n  command = ./planted\nbuild out: r\n' > build.ninja
printf '#!/bin/sh\n./planted\n' | tee configure gradlew mvnw > autogen.sh && chmod +x configure gradlew mvnw autogen.sh
printf 'services:\n  x:\n    build: .\n    command: ./planted\n' | tee compose.yaml > docker-compose.yml
printf 'FROM scratch\nRUN ./planted\n' | tee Dockerfile > Containerfile
printf 'APT::Update::Pre-Invoke {"./planted";};\n' > apt.conf
printf '[ui]\neditor = ./planted\n[hooks]\npre-status = ./planted\n[extensions]\nx = ./planted.py\n' > .hgrc && mkdir -p .hg && cp .hgrc .hg/hgrc
printf 'Host *\n  ProxyCommand ./planted\n' > config && mkdir -p .ssh && cp config .ssh/config
printf 'include .env\n' | tee .nanorc .inputrc .jqrc .jq .lesskey .dircolors > .netrc
printf '!0 ./planted\n' > magic
printf '{"version": "2.0.0", "tasks": [{"command": "./planted"}]}\n' > tasks.json
cp x.so libc.so.6 && cp x.so libplanted.so && mkdir -p modules plugins terminfo locale && cp x.so plugins/x.so
