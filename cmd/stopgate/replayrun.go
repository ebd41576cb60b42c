package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"stopgate/gate"
	"stopgate/redact"
)

// all replays what the filters pick, and prints the report.
func (r *replayer) all(p process) error {
	f, err := r.command.filter(time.Now())
	if err != nil {
		return err
	}
	report := r.newReport()
	var todo []found
	listed := atMost(r.source.list(p.ctx, f, r.command.Limit+1), r.command.Limit, &report.More)
	total := r.source.size(r.command.Limit)
	if total == 0 { // it is a list of summaries, which is short
		if todo, err = collect(listed); err != nil {
			return stopped(p.ctx, err)
		}
		listed, total = eachOf(todo), len(todo)
	}
	shown := newProgress(p.stderr, max(total, 1))
	err = r.replay(p.ctx, listed, func(row replayRow, other bool) {
		report.Found++
		if shown.step(); other {
			report.OtherAgents++
			return
		}
		report.Evaluations = append(report.Evaluations, row)
		report.add(row, r.drafts[0])
	})
	shown.end()
	if err != nil && report.Found == 0 {
		return stopped(p.ctx, err)
	}
	report.Partial, report.again = err != nil, r.source.repeated()
	report.Repeated = report.again.n
	inOrder(report.Evaluations)
	printed := report.print
	if r.command.JSON {
		printed = func(w io.Writer) error { return printJSON(w, report) }
	}
	return cmp.Or(printed(p.stdout), interrupted(p.ctx, report.Found, max(total, report.Found)), err, r.verdict(report))
}

// verdict is how the command ends. That nothing changes is only known where
// everything was asked.
func (r *replayer) verdict(report *replayReport) error {
	failed := report.failed()
	switch {
	case report.Found == 0:
		return exit{exitInput, errors.New("no evaluation is picked by these filters")}
	case report.Replayed == 0 && r.unfound.Load() != nil && report.Obstacles[string(gate.ModelUnavailable)] == failed:
		return exit{exitUnreachable, fmt.Errorf("nothing was replayed: %w", *r.unfound.Load())}
	case report.Replayed == 0:
		return exit{exitInput, errors.New("nothing was replayed")}
	case r.command.ExitCode && report.Changed > 0:
		return exit{code: exitFindings}
	case report.Obstacles[badLine] > 0:
		return exit{exitInput, fmt.Errorf("%q has %s without a recorded evaluation", r.command.From, plural(report.Obstacles[badLine], "line"))}
	case r.command.ExitCode && failed > 0:
		return exit{exitInput, fmt.Errorf("%d of %s could not be replayed: nobody knows whether they change", failed, plural(failed+report.Replayed, "evaluation"))}
	}
	return nil
}

// stopped is an error of a list, or that a person has stopped it.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return exit{exitInternal, errors.New("interrupted")}
	}
	return err
}

func collect(listed iter.Seq2[found, error]) (all []found, err error) {
	for item, err := range listed {
		if err != nil {
			return nil, err
		}
		all = append(all, item)
	}
	return all, nil
}

// atMost ends a list after so many, and says whether there are more.
func atMost(listed iter.Seq2[found, error], limit int, more *bool) iter.Seq2[found, error] {
	return func(yield func(found, error) bool) {
		n := 0
		for item, err := range listed {
			if *more = n == limit && err == nil; *more {
				return
			}
			if n++; !yield(item, err) {
				return
			}
		}
	}
}

func eachOf(all []found) iter.Seq2[found, error] {
	return func(yield func(found, error) bool) {
		for _, item := range all {
			if !yield(item, nil) {
				return
			}
		}
	}
}

// replay judges what is listed, some at once, and hands each row to use, one at a
// time. When ctx ends, what was cut short is left out. other: the draft says
// nothing of the evaluation's agent.
func (r *replayer) replay(ctx context.Context, listed iter.Seq2[found, error], use func(row replayRow, other bool)) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	jobs := make(chan found)
	var mu sync.Mutex
	var workers sync.WaitGroup
	for range r.command.Parallel {
		workers.Go(func() {
			for job := range jobs {
				row, other, err := r.row(ctx, job)
				if ctx.Err() != nil {
					return // it was cut short
				}
				if err != nil {
					stop(err)
					return
				}
				mu.Lock()
				use(row, other)
				mu.Unlock()
			}
		})
	}
	for job, err := range listed {
		if err != nil {
			stop(err)
		}
		select {
		case <-ctx.Done():
		case jobs <- job:
			continue
		}
		break
	}
	close(jobs)
	workers.Wait()
	return context.Cause(ctx)
}

// row replays one evaluation.
func (r *replayer) row(ctx context.Context, job found) (row replayRow, other bool, err error) {
	row = rowOf(job.summary)
	names := hookNames{now: r.drafts[0].hooks}
	if _, ok := r.drafts[0].about(row.Agent); !ok && row.Agent != "" {
		return row, true, nil
	}
	rec, err := job.read(ctx)
	var now, was judgement
	if err == nil {
		now, err = r.judge(ctx, r.drafts[0], rec)
	}
	if was.Decision = rec.Decision; err == nil && len(r.drafts) > 1 {
		names.was = r.drafts[1].hooks
		was, err = r.judge(ctx, r.drafts[1], rec)
	}
	if o, ok := errors.AsType[*obstacle](err); ok {
		row.Obstacle, err = o, nil
	} else if err == nil {
		row.compare(was.Decision, now.Decision, names)
		row.Redacted = len(now.Hooks) > 0 && redact.Marked(rec.Payload)
		row.Blind, row.Inactive = now.blind || was.blind, now.inactive
	}
	told := r.shows.Text // of an old record, or of what scripts say of its payload
	if !row.Changed && row.Obstacle == nil && !r.command.JSON {
		told = func(string) string { return "" } // it is not printed, and need not be kept
	}
	row.eachText(told)
	return row, false, err
}

const (
	// followEvery is how often the server is asked for what is new.
	followEvery = 2 * time.Second
	// followBack is how long ago an evaluation may have begun that is listed now: it
	// is when it ends.
	followBack = 5 * time.Minute
)

// follow replays what the server decides from now on, and prints each, until it is
// interrupted.
func (r *replayer) follow(p process) error {
	f, err := r.command.filter(time.Now())
	if err != nil {
		return err
	}
	report := r.newReport()
	news := newsOf{source: r.source, filter: f, said: func(err error) { fmt.Fprintf(visible{p.stderr}, "stopgate: %s; trying again\n", err) }}
	if err := news.begin(p.ctx); err != nil {
		return stopped(p.ctx, err)
	}
	fmt.Fprintln(p.stderr, "Following; Ctrl-C ends it and sums up.")
	for fresh := range news.each(p.ctx) {
		var rows []replayRow
		err = r.replay(p.ctx, eachOf(fresh), func(row replayRow, other bool) {
			if report.Found++; other {
				report.OtherAgents++
				return
			}
			report.add(row, r.drafts[0])
			rows = append(rows, row)
		})
		inOrder(rows)
		r.tell(p.stdout, rows)
		if err != nil && p.ctx.Err() == nil {
			return err
		}
	}
	if !r.command.JSON {
		var b strings.Builder
		report.printEnd(&b)
		if _, err := io.WriteString(p.stdout, b.String()); err != nil {
			return err
		}
	}
	if report.Found == 0 || !r.command.ExitCode { // nothing was decided meanwhile, or it was watched
		return nil
	}
	return r.verdict(report)
}

// inOrder sorts rows by when their evaluations began.
func inOrder(rows []replayRow) {
	slices.SortStableFunc(rows, func(a, b replayRow) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.EvaluationID, b.EvaluationID))
	})
}

// tell prints rows as they come. Whoever reads them and has gone ends us.
func (r *replayer) tell(to io.Writer, rows []replayRow) {
	for _, row := range rows {
		if r.command.JSON {
			_ = printJSONLine(to, row) // whoever reads it has gone, and ends us
			continue
		}
		var b strings.Builder
		row.print(&b)
		_, _ = io.WriteString(to, b.String())
	}
}

// newsOf lists evaluations that were not there before. They are listed by when
// they began, so that what ends late stands among what is known.
type newsOf struct {
	source source
	filter gate.RecordFilter
	said   func(error) // of a server that is away for a while
	known  map[string]time.Time
	looked time.Time // last
}

// begin takes what is there for known.
func (n *newsOf) begin(ctx context.Context) error {
	n.known, n.looked = map[string]time.Time{}, time.Now()
	_, err := n.next(ctx)
	return err
}

// next is what is new, oldest first.
func (n *newsOf) next(ctx context.Context) ([]found, error) {
	now := time.Now()
	n.filter.Since = n.looked.Add(-followBack) // judges of what came before may have taken long
	items, err := collect(n.source.list(ctx, n.filter, maxReplayed))
	if err != nil {
		return nil, err
	}
	n.looked = now
	for id, at := range n.known {
		if at.Before(n.filter.Since.Add(-followBack)) { // the server's clock may be another
			delete(n.known, id)
		}
	}
	var fresh []found
	for _, item := range slices.Backward(items) {
		if _, known := n.known[item.summary.EvaluationID]; !known {
			n.known[item.summary.EvaluationID] = time.Now()
			fresh = append(fresh, item)
		}
	}
	return fresh, nil
}

// each is what every look finds, until ctx ends.
func (n *newsOf) each(ctx context.Context) iter.Seq[[]found] {
	return func(yield func([]found) bool) {
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(followEvery):
			}
			fresh, err := n.next(ctx)
			if err != nil && ctx.Err() == nil {
				n.said(err)
			}
			if len(fresh) > 0 && !yield(fresh) {
				return
			}
		}
	}
}
