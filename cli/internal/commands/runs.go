package commands

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/idplatform/idplatform/cli/internal/failure"
	"github.com/idplatform/idplatform/cli/internal/output"
	"github.com/idplatform/idplatform/cli/internal/session"
)

var runView = output.View{
	Columns: []output.Column{
		output.MemberColumn("number"), output.MemberColumn("id"), output.MemberColumn("name"),
		output.MemberColumn("state"), output.MemberColumn("progress"), output.MemberColumn("attempt"),
		timeColumn("STARTED", "time_started"), output.MemberColumn("error"),
	},
	Wide: columns("parent_id", "time_scheduled", "time_finished", "result", "payload"),
	Name: "id",
}

var logView = output.View{
	Columns: []output.Column{timeColumn("TIME", "time"), output.MemberColumn("level"), output.MemberColumn("message")},
	Wide:    columns("sub_job_id", "id"),
	Name:    "message",
}

// hasEnded reports whether a run is finished, however it was.
func hasEnded(state string) bool {
	return slices.Contains([]string{"succeeded", "failed", "cancelled", "timed_out"}, state)
}

func unfinished(run output.Object) bool { return !hasEnded(run.Text("state")) }

func anyState(output.Object) bool { return true }

// findRun finds a run of a job by its number or its id; without, the last one for anyState, or the only unfinished one.
func findRun(
	ctx context.Context, s *session.Session, args []string, is func(output.Object) bool,
) (job string, run output.Object, err error) {
	if job, err = jobKind.id(ctx, s, args[0]); err != nil {
		return "", nil, err
	}
	runs, err := readAll(ctx, s, "list-sub-jobs", nil, job)
	if err != nil {
		return "", nil, err
	}
	if len(args) > 1 {
		at := slices.IndexFunc(runs, func(o output.Object) bool {
			return o.Text("id") == args[1] || o.Text("number") == args[1] && o.Text("parent_id") == ""
		})
		if at < 0 {
			return "", nil, failure.NotFoundf("%[1]s has no run %[2]s: idp jobs runs %[1]s", args[0], args[1])
		}
		return job, runs[at], nil
	}
	runs = slices.DeleteFunc(runs, func(o output.Object) bool { return o.Text("parent_id") != "" || !is(o) })
	var fits []found
	for _, o := range runs {
		fits = append(fits, found{o.Text("number"), o.Text("state") + " since " + o.Text("time_started")})
	}
	switch wantsOne := !is(output.Object{{Name: "state", Value: "succeeded"}}); {
	case len(runs) == 0 && wantsOne:
		return "", nil, failure.NotFoundf("no run of %s is unfinished", args[0])
	case len(runs) == 0:
		return "", nil, failure.NotFoundf("%s has no runs", args[0])
	case len(runs) > 1 && wantsOne:
		return "", nil, several("unfinished run of", args[0], "name one by its number", fits)
	}
	newer := func(a, b output.Object) int { return compareIDs(a.Text("id"), b.Text("id")) }
	return job, slices.MaxFunc(runs, newer), nil
}

// compareIDs compares ids, which grow.
func compareIDs(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

const (
	firstLook = 50 * time.Millisecond // at a run that was just begun; then ever more seldom
	lastLook  = 2 * time.Second
)

// follow prints the log of a run as it comes, and says how it ended. A run that does not succeed is a no.
func follow(ctx context.Context, s *session.Session, job string, run output.Object) error {
	printer, err := s.Printer()
	if err != nil {
		return err
	}
	client, err := s.Client()
	if err != nil {
		return err
	}
	items, id := printer.Items(logView).AsTheyCome(), run.Text("id")
	o := session.Operation("get-sub-job")
	path := strings.NewReplacer("{id}", job, "{sid}", id).Replace(o.Path)
	seen, progress := 0, ""
	for pause := firstLook; ; pause = min(2*pause, lastLook) {
		value, err := get(ctx, client, path, nil, o.Scope) // before the log, so that no line of an ended run is missed
		if err != nil {
			return goesOn(s, job, id, err)
		}
		run, _ = value.(output.Object)
		lines, err := readAll(ctx, s, "list-sub-job-logs", url.Values{}, job, id)
		if err != nil {
			return goesOn(s, job, id, err)
		}
		for _, line := range lines[min(seen, len(lines)):] {
			if err := items.Add(line); err != nil {
				return err
			}
		}
		seen = len(lines)
		state := run.Text("state")
		if now := state + " " + run.Text("progress") + "%"; now != progress && !hasEnded(state) {
			progress = now
			s.Notef("%s", now)
		}
		if hasEnded(state) {
			return atEnd(s, run, items)
		}
		select {
		case <-ctx.Done():
			return goesOn(s, job, id, ctx.Err())
		case <-time.After(pause):
		}
	}
}

// goesOn is the error of a run that cannot be followed any more. If this command has begun it, something was changed.
func goesOn(s *session.Session, job, id string, err error) error {
	s.Notef("the run goes on; idp jobs logs %s %s --follow shows the rest", job, id)
	if !s.Changes() || errors.Is(err, context.Canceled) {
		return err
	}
	return &failure.Error{Code: failure.OutcomeUnknown, Err: err}
}

func atEnd(s *session.Session, run output.Object, items *output.Items) error {
	if err := items.Close(); err != nil {
		return err
	}
	state := run.Text("state")
	s.Notef("%s", strings.TrimSuffix(state+": "+output.Printable(run.Text("error")), ": "))
	if state != "succeeded" {
		return failure.ErrNo
	}
	return nil
}
