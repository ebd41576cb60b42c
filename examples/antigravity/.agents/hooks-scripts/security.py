"""Denies code that would destroy what cannot be brought back.

A hook that fails, or takes too long, lets the call go on: what cannot be judged
is denied in so many words, and no pattern looks further than REACH.
"""
import json
import re
import sys

LONGEST = 50_000  # characters of code that are judged
REACH = 300  # characters from a program's name to what makes it dangerous
NEAR = r"[^|;\n]{0,%d}" % REACH

DANGERS = {
    "makes a new file system": r"\bmkfs(?:\.\w{1,20})?\b",
    "writes over a disk": r"\bdd\b" + NEAR + r"\bof=/dev/(?!null\b)|>\s{0,9}/dev/(?:sd|nvme|vd|mmcblk)",
    "opens everything to everybody": r"\bchmod\b" + NEAR + r"\b0?777[\s\"',]{1,9}/",
    "runs what it fetches": r"\b(?:curl|wget)\b" + NEAR + r"\|\s{0,9}(?:sudo\s{1,9})?(?:ba|z|da)?sh\b",
    "starts itself without end": r":\(\)\s{0,9}\{[^}]{0,99}:\s{0,9}\|\s{0,9}:",
    "rewrites what others have": r"\bgit\s[^|;\n]{0,40}\bpush\b" + NEAR + r"(?:--force(?!-with-lease)|\s-f\b)",
    "deletes a whole tree": r"\brmtree\(\s{0,9}[rbf]?[\"'](?:/|~|\.\.)",
}


def deletes_tree(text):
    """Whether an rm, in a shell line or in a list of arguments, is recursive and
    about more than named files."""
    for command in re.findall(r"\brm\b[^;&|\n]{0,%d}" % REACH, text):
        words = re.split(r"[\s\"',\[\]()]+", command)
        recursive = any(w == "--recursive" or re.match(r"-[a-z]*r", w, re.IGNORECASE) for w in words)
        if recursive and any(re.match(r"/|~|\$HOME|\*|\.\.", w) for w in words):
            return True
    return False


def texts(value):
    """Every text in the arguments, whatever the tool calls them."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from texts(item)


def danger(text):
    """What the code would do; None if nothing is found."""
    if len(text) > LONGEST:
        return "is too long to be judged"
    if deletes_tree(text):
        return "deletes a whole tree"
    return next((what for what, pattern in DANGERS.items() if re.search(pattern, text)), None)


def judge(payload):
    for text in texts(payload["tool_call"]["args"]):
        if what := danger(text):
            return {"decision": "deny", "reason": "This code was not run, since it %s. Name the files it is about, one by one, or ask a person." % what}
    return {"decision": "allow"}


try:
    answer = judge(json.load(sys.stdin))
except Exception as error:
    answer = {"decision": "deny", "reason": "The security gate could not read this call: %s" % error}
print(json.dumps(answer))
