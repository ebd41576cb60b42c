"""Denies reading and writing below /private/, by whatever name it is called.

A hook that fails lets the call go on, so whatever cannot be judged is denied
here in so many words.
"""
import json
import os
import re
import sys

REASON = "What lies below /private/ is confidential and not for agents. Use the approved tables below /public/ instead."


def paths(args):
    """The values that name a file, whatever the tool calls them."""
    for key, value in args.items():
        if re.search(r"path|file|dir", key, re.IGNORECASE):
            yield str(value).removeprefix("file://")


def private(path):
    """Whether a path leads there, with its links and dots followed."""
    return os.path.realpath(path).lower().split("/")[1] == "private"


def judge(payload):
    call = payload["tool_call"]
    if call["name"] == "code_execution":  # it can name a file in more ways than are looked for here
        touched = re.search(r"/private\b", json.dumps(call["args"]), re.IGNORECASE)
    else:
        touched = any(private(path) for path in paths(call["args"]))
    return {"decision": "deny", "reason": REASON} if touched else {"decision": "allow"}


try:
    answer = judge(json.load(sys.stdin))
except Exception as error:
    answer = {"decision": "deny", "reason": "The privacy gate could not read this call: %s" % error}
print(json.dumps(answer))
