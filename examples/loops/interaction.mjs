// A managed agent of the Gemini API behind the gate, with nothing but Node's own (18 or later).
const GATE = process.env.STOPGATE_SERVER ?? "http://127.0.0.1:8790";
const GEMINI = process.env.GOOGLE_GEMINI_BASE_URL ?? "https://generativelanguage.googleapis.com";

// post throws what cannot be asked, so that no answer leaves unseen.
async function post(url, headers, body) {
  const response = await fetch(url, {
    method: "POST", headers: { "Content-Type": "application/json", ...headers }, body: JSON.stringify(body), signal: AbortSignal.timeout(900_000),
  });
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${await response.text()}`);
  return response.json();
}

function ask(event) {
  const key = process.env.STOPGATE_API_KEY;
  return post(`${GATE}/v1/evaluate`, key ? { Authorization: `Bearer ${key}` } : {}, event);
}

// outputText is what the agent ends with: what it says after its last tool call.
function outputText(interaction) {
  let text = "";
  for (const step of interaction.steps) {
    if (step.type === "model_output") {
      for (const part of step.content ?? []) if (part.type === "text") text += part.text;
    } else if (step.type !== "thought") {
      text = "";
    }
  }
  return text;
}

// run answers a prompt; a refused answer's reason is the agent's next input.
async function run(agent, geminiAgent, prompt, turns = 10) {
  const request = { agent: geminiAgent, input: prompt, environment: "remote" };
  const messages = [];
  for (let turn = 1; turn <= turns; turn++) {
    const interaction = await post(`${GEMINI}/v1beta/interactions`, { "x-goog-api-key": process.env.GEMINI_API_KEY }, request);
    if (interaction.status !== "completed") throw new Error(`interaction ${interaction.id} is ${interaction.status}`);
    // The session is the environment, as it is for hooks on the tools in there.
    const event = { agent_name: agent, session_id: interaction.environment_id };
    if (turn === 1) await ask({ ...event, hook_event_name: "UserPromptSubmit", prompt });
    const answer = outputText(interaction);
    messages.push({ role: "user", content: request.input }, { role: "assistant", content: answer });
    const decision = await ask({ ...event, hook_event_name: "Stop", final_output: answer, transcript: messages, current_turn: turn, max_turns: turns });
    if (decision.decision === "allow") return answer; // only now may anybody see it
    Object.assign(request, { input: decision.reason, previous_interaction_id: interaction.id, environment: interaction.environment_id });
  }
  throw new Error(`no answer within ${turns} turns`);
}

console.log(await run("marker", ...process.argv.slice(2)));
