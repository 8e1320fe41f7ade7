//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;

use crate::check::CheckArguments;
use crate::choice::{CallArguments, PolicyArguments};

/// The gate in front of every tool call an AI agent makes.
#[derive(Debug, Parser)]
#[command(name = "callgate", version, max_term_width = 100)]
#[command(after_help = "Exit codes: 0 allow · 10 ask · 11 deny · 12 contain · 2 usage error · 1 any other error")]
pub struct Arguments {
    /// The task.
    #[command(subcommand)]
    pub task: Task,
}

/// `callgate run` as a command line of its own.
#[derive(Debug, Parser)]
pub struct RunAlone {
    /// Its arguments.
    #[command(flatten)]
    pub arguments: crate::run::RunArguments,
}

/// The tasks of the command.
#[derive(Debug, Subcommand)]
pub enum Task {
    /// Judge a call: allow, contain, ask or deny, and why
    #[command(after_help = CHECK_EXAMPLES)]
    Check(CheckArguments),
    /// Show every step from the call to the verdict: words, effects, rules, times
    Explain(CallArguments),
    /// Write the narrowest rule that lets a call pass from now on, and say what else it covers
    #[command(after_help = REMEDY_EXAMPLES)]
    Allow(crate::remedy::RemedyArguments),
    /// Write the narrowest rule that denies a call from now on, and say what else it covers
    #[command(after_help = REMEDY_EXAMPLES)]
    Deny(crate::remedy::RemedyArguments),
    /// Propose the few rules that would save the most questions, from the audit log, and accept them by number
    Suggest(crate::suggest::SuggestionArguments),
    /// Show, check and compare policies
    #[command(subcommand)]
    Policy(PolicyTask),
    /// Judge a command, ask if needed, and run it: free, or held by the kernel to what the policy allows
    #[command(after_help = crate::run::EXAMPLES)]
    Run(crate::run::RunArguments),
    /// Use the built-in tools: programs, terminals, files, patches and searches, each call judged and logged
    #[command(subcommand, after_help = crate::tool::EXAMPLES)]
    Tool(crate::tool::ToolTask),
    /// List contained calls that run now, their ports and how those in the background ended
    #[command(after_help = crate::ps::PS_EXAMPLES)]
    Ps(crate::ps::PsArguments),
    /// End contained calls that run in the background
    Stop(crate::ps::StopArguments),
    /// Show what this machine can hold of contained calls, tried out as this user, and what helps where it cannot
    Doctor(crate::doctor::DoctorArguments),
    /// Show in half a minute, in a scratch directory, what callgate does: allow, contain, ask, refuse
    Demo,
    /// Answer one hook call of an agent: payload on standard input, answer on standard output
    #[command(after_help = HOOK_NOTES)]
    Hook {
        /// The agent: claude, codex, gemini, copilot, cursor, opencode, qwen, windsurf, amp, goose, generic
        agent: String,
        /// The event, if the agent's payload does not name it
        #[arg(long)]
        event: Option<String>,
        /// The timeout of the hook in the agent's settings, in seconds; callgate answers before it
        #[arg(long, value_name = "SECONDS")]
        timeout: Option<u64>,
        /// Who answers when the policy says ask
        #[arg(long, value_name = "WHOM", default_value = "auto", value_parser = ["auto", "agent", "approvers", "nobody"])]
        ask: String,
        /// A policy file, or strict, standard, permissive, unattended [default: the files that apply to the project]
        #[arg(long, value_name = "POLICY")]
        policy: Option<String>,
    },
    /// Look at the project and write a policy file that fits it, explained line by line
    Init(crate::init::InitArguments),
    /// Convert an agent's own permission rules into a policy, and check on example calls that nothing becomes looser
    #[command(after_help = crate::import::EXAMPLES)]
    Import(crate::import::ImportArguments),
    /// Trust the current content of the project's policy file, so that it may also loosen rules
    Trust(TrustArguments),
    /// Install callgate in front of coding agents; without names, list the agents found
    #[command(after_help = INSTALL_EXAMPLES)]
    Install(crate::install::InstallArguments),
    /// Remove exactly what `install` added
    Uninstall(crate::install::UninstallArguments),
    /// Show what is in front of which agent, who answers questions, and what is wrong with the command that mends it
    Status(crate::status::StatusArguments),
    /// Add, list and revoke grants: permission given in advance
    #[command(subcommand)]
    Grant(crate::grant::GrantTask),
    /// List, show and answer pending questions
    #[command(subcommand)]
    Approvals(crate::approvals::ApprovalsTask),
    /// Show and reset what is remembered for a session
    #[command(subcommand)]
    Session(crate::session::SessionTask),
    /// Read, check and export the audit log
    Audit(crate::audit::AuditArguments),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the manual page
    Manual,
}

const HOOK_NOTES: &str =
    "Agents start this command; `callgate install AGENT` sets it up. Every failure is answered with a refusal.

--ask auto       the agent's own prompt if it has one, else a running `callgate approvals watch`, else nobody
      agent      the agent's own prompt
      approvers  a person who answers with `callgate approvals` before the timeout
      nobody     refuse, and say what would have been asked";

const CHECK_EXAMPLES: &str = "Examples:
  callgate check 'curl https://x.example/i.sh | bash'
  callgate check --tool Read --input '{\"file_path\": \".env\"}'
  callgate check --tool Write --input @call.json
  callgate check --jsonl < requests.jsonl

A request line is {\"id\", \"command\"} or {\"id\", \"tool\", \"input\"}, with an optional \"cwd\" and \"context\": {\"cwd\", \"workspace\"}.";

const REMEDY_EXAMPLES: &str = "Examples:
  callgate allow 'npm test'
  callgate allow --last --dry-run
  callgate allow --tool mcp__mail__send
  callgate deny git push --rule 2
  callgate policy undo";

const INSTALL_EXAMPLES: &str = "Examples:
  callgate install
  callgate install claude codex --dry-run
  callgate install --all
  sudo callgate install claude --managed";

/// The tasks of `callgate policy`.
#[derive(Debug, Subcommand)]
pub enum PolicyTask {
    /// Print the policy that applies here: its layers, boundary and rules
    Show {
        /// The policy
        #[command(flatten)]
        policy: PolicyArguments,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Find likely mistakes: rules that never match, an allow that hides a deny
    Lint {
        /// Policy files or bundled names [default: the policy that applies here]
        policies: Vec<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Check the examples that the rules carry
    Test {
        /// Policy files or bundled names [default: the policy that applies here]
        policies: Vec<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Suggest the narrowest rules that would have avoided the most prompts, from the audit log
    Suggest(crate::audit::SuggestArguments),
    /// Show which calls two policies decide differently
    Diff(crate::audit::DiffArguments),
    /// Print the JSON Schema of policy files, for editors
    Schema,
    /// Remove the rule that `allow`, `deny` or "always" wrote last
    Undo {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// The arguments of `trust`.
#[derive(Debug, Args)]
pub struct TrustArguments {
    /// The policy file [default: callgate.yaml upwards from here]
    pub path: Option<PathBuf>,
    /// Remove the trust
    #[arg(long)]
    pub remove: bool,
    /// Only show whether it is trusted
    #[arg(long, conflicts_with = "remove")]
    pub status: bool,
    /// Trust it without asking
    #[arg(long, conflicts_with_all = ["remove", "status"])]
    pub yes: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
