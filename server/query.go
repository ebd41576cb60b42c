package server

import (
	"cmp"
	"net/url"
	"slices"

	"stopgate/gate"
	"stopgate/internal/nearest"
)

// param is one parameter that the query of a route may have.
type param struct {
	name   string
	values []string // of an enumeration; nil: any text
	many   bool     // it may be given several times
	// elsewhere ends a message about a value that is none of them and belongs to
	// another route.
	elsewhere map[string]string
}

// query is every parameter of a route; nil: it has none.
type query []param

// anyOf are parameters that may be any text.
func anyOf(names ...string) (q query) {
	for _, name := range names {
		q = append(q, param{name: name})
	}
	return q
}

// oneOf is a parameter that is one of the values, or empty as if it were absent.
func oneOf[S ~string](name string, values ...S) param {
	p := param{name: name}
	for _, v := range values {
		p.values = append(p.values, string(v))
	}
	return p
}

// check is strict: a misspelt parameter that was ignored would do what was not
// asked for.
func (q query) check(raw string) error {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return gate.Errorf(gate.CodeValidation, "query cannot be read: %w", err)
	}
	for name, given := range values {
		i := slices.IndexFunc(q, func(p param) bool { return p.name == name })
		switch {
		case i < 0 && q == nil:
			return gate.Errorf(gate.CodeValidation, "query parameter %.40q is unknown; there are none here", name)
		case i < 0:
			return gate.Errorf(gate.CodeValidation, "query parameter %.40q is unknown; there are %q", name, q.names())
		case len(given) > 1 && !q[i].many:
			return gate.Errorf(gate.CodeValidation, "query parameter %q is given %d times", name, len(given))
		case q[i].values != nil && given[0] != "" && !slices.Contains(q[i].values, given[0]):
			hint := cmp.Or(q[i].elsewhere[given[0]], nearest.DidYouMean(given[0], q[i].values))
			return gate.Errorf(gate.CodeValidation, "query parameter %s is %.40q, want one of %q%s", name, given[0], q[i].values, hint)
		}
	}
	return nil
}

func (q query) names() (names []string) {
	for _, p := range q {
		names = append(names, p.name)
	}
	return names
}
