// OWN_FILE. `callgate uninstall opencode` removes it.
//
// Every call is handed to callgate before it runs. Whatever is not a clear yes stops it: a program that does not start,
// another exit code, an answer that is no JSON, silence where something was said, too much time.
import { spawn } from "node:child_process"

const [PROGRAM, ...ARGUMENTS] = ["COMMAND"]
const TIME_LIMIT = "TIME_LIMIT"
const LONGEST_ANSWER = 16 * 1024 * 1024

function tell(payload) {
  return new Promise((resolve) => {
    let stdout = "", stderr = "", child, timer
    const end = (answer) => { clearTimeout(timer); resolve(answer) }
    const stop = (why) => { try { child.kill("SIGKILL") } catch {} end({ deny: why }) }
    try {
      child = spawn(PROGRAM, ARGUMENTS, { stdio: ["pipe", "pipe", "pipe"], cwd: payload.cwd, shell: false })
    } catch (error) {
      return end({ deny: `callgate did not start: ${error.message}` })
    }
    timer = setTimeout(() => stop("callgate did not answer in time"), TIME_LIMIT)
    child.on("error", (error) => end({ deny: `callgate did not start: ${error.message}` }))
    child.stdout.setEncoding("utf8").on("data", (text) => {
      stdout += text
      if (stdout.length > LONGEST_ANSWER) stop("callgate answered too much")
    })
    child.stderr.setEncoding("utf8").on("data", (text) => { if (stderr.length < 65536) stderr += text })
    child.on("close", (code) => {
      const reason = stderr.trim()
      if (code !== 0) return end({ deny: reason || `callgate ended with ${code}` })
      let answer
      try { answer = JSON.parse(stdout) } catch { return end({ deny: "callgate answered with no JSON" }) }
      const told = answer?.hookSpecificOutput
      if (told?.permissionDecision !== "allow")
        return end({ deny: String(told?.permissionDecisionReason ?? answer?.reason ?? "callgate denied this") })
      return end({ input: told.updatedInput })
    })
    child.stdin.on("error", () => {})
    child.stdin.end(JSON.stringify(payload))
  })
}

export const Callgate = async ({ directory }) => {
  const event = (name, input, more) => ({
    hook_event_name: name, client: "opencode", session_id: input.sessionID, cwd: directory,
    tool_name: input.tool, tool_use_id: input.callID, ...more,
  })
  return {
    "tool.execute.before": async (input, output) => {
      const answer = await tell(event("PreToolUse", input, { tool_input: output.args, changes_input: true }))
      if (answer.deny !== undefined) throw new Error(answer.deny)
      if (answer.input === undefined) return
      // OpenCode runs the object that it passed in, so another one in its place would be ignored.
      for (const name of Object.keys(output.args)) delete output.args[name]
      Object.assign(output.args, answer.input)
    },
    "tool.execute.after": async (input, output) => {
      await tell(event("PostToolUse", input, { tool_input: input.args ?? {}, tool_response: output.output ?? "" }))
    },
  }
}
