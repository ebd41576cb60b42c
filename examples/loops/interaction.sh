#!/bin/bash
# A managed agent of the Gemini API behind the gate, by curl and jq.
set -euo pipefail
gate=${STOPGATE_SERVER:-http://127.0.0.1:8790}
gemini=${GOOGLE_GEMINI_BASE_URL:-https://generativelanguage.googleapis.com}
turns=10

# post URL HEADER BODY; what cannot be asked ends the script, so that no answer
# leaves unseen. The header holds a key, which is not for the list of processes.
post() {
  curl -sS --fail-with-body --max-time 900 "$1" -H 'Content-Type: application/json' -H @- -d "$3" <<<"$2" ||
    { echo "$1 did not answer" >&2; exit 1; }
}
ask() { post "$gate/v1/evaluate" "${STOPGATE_API_KEY:+Authorization: Bearer $STOPGATE_API_KEY}" "$1"; }

# What the agent ends with: what it says after its last tool call.
text='reduce .steps[] as $s (""; if $s.type == "model_output" then . + ([$s.content[]? | select(.type == "text") | .text] | add // "")
  elif $s.type == "thought" then . else "" end)'

request=$(jq -n --arg agent "$1" --arg prompt "$2" '{agent: $agent, input: $prompt, environment: "remote"}')
messages='[]'
for ((turn = 1; turn <= turns; turn++)); do
  interaction=$(post "$gemini/v1beta/interactions" "x-goog-api-key: $GEMINI_API_KEY" "$request")
  [ "$(jq -r .status <<<"$interaction")" = completed ] || { jq -c '{id, status}' <<<"$interaction" >&2; exit 1; }
  # The session is the environment, as it is for hooks on the tools in there.
  event=$(jq '{agent_name: "marker", session_id: .environment_id}' <<<"$interaction")
  if [ $turn = 1 ]; then ask "$(jq --arg prompt "$2" '. + {hook_event_name: "UserPromptSubmit", prompt: $prompt}' <<<"$event")" >/dev/null; fi
  answer=$(jq -r "$text" <<<"$interaction")
  messages=$(jq -c --argjson request "$request" --arg text "$answer" \
    '. + [{role: "user", content: $request.input}, {role: "assistant", content: $text}]' <<<"$messages")
  decision=$(ask "$(jq --arg text "$answer" --argjson transcript "$messages" --argjson turn $turn --argjson turns $turns \
    '. + {hook_event_name: "Stop", final_output: $text, transcript: $transcript, current_turn: $turn, max_turns: $turns}' <<<"$event")")
  if [ "$(jq -r .decision <<<"$decision")" = allow ]; then
    echo "$answer" # only now may anybody see it
    exit
  fi
  request=$(jq --argjson decision "$decision" --argjson interaction "$interaction" \
    '. + {input: $decision.reason, previous_interaction_id: $interaction.id, environment: $interaction.environment_id}' <<<"$request")
done
echo "no answer within $turns turns" >&2
exit 1
