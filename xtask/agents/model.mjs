// A stand-in for the models of coding agents, for this machine only: it asks for one shell command, and then ends the turn.
//
//     node model.mjs COMMAND RESULT-FILE
//
// It speaks Anthropic's Messages, OpenAI's Responses and Chat Completions, and Gemini's generateContent, prints its port, and writes
// what the agent reports about the command into the file. It keeps no state: the request says whether the command has run.

import { createServer } from "node:http";
import { writeFileSync } from "node:fs";

const [command, resultFile] = process.argv.slice(2);
const SHELLS = ["Bash", "bash", "exec_command", "shell", "run_shell_command"];
const DONE = "The scripted step is done.";
const ID = "step_1";

// The shell tool among those that a request offers, with a complete input.
function call(tools) {
  const tool = SHELLS.map((name) => tools.find((tool) => tool.name === name)).find(Boolean);
  if (!tool) return null;
  const properties = tool.schema?.properties ?? {};
  const input = { [properties.cmd ? "cmd" : "command"]: command };
  for (const name of tool.schema?.required ?? []) {
    const type = properties[name]?.type;
    input[name] ??= type === "boolean" ? false : type === "number" || type === "integer" ? 1 : "step";
  }
  return { name: tool.name, input };
}

// What to answer: the call, or the end once a result is there. Requests without tools are about titles and the like.
function decide(tools, results) {
  if (results.length > 0) writeFileSync(resultFile, results.map((result) => JSON.stringify(result)).join("\n"));
  return results.length > 0 ? null : call(tools);
}

function anthropic(body) {
  const tools = (body.tools ?? []).map((tool) => ({ name: tool.name, schema: tool.input_schema }));
  const parts = (body.messages ?? []).flatMap((message) => (Array.isArray(message.content) ? message.content : []));
  const made = decide(tools, parts.filter((part) => part.type === "tool_result").map((part) => part.content));
  const usage = { input_tokens: 1, output_tokens: 1 };
  const message = { id: "msg_1", type: "message", role: "assistant", model: body.model, content: [], stop_reason: null, stop_sequence: null, usage };
  const block = made ? { type: "tool_use", id: `toolu_${ID}`, name: made.name, input: made.input } : { type: "text", text: DONE };
  const stop = { stop_reason: made ? "tool_use" : "end_turn", stop_sequence: null };
  if (!body.stream) return json({ ...message, ...stop, content: [block] });
  const delta = made
    ? { type: "input_json_delta", partial_json: JSON.stringify(made.input) }
    : { type: "text_delta", text: DONE };
  return stream([
    { type: "message_start", message },
    { type: "content_block_start", index: 0, content_block: made ? { ...block, input: {} } : { type: "text", text: "" } },
    { type: "content_block_delta", index: 0, delta },
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: stop, usage },
    { type: "message_stop" },
  ]);
}

function responses(body) {
  const items = Array.isArray(body.input) ? body.input : [];
  const named = (tool) => (tool.type === "namespace" ? (tool.tools ?? []).flatMap(named) : [{ name: tool.name, schema: tool.parameters }]);
  const tools = [...(body.tools ?? []), ...items.flatMap((item) => item.tools ?? [])].flatMap(named);
  const made = decide(tools, items.filter((item) => `${item.type}`.endsWith("_output")).map((item) => item.output));
  const item = made
    ? { type: "function_call", id: "fc_1", status: "completed", call_id: `call_${ID}`, name: made.name, arguments: JSON.stringify(made.input) }
    : { type: "message", id: "msg_1", role: "assistant", status: "completed", content: [{ type: "output_text", text: DONE, annotations: [] }] };
  const usage = { input_tokens: 1, input_tokens_details: { cached_tokens: 0 }, output_tokens: 1, output_tokens_details: { reasoning_tokens: 0 }, total_tokens: 2 };
  const whole = { id: "resp_1", object: "response", created_at: 0, status: "completed", model: body.model, output: [item], usage };
  if (!body.stream) return json(whole);
  return stream([
    { type: "response.created", response: { ...whole, status: "in_progress", output: [] } },
    { type: "response.output_item.added", output_index: 0, item: { ...item, status: "in_progress" } },
    { type: "response.output_item.done", output_index: 0, item },
    { type: "response.completed", response: whole },
  ]);
}

function chat(body) {
  const tools = (body.tools ?? []).map((tool) => ({ name: tool.function?.name, schema: tool.function?.parameters }));
  const made = decide(tools, (body.messages ?? []).filter((message) => message.role === "tool").map((message) => message.content));
  const calls = made && [{ index: 0, id: `call_${ID}`, type: "function", function: { name: made.name, arguments: JSON.stringify(made.input) } }];
  const message = made ? { role: "assistant", content: null, tool_calls: calls } : { role: "assistant", content: DONE };
  const finish_reason = made ? "tool_calls" : "stop";
  const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
  const base = { id: "chat_1", created: 0, model: body.model };
  if (!body.stream) return json({ ...base, object: "chat.completion", choices: [{ index: 0, message, finish_reason }], usage });
  const chunk = (delta, finish_reason = null) => ({ ...base, object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason }] });
  return stream([chunk(message), chunk({}, finish_reason), { ...base, object: "chat.completion.chunk", choices: [], usage }], "[DONE]");
}

function gemini(body, streamed) {
  const declared = (body.tools ?? []).flatMap((tool) => tool.functionDeclarations ?? []);
  const tools = declared.map((tool) => ({ name: tool.name, schema: tool.parameters ?? tool.parametersJsonSchema }));
  const parts = (body.contents ?? []).flatMap((content) => content.parts ?? []);
  const made = decide(tools, parts.map((part) => part.functionResponse?.response).filter(Boolean));
  const text = JSON.stringify(body).includes("responseJsonSchema") ? "{}" : DONE;
  const part = made ? { functionCall: { id: ID, name: made.name, args: made.input } } : { text };
  const answer = {
    candidates: [{ content: { role: "model", parts: [part] }, finishReason: "STOP", index: 0 }],
    usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
  };
  return streamed ? stream([answer]) : json(answer);
}

const json = (value) => ({ type: "application/json", text: JSON.stringify(value) });
function stream(events, last) {
  const lines = events.map((event) => `${event.type ? `event: ${event.type}\n` : ""}data: ${JSON.stringify(event)}\n\n`);
  return { type: "text/event-stream", text: lines.join("") + (last ? `data: ${last}\n\n` : "") };
}

function answer(path, body) {
  if (path.endsWith("/count_tokens")) return json({ input_tokens: 1 });
  if (path.endsWith(":countTokens")) return json({ totalTokens: 1 });
  if (path.endsWith("/messages")) return anthropic(body);
  if (path.endsWith("/responses")) return responses(body);
  if (path.endsWith("/chat/completions")) return chat(body);
  if (path.endsWith(":generateContent")) return gemini(body, false);
  if (path.endsWith(":streamGenerateContent")) return gemini(body, true);
  if (path.endsWith("/models")) return json({ object: "list", data: [{ id: "stand-in", object: "model" }], models: [] });
  return json({});
}

const server = createServer((request, response) => {
  const chunks = [];
  request.on("data", (chunk) => chunks.push(chunk));
  request.on("end", () => {
    let body = {};
    try {
      body = JSON.parse(Buffer.concat(chunks).toString() || "{}");
    } catch {
      // Not JSON: nothing that a model answers.
    }
    const { type, text } = answer(request.url.split("?")[0], body);
    response.writeHead(200, { "content-type": type, "content-length": Buffer.byteLength(text) });
    response.end(text);
  });
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
