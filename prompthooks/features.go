package prompthooks

// Features are things that a request may ask of a model and that not every
// server can do; several are or-ed.
type Features uint8

const (
	// Tools is [Request].Tools.
	Tools Features = 1 << iota
	// Forcing is [Request].Force.
	Forcing
	// Schemas is [Request].Schema.
	Schemas
	// Thinking is to think before a tool is called. Some models do either.
	Thinking
)

// Limited is a [Model] whose owner has said what it lacks. What it does not
// say so is found out by an [Unsupported] error.
type Limited interface {
	Model
	Lacks() Features
}

// Uses is what a request asks of a model.
func (r Request) Uses() Features {
	var f Features
	if len(r.Tools) > 0 {
		f |= Tools
		if !r.Unthinking {
			f |= Thinking
		}
	}
	if r.Force != "" {
		f |= Forcing
	}
	if r.Schema != nil {
		f |= Schemas
	}
	return f
}

// without is the request with less asked of the model. It does not fit a model
// without tools: such a one is asked differently from the start.
func (r Request) without(lacks Features) Request {
	if lacks&Forcing != 0 {
		r.Force = ""
	}
	if lacks&Schemas != 0 {
		r.Schema = nil
	}
	r.Unthinking = r.Unthinking || lacks&Thinking != 0 && len(r.Tools) > 0
	return r
}
