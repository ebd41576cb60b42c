package gate

// FromHook is the header of a hook that a gate asks over HTTP. A gate that is asked
// with it refuses, and names the header in its answer: it would ask hooks for a hook,
// its own above all, and so on without end.
const FromHook = "X-Stopgate-Hook"
