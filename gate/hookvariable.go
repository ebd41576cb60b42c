package gate

import (
	"regexp"
	"sync"
)

// HookVariable reports whether a variable that a hooks file sets for its hooks may
// reach them: not stopgate's own (DESIGN §9), nor those by which whoever sets them
// decides what runs round a hook. The sandbox's own program and the shell that sets
// the limits are started with a hook's environment: a loader's variable would run
// foreign code outside the sandbox, and a shell's make it end as a hook that blocks.
func HookVariable(name string) bool {
	return len(name) <= 256 && variableName().MatchString(name) && !launchVariable().MatchString(name)
}

// Compiled when they are first needed: every start of a hook's client has this
// package in it.
var (
	variableName   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`) })
	launchVariable = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(?:STOPGATE_.*|LD_.*|DYLD_.*|GLIBC_.*|MALLOC_.*|GCONV_PATH|LOCPATH|NLSPATH|` +
			`BASH.*|ENV|SHELLOPTS|POSIXLY_CORRECT|PS[0-9]|PROMPT_COMMAND|IFS|CDPATH|OPTIND|OPTARG|OPTERR|HISTSIZE|LINENO|PPID|UID|EUID|` +
			`PATH|HOME|PWD|OLDPWD|TMPDIR|CLAUDE_PROJECT_DIR)$`)
	})
)
