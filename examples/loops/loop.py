"""An agent's loop behind the gate, with nothing but the standard library."""
import json
import os
import urllib.error
import urllib.request
import uuid

GATE = os.environ.get("STOPGATE_SERVER", "http://127.0.0.1:8790")


def ask(event):
    """Have the gate decide one event. What cannot be asked raises, so that no
    answer leaves unseen."""
    headers = {"Content-Type": "application/json", "Idempotency-Key": str(uuid.uuid4())}
    if key := os.environ.get("STOPGATE_API_KEY"):
        headers["Authorization"] = "Bearer " + key
    request = urllib.request.Request(GATE + "/v1/evaluate", json.dumps(event).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=330) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        raise RuntimeError("gate answered %d: %s" % (error.code, error.read().decode())) from None


def run(agent, prompt, complete, tools, max_turns=20):
    """Answer a prompt. complete(messages) is your model: it gives an assistant
    message with content, and with tool_calls as {id, name, arguments}."""
    base = {"agent_name": agent, "session_id": str(uuid.uuid4()), "max_turns": max_turns}
    messages = [{"role": "user", "content": prompt}]
    ask(base | {"hook_event_name": "UserPromptSubmit", "prompt": prompt})
    for turn in range(1, max_turns + 1):
        base["current_turn"] = turn
        reply = complete(messages)
        messages.append(reply)
        for call in reply.get("tool_calls", []):
            messages += use(base, call, tools)
        if reply.get("tool_calls"):
            continue
        decision = ask(base | {"hook_event_name": "Stop", "final_output": reply["content"], "transcript": messages})
        if decision["decision"] == "allow":
            return reply["content"]  # only now may anybody see it
        messages += decision["messages"]
    raise RuntimeError("no answer within %d turns" % max_turns)


def use(base, call, tools):
    """Run one tool call behind the gate; give the messages that come of it."""
    event = base | {"tool_name": call["name"], "tool_input": call["arguments"]}
    result = {"role": "tool", "tool_call_id": call["id"]}
    before = ask(event | {"hook_event_name": "PreToolUse"})
    if before["decision"] != "allow":  # to "ask", a person would say yes or no here
        return [result | {"content": "Refused: " + before["reason"]}]
    try:
        content, succeeded = tools[call["name"]](**call["arguments"]), True
    except Exception as error:  # the model is to read what went wrong
        content, succeeded = "Error: %s" % error, False
    after = ask(event | {"hook_event_name": "PostToolUse", "tool_result": content, "tool_succeeded": succeeded})
    if after["decision"] != "allow":
        content = after["reason"]
    return [result | {"content": content}] + after["messages"]


if __name__ == "__main__":

    def complete(messages):
        """Stands in for a model: it calls a tool, answers, and heeds the gate."""
        if len(messages) == 1:
            return {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "name": "add", "arguments": {"a": 2, "b": 3}}]}
        if "Task complete" in messages[-1]["content"]:
            return {"role": "assistant", "content": "It is 5. Task complete."}
        return {"role": "assistant", "content": "It is 5."}

    print(run("marker", "What is 2 + 3?", complete, {"add": lambda a, b: str(a + b)}))
