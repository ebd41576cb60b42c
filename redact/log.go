package redact

import (
	"context"
	"fmt"
	"log/slog"
)

// Handler writes the log to another handler, redacted: values of every kind. Keys,
// names of groups and messages are the program's own constants.
func (r *Redactor) Handler(to slog.Handler) slog.Handler { return handler{to, r} }

type handler struct {
	slog.Handler
	redactor *Redactor
}

func (h handler) Handle(ctx context.Context, rec slog.Record) error {
	clean := slog.NewRecord(rec.Time, rec.Level, rec.Message, rec.PC)
	rec.Attrs(func(a slog.Attr) bool {
		clean.AddAttrs(h.attr(a))
		return true
	})
	return h.Handler.Handle(ctx, clean)
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	clean := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		clean[i] = h.attr(a)
	}
	return handler{h.Handler.WithAttrs(clean), h.redactor}
}

func (h handler) WithGroup(name string) slog.Handler {
	return handler{h.Handler.WithGroup(name), h.redactor}
}

func (h handler) attr(a slog.Attr) slog.Attr {
	switch v := a.Value.Resolve(); v.Kind() {
	case slog.KindString:
		return slog.String(a.Key, h.redactor.Text(v.String()))
	case slog.KindGroup:
		var group []any
		for _, member := range v.Group() {
			group = append(group, h.attr(member))
		}
		return slog.Group(a.Key, group...)
	case slog.KindAny: // an error, or what else prints as text
		text := fmt.Sprint(v.Any())
		if clean := h.redactor.Text(text); clean != text {
			return slog.String(a.Key, clean)
		}
		return slog.Attr{Key: a.Key, Value: v}
	default: // numbers, times and flags
		return slog.Attr{Key: a.Key, Value: v}
	}
}
