//! Writing code is quiet: of two hundred ordinary edits, at most one in ten is a question.

#![allow(clippy::expect_used, reason = "a test says what is missing by failing")]

use callgate::policy::{Decision, Policy};
use callgate::{Call, Gate};
use serde_json::json;

/// Files of projects in several languages: sources, tests, documents, data, and now and then something that configures a tool.
const FILES: &str = "
    src/main.rs src/lib.rs src/parser/mod.rs src/parser/lexer.rs src/bin/tool.rs tests/parse.rs benches/parse.rs examples/hello.rs Cargo.toml
    CHANGELOG.md README.md docs/guide.md docs/images/flow.svg src/error.rs src/config.rs src/cli/arguments.rs tests/data/one.json
    tests/snapshots/a.snap .gitignore LICENSE src/http/client.rs src/http/server.rs crates/core/src/lib.rs crates/core/tests/all.rs
    src/index.ts src/app.tsx src/components/Button.tsx src/components/Button.test.tsx src/components/Button.module.css src/hooks/useUser.ts
    src/pages/index.tsx src/pages/api/login.ts src/styles/global.css src/utils/format.ts src/utils/format.test.ts src/types/user.d.ts
    public/index.html public/favicon.svg src/i18n/de.json src/i18n/en.json src/store/session.ts src/router.ts src/api/client.ts package.json
    tsconfig.json src/assets/logo.svg e2e/login.spec.ts src/server/routes/users.js src/server/middleware/auth.js src/server/models/user.js
    src/server/views/home.ejs migrations/001_users.sql seeds/users.sql src/worker.js src/lib/date.js test/date.test.js test/fixtures/users.json
    app/__init__.py app/main.py app/models.py app/views.py app/urls.py app/forms.py app/services/mail.py app/services/__init__.py app/tasks/clean.py
    tests/test_main.py tests/test_models.py tests/helpers.py docs/index.rst docs/api.rst notebooks/explore.ipynb data/sample.csv data/schema.json
    scripts/report.py app/templates/base.html app/templates/home.html app/static/site.css app/static/site.js app/migrations/0001_initial.py
    app/admin.py app/serializers.py app/signals.py app/permissions.py requirements.txt pkg/client/client.go pkg/client/client_test.go
    cmd/server/main.go internal/store/store.go internal/store/store_test.go internal/http/handler.go api/openapi.yaml proto/user.proto go.sum
    internal/config/config.go internal/log/log.go testdata/input.txt web/index.html web/app.css README.de.md
    src/main/java/com/example/App.java src/main/java/com/example/UserService.java src/main/java/com/example/UserController.java
    src/test/java/com/example/UserServiceTest.java src/main/resources/application.yml src/main/resources/messages.properties
    src/main/resources/templates/index.html src/main/kotlin/com/example/Main.kt src/test/kotlin/com/example/MainTest.kt
    app/controllers/users_controller.rb app/models/user.rb app/views/users/index.html.erb spec/models/user_spec.rb spec/requests/users_spec.rb
    config/routes.rb db/migrate/20260101000000_create_users.rb app/helpers/users_helper.rb app/jobs/mail_job.rb config/locales/en.yml
    src/Controller/UserController.php src/Entity/User.php tests/Entity/UserTest.php templates/user/index.html.twig src/Service/Mailer.php
    translations/messages.en.yaml lib/main.dart lib/widgets/button.dart test/widget_test.dart lib/models/user.dart ios/Runner/Info.txt
    Sources/App/main.swift Sources/App/User.swift Tests/AppTests/UserTests.swift include/parser.h src/parser.c src/parser_test.c src/vector.cpp
    include/vector.hpp docs/design/decisions/0001-language.md docs/faq.md CONTRIBUTING.md CODE_OF_CONDUCT.md SECURITY.md notes.txt TODO.md
    ideas/plan.md src/shader.frag assets/levels/one.json assets/strings.xml themes/dark.css k8s/deployment.yaml charts/web/values.yaml
    infra/main.tf infra/variables.tf infra/outputs.tf queries/report.sql grammars/expr.pest src/grammar.y src/lexer.l lib/parser.ex
    test/parser_test.exs src/core.clj test/core_test.clj src/Main.hs test/Spec.hs src/app.erl src/utils.ml R/clean.R tests/testthat/test-clean.R
    scripts/deploy.sh scripts/seed.js tools/convert.py src/plugin.lua spec/plugin_spec.lua styles/main.scss src/main.zig src/lib.v
    .editorconfig .github/ISSUE_TEMPLATE/bug.md .env.example docs/mkdocs.md src/model.proto src/schema.graphql src/data.avsc
    src/cache.rs src/queue.py app/logging.py src/domain/types.ts src/domain/order.ts src/domain/order.test.ts docs/changelog/next.md
    web/src/main.ts web/src/views/Home.vue web/src/components/Nav.svelte web/package.json web/vite.config.ts app/Makefile data/users.xml
    tests/golden/output.txt tests/cassettes/login.yaml locale/de/LC_MESSAGES/app.po fonts/LICENSE.txt legal/privacy.md
";

#[test]
fn at_most_one_in_ten_is_a_question() {
    let project = tempfile::tempdir().expect("a directory");
    let gate = Gate::builder().policy(Policy::bundled("standard").expect("a policy")).build();
    let files: Vec<&str> = FILES.split_whitespace().collect();
    assert!(files.len() >= 200, "{}", files.len());
    let decide = |file: &str| {
        let path = project.path().join(file);
        let call = Call::new("Write", json!({"file_path": path, "content": "x"}))
            .directory(project.path())
            .workspace(project.path());
        gate.assess(&call).map_or(Decision::Deny, |assessment| assessment.ruling().decision)
    };
    let asked: Vec<&str> = files.iter().copied().filter(|file| decide(file) != Decision::Allow).collect();
    assert!(asked.len() * 10 <= files.len(), "{} of {}: {asked:?}", asked.len(), files.len());
    // and it is a list of names that run later, not of nothing
    for file in ["package.json", "Cargo.toml", "requirements.txt"] {
        assert!(asked.contains(&file), "{file}");
    }
}
