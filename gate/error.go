package gate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Code says what kind of error an [Error] is. The server turns it into a
// status, the CLI into an exit code.
type Code string

// Every code of an error answer (DESIGN §5).
const (
	CodeInvalidJSON          Code = "invalid_json"
	CodeValidation           Code = "validation_failure"
	CodeInvalidObjectType    Code = "invalid_object_type" // a GlobalHook without its type (spec/azure.md 7)
	CodeUnauthenticated      Code = "unauthenticated"
	CodeForbidden            Code = "forbidden"
	CodeBadOrigin            Code = "bad_origin"
	CodeNotFound             Code = "not_found"
	CodeMethodNotAllowed     Code = "method_not_allowed" // a known route, another method
	CodeConflict             Code = "conflict"
	CodePreconditionFailed   Code = "precondition_failed"
	CodeBodyTooLarge         Code = "body_too_large"
	CodeUnsupportedMediaType Code = "unsupported_media_type"
	CodeIdempotencyMismatch  Code = "idempotency_mismatch"
	CodeRateLimited          Code = "rate_limited"
	CodeInternal             Code = "internal"
	CodeOverloaded           Code = "overloaded"
)

// Error is the one error type that is shown to a person or a program.
type Error struct {
	Code    Code
	Message string    // starts with the subject, lower-case, no trailing stop
	Details []Finding // where in the input, if there is more to say
	Err     error     // the cause, for logs; may be nil
}

func (e *Error) Error() string { return e.Message }

func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an [Error]. A %w verb keeps the cause reachable.
func Errorf(code Code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Message: err.Error(), Err: errors.Unwrap(err)}
}

// CodeOf is the code of the first [Error] in err's chain; CodeInternal if
// there is none.
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return CodeInternal
}

// Severity of a [Finding].
type Severity string

const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
)

// Finding is one remark on a document that a person wrote. Line and Column
// count from 1; 0 means unknown. Path is dotted with brackets, as
// "spec.hooks.Stop[0].timeout".
type Finding struct {
	Severity Severity `json:"severity"`
	Path     string   `json:"path"`
	Line     int      `json:"line"`
	Column   int      `json:"column"`
	Message  string   `json:"message"`
}

// String is "line:column: severity: path: text", without what is unknown.
func (f Finding) String() string {
	var b strings.Builder
	if f.Line > 0 {
		fmt.Fprintf(&b, "%d:%d: ", f.Line, f.Column)
	}
	fmt.Fprintf(&b, "%s: ", f.Severity)
	if f.Path != "" {
		b.WriteString(f.Path + ": ")
	}
	b.WriteString(f.Message)
	return b.String()
}

// HasErrors reports whether any finding is an error.
func HasErrors(findings []Finding) bool {
	return slices.ContainsFunc(findings, func(f Finding) bool { return f.Severity == SeverityError })
}
