// An agent's loop behind the gate, with nothing but Node's own (18 or later).
import { randomUUID } from "node:crypto";

const GATE = process.env.STOPGATE_SERVER ?? "http://127.0.0.1:8790";

// ask has the gate decide one event. What cannot be asked throws, so that no
// answer leaves unseen.
async function ask(event) {
  const headers = { "Content-Type": "application/json", "Idempotency-Key": randomUUID() };
  if (process.env.STOPGATE_API_KEY) headers.Authorization = `Bearer ${process.env.STOPGATE_API_KEY}`;
  const response = await fetch(`${GATE}/v1/evaluate`, {
    method: "POST", headers, body: JSON.stringify(event), signal: AbortSignal.timeout(330_000),
  });
  if (!response.ok) throw new Error(`gate answered ${response.status}: ${await response.text()}`);
  return response.json();
}

// run answers a prompt. complete(messages) is your model: it gives an assistant
// message with content, and with tool_calls as {id, name, arguments}.
async function run(agent, prompt, complete, tools, maxTurns = 20) {
  const base = { agent_name: agent, session_id: randomUUID(), max_turns: maxTurns };
  const messages = [{ role: "user", content: prompt }];
  await ask({ ...base, hook_event_name: "UserPromptSubmit", prompt });
  for (let turn = 1; turn <= maxTurns; turn++) {
    base.current_turn = turn;
    const reply = await complete(messages);
    messages.push(reply);
    const calls = reply.tool_calls ?? [];
    for (const call of calls) messages.push(...await use(base, call, tools));
    if (calls.length > 0) continue;
    const decision = await ask({ ...base, hook_event_name: "Stop", final_output: reply.content, transcript: messages });
    if (decision.decision === "allow") return reply.content; // only now may anybody see it
    messages.push(...decision.messages);
  }
  throw new Error(`no answer within ${maxTurns} turns`);
}

// use runs one tool call behind the gate and gives the messages that come of it.
async function use(base, call, tools) {
  const event = { ...base, tool_name: call.name, tool_input: call.arguments };
  const result = { role: "tool", tool_call_id: call.id };
  const before = await ask({ ...event, hook_event_name: "PreToolUse" });
  if (before.decision !== "allow") { // to "ask", a person would say yes or no here
    return [{ ...result, content: `Refused: ${before.reason}` }];
  }
  let content, succeeded = true;
  try {
    content = String(await tools[call.name](call.arguments));
  } catch (error) { // the model is to read what went wrong
    content = `Error: ${error.message}`;
    succeeded = false;
  }
  const after = await ask({ ...event, hook_event_name: "PostToolUse", tool_result: content, tool_succeeded: succeeded });
  if (after.decision !== "allow") content = after.reason;
  return [{ ...result, content }, ...after.messages];
}

// complete stands in for a model: it calls a tool, answers, and heeds the gate.
async function complete(messages) {
  if (messages.length === 1) {
    return { role: "assistant", content: "", tool_calls: [{ id: "1", name: "add", arguments: { a: 2, b: 3 } }] };
  }
  const last = messages.at(-1).content;
  return { role: "assistant", content: last.includes("Task complete") ? "It is 5. Task complete." : "It is 5." };
}

console.log(await run("marker", "What is 2 + 3?", complete, { add: ({ a, b }) => a + b }));
