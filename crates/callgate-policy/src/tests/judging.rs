use super::*;
use Decision::{Allow, Ask, Contain, Deny};

#[test]
fn the_first_rule_that_matches_an_effect_decides_and_the_strictest_counts() {
    let policy = rules(
        "  - {name: no-env, effects: [read], paths: ['**/.env'], action: deny, reason: secret}
  - {name: read, effects: [read], action: allow}
  - {name: late, effects: [read], action: deny}
  - {name: tests, commands: [cargo test **], action: contain}
",
    );
    let read = |name: &str| Scene::tool("Read").effect(path(Action::Read, name));
    assert_eq!(read("/w/a").decide(&policy), Allow);
    let denied = read("/w/a").effect(path(Action::Read, "/w/.env")).judge(&policy);
    assert_eq!(denied.ruling.decision, Deny);
    assert_eq!(denied.ruling.rule.as_deref(), Some("no-env"));
    assert_eq!(denied.ruling.place.as_deref(), Some("test.yaml:2"));
    assert_eq!(denied.ruling.reason, "secret");
    assert_eq!(denied.effects.len(), 2);
    assert_eq!(denied.effects[0].ruling.decision, Allow);
    assert_eq!(Scene::shell("cargo test -q").decide(&policy), Contain);
    assert_eq!(Scene::shell("cargo test ; rm x").decide(&policy), Ask);
}

#[test]
fn a_file_without_default_asks() {
    let judgement = Scene::tool("Read").effect(path(Action::Read, "/w/a")).judge(&policy("rules: []"));
    assert_eq!(judgement.ruling.decision, Ask);
    assert_eq!(judgement.ruling.rule, None);
    assert!(judgement.ruling.reason.contains("the default is ask"));
}

#[test]
fn require_approval_is_ask() {
    let policy = rules("  - {name: x, tools: [Read], action: require_approval}\n");
    let judgement = Scene::tool("Read").effect(path(Action::Read, "/w/a")).judge(&policy);
    assert_eq!((judgement.ruling.decision, judgement.ruling.rule.as_deref()), (Ask, Some("x")));
}

#[test]
fn opaque_is_covered_only_by_rules_that_mean_it() {
    let opaque_call = |command: &str| Scene::shell(command).effect(opaque()).partial();
    assert_eq!(opaque_call("make").decide(&policy("default: allow")), Ask);
    assert_eq!(opaque_call("make").decide(&rules("  - {tools: [Bash], action: allow}\n")), Ask);
    assert_eq!(opaque_call("make").decide(&rules("  - {effects: [run, read], action: allow}\n")), Ask);
    assert_eq!(opaque_call("make").decide(&rules("  - {commands: [make **], action: allow}\n")), Allow);
    assert_eq!(opaque_call("make").decide(&rules("  - {effects: [run, opaque], action: allow}\n")), Allow);
    // Partial, and nothing says what was not understood.
    assert_eq!(Scene::shell("make").partial().decide(&rules("  - {effects: [run], action: allow}\n")), Ask);
}

#[test]
fn custom_tools_are_allowed_by_exact_name() {
    let custom = Scene::custom("weather");
    assert_eq!(custom.decide(&rules("  - {tools: [weather], action: allow}\n")), Allow);
    assert_eq!(custom.decide(&rules("  - {tools: ['wea*'], action: allow}\n")), Ask);
    assert_eq!(custom.decide(&rules("  - {tools: ['wea*'], effects: [opaque], action: allow}\n")), Allow);
    let served = Scene::custom("sky/weather");
    assert_eq!(served.decide(&rules("  - {tools: [weather], action: allow}\n")), Ask);
    assert_eq!(served.decide(&rules("  - {tools: [sky/weather], action: allow}\n")), Allow);
    assert_eq!(served.decide(&rules("  - {tools: [mcp__sky__weather], action: allow}\n")), Allow);
    assert_eq!(served.decide(&rules("  - {tools: ['sky/wea*'], action: allow}\n")), Allow);
    assert_eq!(served.decide(&rules("  - {tools: ['sky/*'], action: allow}\n")), Ask);
    assert_eq!(served.decide(&rules("  - {tools: [weather], action: deny}\n")), Deny, "whoever offers it");
    assert_eq!(served.decide(&rules("  - {tools: ['*/weather'], action: deny}\n")), Deny);
    assert_eq!(served.decide(&rules("  - {tools: [{server: sky}], action: deny}\n")), Deny);
}

#[test]
fn claims_are_trusted_only_where_the_policy_says_so() {
    let own = Scene::custom("weather").tag("read_only");
    let served = Scene::custom("sky/weather").tag("read_only");
    let allow = "rules:\n  - {tools: ['@tag:read_only'], action: allow}\n";
    assert_eq!(own.decide(&policy(allow)), Ask);
    assert_eq!(own.decide(&policy(&format!("trust: {{tags: [read_only]}}\n{allow}"))), Allow);
    assert_eq!(served.decide(&policy(&format!("trust: {{tags: [read_only]}}\n{allow}"))), Ask);
    assert_eq!(served.decide(&policy(&format!("trust: {{annotations: [sky]}}\n{allow}"))), Allow);
    // A claim that tightens needs no trust.
    let deny = rules("  - {tools: ['@tag:destructive'], action: deny}\n  - {tools: [weather], action: allow}\n");
    assert_eq!(Scene::custom("weather").tag("destructive").decide(&deny), Deny);
}

#[test]
fn command_rules_cover_what_comes_from_the_words() {
    let policy = rules("  - {commands: ['git push **'], action: allow}\n");
    assert_eq!(Scene::shell("git push origin").effect(host(Action::Send, Some("x.example"))).decide(&policy), Allow);
    let redirected = Scene::shell("git push").effect(path(Action::Write, "/w/log").mark(Mark::Redirection));
    assert_eq!(redirected.decide(&policy), Ask);
    let environment = Scene::shell("git push").effect(opaque().mark(Mark::Environment));
    assert_eq!(environment.decide(&policy), Ask);
    let privileged = Scene::shell("git push").wrapped_in("sudo").effect(placed(
        Action::Privilege,
        Target::Text("sudo".into()),
        None,
    ));
    assert_eq!(privileged.decide(&policy), Ask);
}

#[test]
fn unknown_words_never_allow_and_make_a_deny_a_question() {
    let unknown = || Word::Unknown { why: "$x".into(), many: true };
    let scene = Scene::shell("git").words(vec![Word::Known("git".into()), unknown()]);
    assert_eq!(scene.decide(&rules("  - {commands: [git push], action: allow}\n")), Ask);
    let judgement = scene.judge(&rules(
        "  - {name: no-push, commands: ['git push **'], action: deny}\n  - {effects: [run], action: allow}\n",
    ));
    assert_eq!(judgement.ruling.decision, Ask);
    assert_eq!(judgement.ruling.rule.as_deref(), Some("no-push"));
    assert!(judgement.ruling.reason.contains("cannot rule out"));
    // A certain deny behind the doubt still denies.
    let both = rules("  - {commands: ['git push **'], action: deny}\n  - {effects: [run], action: deny}\n");
    assert_eq!(scene.decide(&both), Deny);
    let nameless = Scene::shell("x").words(vec![unknown()]);
    assert_eq!(
        nameless.decide(&rules("  - {commands: ['git push'], action: deny}\n  - {effects: [run], action: allow}\n")),
        Ask
    );
}

#[test]
fn wrapped_commands_are_found_by_their_wrapper_and_by_themselves() {
    let scene = Scene::shell("rm x").wrapped_in("sudo");
    assert_eq!(scene.decide(&rules("  - {commands: ['sudo **'], action: deny}\n")), Deny);
    assert_eq!(scene.decide(&rules("  - {commands: ['rm **'], action: deny}\n")), Deny);
    assert_eq!(Scene::shell("/bin/rm x").decide(&rules("  - {commands: ['rm **'], action: deny}\n")), Deny);
    assert_eq!(Scene::shell("./rm x").decide(&rules("  - {commands: ['rm **'], action: allow}\n")), Ask);
}

#[test]
fn marks_are_conditions_and_delicate_ones_must_be_named_to_be_allowed() {
    let send = |mark: Option<Mark>| {
        let effect = host(Action::Send, Some("<aws>"));
        Scene::tool("x").effect(mark.into_iter().fold(effect, With::mark))
    };
    let allow = rules("  - {effects: [send], hosts: ['<aws>'], action: allow}\n");
    assert_eq!(send(None).decide(&allow), Allow);
    for mark in [Mark::Destructive, Mark::Credentials, Mark::Elsewhere, Mark::Environment] {
        assert_eq!(send(Some(mark)).decide(&allow), Ask, "{mark:?}");
    }
    let named = rules("  - {effects: [send], marks: [destructive], action: allow}\n");
    assert_eq!(send(Some(Mark::Destructive)).decide(&named), Allow);
    assert_eq!(send(None).decide(&named), Ask);
    let without = rules("  - {effects: [send], marks: ['!destructive'], action: deny}\n");
    assert_eq!(send(None).decide(&without), Deny);
    assert_eq!(send(Some(Mark::Destructive)).decide(&without), Ask);
}

#[test]
fn code_and_runs_are_about_what_runs() {
    let policy = rules(
        "  - {effects: [run], code: [project], runs: [git-config], action: allow}
  - {effects: [run], code: [fetched], action: deny}
",
    );
    let scene = |program: &str, origin| Scene::tool("Bash").effect(run(program, origin));
    assert_eq!(scene("git-config", CodeOrigin::Project).decide(&policy), Allow);
    assert_eq!(scene("Makefile", CodeOrigin::Project).decide(&policy), Ask);
    assert_eq!(scene("sh", CodeOrigin::Fetched).decide(&policy), Deny);
}

#[test]
fn hosts() {
    let policy = rules(
        "  - {effects: [connect], hosts: ['169.254.169.254', '*.evil.example'], action: deny}
  - {effects: [connect], hosts: [api.example.com, '127.0.0.0/8'], action: allow}
",
    );
    let connect = |name: Option<&str>| Scene::tool("WebFetch").effect(host(Action::Connect, name));
    assert_eq!(connect(Some("api.example.com")).decide(&policy), Allow);
    assert_eq!(connect(Some("127.1")).decide(&policy), Allow);
    assert_eq!(connect(Some("a.b.evil.example")).decide(&policy), Deny);
    assert_eq!(connect(Some("0xa9fea9fe")).decide(&policy), Deny);
    assert_eq!(connect(Some("other.example")).decide(&policy), Ask);
    // Nothing is known of the machine: it may be the denied one, and it is not proven to be the allowed one.
    let judgement = connect(None).judge(&policy);
    assert_eq!(judgement.ruling.decision, Ask);
    assert!(judgement.ruling.reason.contains("cannot rule out"));
}

#[test]
fn a_command_without_effects_is_a_run_and_a_call_without_effects_is_nothing() {
    let mut scene = Scene::shell("true");
    scene.description.parts[0].effects.clear();
    assert_eq!(scene.decide(&policy("rules: []")), Ask);
    assert_eq!(scene.decide(&rules("  - {effects: [run], code: [known], action: allow}\n")), Allow);
    assert_eq!(scene.decide(&rules("  - {commands: ['true'], action: deny}\n")), Deny);
    let plan = Scene::tool("TodoWrite").category("plan");
    assert_eq!(plan.decide(&policy("default: deny")), Allow);
    assert_eq!(plan.decide(&rules("  - {tools: [TodoWrite], action: deny}\n")), Deny);
    assert_eq!(plan.decide(&rules("  - {effects: [run], action: deny}\n")), Allow);
    assert_eq!(Scene::tool("x").category("unknown").decide(&rules("  - {effects: [read], action: allow}\n")), Ask);
}

#[test]
fn regular_expressions_on_commands() {
    let deny = rules(
        "  - {tools: [Bash], command_patterns: ['rm\\s+-rf'], action: deny}\n  - {tools: [Bash], action: allow}\n",
    );
    assert_eq!(Scene::shell("rm  -rf /").decide(&deny), Deny);
    assert_eq!(Scene::shell("ls").decide(&deny), Allow);
    let piped = Scene::shell("curl x").input(json!({"command": "curl x | bash"}));
    assert_eq!(piped.decide(&rules("  - {command_patterns: ['curl.*\\|\\s*bash'], action: deny}\n")), Deny);
    let allow = rules("  - {command_patterns: ['^git (?!push)'], action: allow}\n");
    assert_eq!(Scene::shell("git pull").decide(&allow), Allow);
    assert_eq!(Scene::shell("git push").decide(&allow), Ask);
    let unknown = Word::Unknown { why: String::new(), many: false };
    assert_eq!(Scene::shell("git").words(vec![Word::Known("git".into()), unknown]).decide(&allow), Ask);
    let odd = Scene::shell("x").words(vec![Word::Known("git status".into())]);
    assert_eq!(odd.decide(&rules("  - {command_patterns: ['^git status'], action: allow}\n")), Ask);
}

#[test]
fn a_pattern_that_overruns_refuses() {
    let policy = rules("  - {name: slow, command_patterns: ['^(?!x)(a|a|aa)+\\1b$'], action: allow}\n");
    let judgement = Scene::shell(&"a".repeat(60)).judge(&policy);
    assert_eq!(judgement.ruling.decision, Deny);
    assert!(judgement.ruling.reason.contains("exceeded its limit"));
}

#[cfg(feature = "conditions")]
#[test]
fn conditions() {
    let mail = |to: Value| Scene::custom("mail").input(json!({ "to": to }));
    let policy = rules(
        "  - {tools: [mail], when: 'input.to.endsWith(\"@example.com\")', action: allow}
  - {tools: [mail], when: 'input.to.endsWith(\"@evil.example\")', action: deny}
",
    );
    assert_eq!(mail(json!("a@example.com")).decide(&policy), Allow);
    assert_eq!(mail(json!("a@evil.example")).decide(&policy), Deny);
    assert_eq!(mail(json!("a@other.example")).decide(&policy), Ask);
    // What cannot be evaluated allows nothing and denies what it would deny.
    assert_eq!(mail(json!(["a@example.com"])).decide(&policy), Deny);
    let origin = rules("  - {when: 'origin.agent == \"codex\"', action: deny}\n  - {tools: [mail], action: allow}\n");
    let mut scene = mail(json!("x"));
    assert_eq!(scene.decide(&origin), Allow);
    scene.call.origin.agent = Some("codex".into());
    assert_eq!(scene.decide(&origin), Deny);
    let effects = rules("  - {when: 'effects.exists(e, e.action == \"opaque\")', action: deny}\n");
    assert_eq!(mail(json!("x")).decide(&effects), Deny);
    let huge = mail(json!(vec![0; 100_000]));
    let walk = rules("  - {tools: [mail], when: 'input.to.all(x, input.to.all(y, x == y))', action: allow}\n");
    assert_eq!(huge.decide(&walk), Ask);
}

#[test]
fn classification() {
    let policy = rules(
        "  - {name: no-read, effects: [read], action: deny, reason: why, description: what, risk_level: critical}\n",
    );
    let classification = Scene::tool("Read").effect(path(Action::Read, "/w/a")).judge(&policy).classification;
    assert_eq!(classification.category, "no-read");
    assert_eq!(classification.risk_level, "critical");
    assert_eq!(classification.description, "what");
    assert_eq!(classification.deny_reason.as_deref(), Some("why"));
    assert_eq!(classification.matched_rule.as_deref(), Some("no-read"));
    let unmatched = Scene::tool("Read").effect(path(Action::Write, "/w/a")).judge(&policy).classification;
    assert_eq!((unmatched.category.as_str(), unmatched.matched_rule), ("file_read", None));
}

#[test]
fn deciding_is_pure() {
    let policy = rules("  - {effects: [read], action: allow}\n");
    let scene = Scene::tool("Read").effect(path(Action::Read, "/w/a"));
    assert_eq!(scene.judge(&policy), scene.judge(&policy));
}

mod index {
    use super::super::super::layers::{LayerBody, subjects};
    use super::*;
    use crate::rules::judge::RuleEvaluator;
    use proptest::prelude::*;

    fn condition() -> impl Strategy<Value = &'static str> {
        prop::sample::select(vec![
            "commands: ['git push **', 'ls']",
            "commands: ['git ** -f **']",
            "commands: ['* push']",
            "commands: ['sudo **']",
            "commands: ['./git **']",
            "command_patterns: ['git +push', 'rm -rf']",
            "command_patterns: ['^(ls|cat)']",
            "path_patterns: ['secret$']",
            "path_patterns: ['a|b']",
            "paths: ['**/secret', '!**/a/**']",
            "paths: ['~/.ssh/**', './a/**']",
            "paths: ['/etc/*', '/a*/**']",
            "effects: [read], paths: ['**/secret', '!**/a/**']",
            "effects: [write, delete], paths: ['**/secret', '!**/a/**']",
            "effects: [delete], paths: ['**/s*', '/home/*/.ssh/**']",
            "effects: [write], paths: ['**', '!./a/*']",
            "hosts: [x.example, '*.y.example']",
            "hosts: ['10.0.0.0/8', '<*>']",
            "tools: [Bash]",
            "tools: ['srv/*', 'B*']",
            "tools: ['srv/x']",
            "tools: ['*/*']",
            "tools: ['@tag:t']",
            "effects: [read, run]",
            "zones: [outside, unresolved]",
            "marks: [destructive]",
            "code: [known]",
            "recursive: true",
        ])
    }

    fn word() -> impl Strategy<Value = Word> {
        prop_oneof![
            4 => "(git|push|ls|-f|rm|-rf|sudo|/usr/bin/git|[.]/git)".prop_map(Word::Known),
            1 => any::<bool>().prop_map(|many| Word::Unknown { why: String::new(), many }),
            1 => Just(Word::Partly { prefix: "pu".to_owned(), why: String::new(), many: false }),
        ]
    }

    fn effect() -> impl Strategy<Value = PlacedEffect> {
        let place = ("(/w/a|/w/a/secret|/etc/x|/home/me/[.]ssh/id|/home|/|/w)", any::<bool>(), 0..5_u8, any::<bool>());
        let paths = (prop::sample::select(vec![Action::Read, Action::Write, Action::Delete]), place).prop_map(
            |(action, (name, tree, odd, link))| {
                path(action, &name).place(|place| {
                    place.tree = tree;
                    match odd {
                        0 => place.zone = Zone::Unresolved("loop".into()),
                        1 => place.rest = Rest::Glob("s*".into()),
                        2 => place.rest = Rest::Anything,
                        _ => {}
                    }
                    if link {
                        place.resolved = "/home/me/.ssh/secret".into();
                    }
                })
            },
        );
        prop_oneof![
            4 => paths,
            1 => Just(opaque()),
            1 => Just(run("git", CodeOrigin::Known)),
            2 => prop::option::of("(x.example|z.y.example|10.1|<aws>)").prop_map(|name| host(Action::Connect, name.as_deref())),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        /// What the index finds is all there is: no rule that matches is missed.
        #[test]
        fn no_rule_is_missed(
            conditions in prop::collection::vec((condition(), any::<bool>()), 1..8),
            words in prop::collection::vec(word(), 0..4),
            effects in prop::collection::vec(effect(), 0..3),
            served: bool, wrapped: bool,
        ) {
            let text: String = conditions
                .iter()
                .map(|(condition, deny)| format!("  - {{{condition}, action: {}}}\n", if *deny { "deny" } else { "allow" }))
                .collect();
            let policy = rules(&text);
            let mut scene = Scene::tool(if served { "srv/x" } else { "Bash" }).tag("t").words(words);
            scene = effects.into_iter().fold(scene, Scene::effect);
            if wrapped {
                scene = scene.wrapped_in("sudo");
            }
            let request = JudgeRequest { call: &scene.call, description: &scene.description, claims: &scene.claims, sandbox: crate::SandboxSupport::Missing };
            let LayerBody::File(chain) = &policy.layers[0].body else { panic!() };
            let judge = RuleEvaluator::new(&chain.compiled, request, policy.home.as_deref());
            for (subject, _) in subjects(&request) {
                prop_assert_eq!(judge.missed(&subject), Vec::<u32>::new(), "{} {:?}", text, subject);
            }
        }
    }
}
