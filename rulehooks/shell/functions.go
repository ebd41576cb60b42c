package shell

import "mvdan.cc/sh/v3/syntax"

// function keeps a function's body, if what it does depends on how it is called:
// f() { git push "$@"; }. What it does as it is written is read where it stands.
func (r *reader) function(source string, f *syntax.FuncDecl) {
	r.redefined = true
	body := source[f.Body.Pos().Offset():min(f.Body.End().Offset(), uint(len(source)))]
	if f.Name == nil || !r.Spend(perByte*len(body)) || !arguments.MatchString(body) {
		return
	}
	if r.functions == nil {
		r.functions = map[string][]string{}
	}
	r.functions[f.Name.Value] = append(r.functions[f.Name.Value], body)
}

// call reads what a function that was defined before does with the arguments of
// a call.
func (r *reader) call(words []Word, depth int) {
	if len(words) == 0 {
		return
	}
	for _, body := range r.functions[words[0].Text] {
		if text, ok := r.filled(body, words); ok && !r.over() {
			r.text(text, depth+1)
		}
	}
}
