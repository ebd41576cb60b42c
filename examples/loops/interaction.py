"""A managed agent of the Gemini API behind the gate, with nothing but the standard library."""
import json
import os
import sys
import urllib.error
import urllib.request

GATE = os.environ.get("STOPGATE_SERVER", "http://127.0.0.1:8790")
GEMINI = os.environ.get("GOOGLE_GEMINI_BASE_URL", "https://generativelanguage.googleapis.com")


def post(url, headers, body):
    """What cannot be asked raises, so that no answer leaves unseen."""
    headers["Content-Type"] = "application/json"
    try:
        with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers), timeout=900) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        raise RuntimeError("%s answered %d: %s" % (url, error.code, error.read().decode())) from None


def ask(event):
    key = os.environ.get("STOPGATE_API_KEY")
    return post(GATE + "/v1/evaluate", {"Authorization": "Bearer " + key} if key else {}, event)


def output_text(interaction):
    """The text that the agent ends with: what it says after its last tool call."""
    text = ""
    for step in interaction["steps"]:
        if step["type"] == "model_output":
            text += "".join(part["text"] for part in step.get("content", []) if part["type"] == "text")
        elif step["type"] != "thought":
            text = ""
    return text


def run(agent, gemini_agent, prompt, turns=10):
    """Answer a prompt; a refused answer's reason is the agent's next input."""
    request = {"agent": gemini_agent, "input": prompt, "environment": "remote"}
    messages = []
    for turn in range(1, turns + 1):
        interaction = post(GEMINI + "/v1beta/interactions", {"x-goog-api-key": os.environ["GEMINI_API_KEY"]}, request)
        if interaction["status"] != "completed":
            raise RuntimeError("interaction %s is %s" % (interaction["id"], interaction["status"]))
        # The session is the environment, as it is for hooks on the tools in there.
        event = {"agent_name": agent, "session_id": interaction["environment_id"]}
        if turn == 1:
            ask(event | {"hook_event_name": "UserPromptSubmit", "prompt": prompt})
        answer = output_text(interaction)
        messages += [{"role": "user", "content": request["input"]}, {"role": "assistant", "content": answer}]
        decision = ask(event | {"hook_event_name": "Stop", "final_output": answer, "transcript": messages, "current_turn": turn, "max_turns": turns})
        if decision["decision"] == "allow":
            return answer  # only now may anybody see it
        request |= {"input": decision["reason"], "previous_interaction_id": interaction["id"], "environment": interaction["environment_id"]}
    raise RuntimeError("no answer within %d turns" % turns)


if __name__ == "__main__":
    print(run("marker", *sys.argv[1:]))
