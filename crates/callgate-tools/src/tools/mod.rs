//! The built-in tools: one file each, with its schema and its execution.
//!
//! How the gate understands them stands in the table of `callgate` (`describe/tools.txt`), because a gate judges these calls also where other programs
//! run them.

mod apply_patch;
mod ask_human;
mod exec_command;
mod file_read;
mod file_write;
mod grep_files;
mod list_dir;
mod read_file;
mod request_user_input;
mod shell;
mod shell_command;
mod shell_exec;
mod update_plan;
mod view_image;
mod write_stdin;

use std::sync::Arc;

use crate::result::{ToolError, ToolResult};
use crate::run::{Check, Handler, Run};
use crate::spec::ToolSpec;

/// A tool of this crate.
struct BuiltIn {
    run: fn(&Run<'_>) -> Result<ToolResult, ToolError>,
    /// What is wrong with an input, whatever the gate would say.
    check: Option<Check>,
    contains: bool,
}

impl Handler for BuiltIn {
    fn run(&self, run: &Run<'_>) -> Result<ToolResult, ToolError> {
        (self.run)(run)
    }

    fn starts_programs(&self) -> bool {
        self.contains
    }
}

/// All of them, in the order in which they are listed.
pub(crate) fn built_in() -> Vec<(ToolSpec, Arc<dyn Handler>, Option<Check>)> {
    let files = |run| BuiltIn { run, check: None, contains: false };
    let programs = |run| BuiltIn { run, check: None, contains: true };
    let all: [(ToolSpec, BuiltIn); 15] = [
        (shell_exec::spec(), programs(shell_exec::run)),
        (shell::spec(), programs(shell::run)),
        (shell_command::spec(), programs(shell_command::run)),
        (exec_command::spec(), programs(exec_command::run)),
        (write_stdin::spec(), BuiltIn { check: Some(write_stdin::check), ..files(write_stdin::run) }),
        (file_read::spec(), files(file_read::run)),
        (file_write::spec(), files(file_write::run)),
        (ask_human::spec(), files(ask_human::run)),
        (update_plan::spec(), files(update_plan::run)),
        (request_user_input::spec(), files(request_user_input::run)),
        (view_image::spec(), files(view_image::run)),
        (list_dir::spec(), files(list_dir::run)),
        (grep_files::spec(), files(grep_files::run)),
        (apply_patch::spec(), files(apply_patch::run)),
        (read_file::spec(), files(read_file::run)),
    ];
    all.into_iter()
        .map(|(spec, tool)| {
            let check = tool.check;
            (spec, Arc::new(tool) as Arc<dyn Handler>, check)
        })
        .collect()
}

/// The specifications of the built-in tools, in the order in which they are listed.
pub fn specs() -> Vec<ToolSpec> {
    built_in().into_iter().map(|(spec, _, _)| spec).collect()
}
