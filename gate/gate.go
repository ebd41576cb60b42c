// Package gate has the words and the laws of stopgate.
//
// An agent asks the gate before its final answer (Stop) and around its tool
// calls (PreToolUse, PostToolUse). [Gate.Decide] is the straight path of one
// such [Event]: it matches the hooks of the agent, reads the session's counts,
// has each hook evaluated, settles what could not be asked by the hook's own
// failMode, combines the verdicts and commits counts and record before the
// [Decision] leaves.
//
// "No" is a [Verdict], never an error. A hook that could not be asked has the
// outcome [NoVerdict] with a [Failure] that says why; only its [FailMode] turns
// that into allow or block, and the record keeps both.
//
// The package imports no other package of stopgate. Processes, models, files
// and databases stand behind the small interfaces [Evaluator], [Transcripts]
// and [Store]; everything else here is a function of values.
package gate
