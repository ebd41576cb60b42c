package gate

// FromHook is the header of a hook that a gate asks over HTTP. A gate that is asked
// with it refuses, and names the header in its answer: it would ask hooks for a hook,
// its own above all, and so on without end.
const FromHook = "X-Stopgate-Hook"

// FromHookVariable is the same for a hook that a gate runs: it is set in the
// environment of every one, and whoever is started by a hook to ask a gate finds it
// there, and asks none. Its value means nothing. Nothing that a hook is given can take
// its place; a hook that starts a program without its environment takes it away.
const FromHookVariable = "STOPGATE_HOOK"
