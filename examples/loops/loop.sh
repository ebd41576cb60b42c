#!/bin/bash
# An agent's loop behind the gate, by curl and jq.
set -euo pipefail
gate=${STOPGATE_SERVER:-http://127.0.0.1:8790}
session=loop-$$-$RANDOM

# ask EVENT has the gate decide it; what cannot be asked ends the script, so that
# no answer leaves unseen.
ask() {
  curl -sS --fail-with-body --max-time 330 "$gate/v1/evaluate" -H 'Content-Type: application/json' \
    ${STOPGATE_API_KEY:+-H "Authorization: Bearer $STOPGATE_API_KEY"} -d "$1"
}

# complete stands in for a model: it reads the conversation and gives its answer.
complete() {
  if grep -q 'Task complete' <<<"$1"; then echo "It is 5. Task complete."; else echo "It is 5."; fi
}

messages='[{"role":"user","content":"What is 2 + 3?"}]'
for turn in {1..20}; do
  answer=$(complete "$messages")
  messages=$(jq -c --arg text "$answer" '. + [{role: "assistant", content: $text}]' <<<"$messages")
  event=$(jq -n --arg session "$session" --arg text "$answer" --argjson turn "$turn" --argjson transcript "$messages" \
    '{hook_event_name: "Stop", agent_name: "marker", session_id: $session, current_turn: $turn, max_turns: 20,
      final_output: $text, transcript: $transcript}')
  decision=$(ask "$event") || { echo "gate answered: $decision" >&2; exit 1; }
  if [ "$(jq -r .decision <<<"$decision")" = allow ]; then
    echo "$answer" # only now may anybody see it
    exit
  fi
  messages=$(jq -c --argjson decision "$decision" '. + $decision.messages' <<<"$messages")
done
echo "no answer within 20 turns" >&2
exit 1
