package commandhooks

import "stopgate/gate"

// antigravity is the law of the Gemini API's agents (spec/antigravity.md 11): a
// deny counts only at exit 0, 2 is a failure as any other code, and what fails
// lets the call go on.
func (e ending) antigravity(event gate.EventName) gate.Verdict {
	switch {
	case e.code != 0:
		return noVerdict(gate.NonzeroExit, "the hook exited with %d, which denies nothing there: a deny is JSON at exit 0%s", e.code, e.lastWords())
	case e.stdout.cut:
		return noVerdict(gate.OutputTooLarge, "the hook wrote more than %d bytes to standard output", keepBytes)
	}
	v, err := gate.ReadAntigravityAnswer(event, e.stdout.kept)
	if err != nil {
		return noVerdict(gate.BadOutput, "standard output denies nothing, and was meant to be an answer: %v: %q", err, head(clean(e.stdout.kept), 80))
	}
	return v
}
