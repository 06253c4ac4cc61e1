package commands

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/idplatform/idplatform/cli/internal/failure"
	"github.com/idplatform/idplatform/cli/internal/output"
	"github.com/idplatform/idplatform/cli/internal/session"
	idp "github.com/idplatform/idplatform/sdk/go"
)

var eventView = output.View{
	Columns: []output.Column{whole("time"), whole("type"), whole("subject"), output.MemberColumn("actor")},
	Wide:    columns("id", "requestid", "payloadorigin"), Name: "id",
}

// whole is a column that is not cut: rows that come later may have longer texts than the first one.
func whole(member string) output.Column {
	column := output.MemberColumn(member)
	column.Whole = true
	return column
}

// events makes the commands for events.
func events(a *App) *cobra.Command {
	return group("events", "Events: what changes, as it changes",
		watchCommand(a),
		a.operation(operation{
			use: "types", short: "List the types of events", operation: "list-event-types",
			view:    output.View{Columns: columns("type", "description"), Name: "type"},
			example: "  idp events types",
		}),
	)
}

// watching is one run of events watch.
type watching struct {
	types []string
	since string
	after string // a cursor
	exec  string
	audit bool
	count int                // how many there are to be; 0: no end
	query map[string]*string // filters of the audit log

	session *session.Session
	client  *idp.Client
	items   *output.Items
	from    time.Time // of --since
	cursor  string    // of the last event that was handed on
	taken   int       // events that were
}

func watchCommand(a *App) *cobra.Command {
	w := &watching{query: map[string]*string{}}
	command := &cobra.Command{
		Use: "watch", Short: "Show events, or audit entries, as they come", Args: cobra.NoArgs,
		Long: "Show events as they come, until Ctrl-C or --count. It goes on after a break where it was, and says\n" +
			"so if events in between are no longer kept. With --audit they are entries of the audit log.\n\n" +
			"Scope: events:read",
		Example: "  idp events watch --type 'user.*' --since 1h -o jsonl\n" +
			"  idp events watch --audit --entity user --record 1048577\n" +
			"  idp events watch --type user.created --exec 'jq .data.record.username'",
	}
	flags := command.Flags()
	flags.StringSliceVar(&w.types, "type", nil, "types, joined by commas: user.*, node.moved; absent: all")
	flags.StringVar(&w.since, "since", "", "begin earlier: 1h, 7d, or a time in RFC 3339; absent: now")
	flags.StringVar(&w.after, "after", "", "begin after this cursor, which an earlier run printed at its end")
	flags.StringVar(&w.exec, "exec", "", "run a command for each, which reads it from its standard input")
	flags.IntVar(&w.count, "count", 0, "end after so many; absent: at Ctrl-C")
	flags.BoolVar(&w.audit, "audit", false, "watch the audit log instead")
	for _, name := range []string{"actor", "entity", "record", "action", "outcome"} {
		w.query[name] = flags.String(name, "", "with --audit: only entries with this "+name)
	}
	command.RunE = a.run(func(ctx context.Context, s *session.Session, _ []string) error { return w.run(ctx, s) })
	return command
}

func (w *watching) run(ctx context.Context, s *session.Session) (err error) {
	w.session = s
	if w.from, err = sinceOf(w.since, time.Now()); err != nil {
		return err
	}
	if w.count < 0 {
		return failure.Usagef("--count must be 1 or more")
	}
	if w.since != "" && w.after != "" {
		return failure.Usagef("--since and --after exclude each other")
	}
	if s.Format == "json" {
		s.Format = "jsonl" // there is no end, so there is no whole document
	}
	printer, err := s.Printer()
	if err != nil {
		return err
	}
	if w.client, err = s.Client(); err != nil {
		return err
	}
	view, path := eventView, "/v1/events"
	if w.audit {
		view, path = auditView, "/v1/audit-logs"
	}
	w.items = printer.Items(view).AsTheyCome()
	query, err := w.begin(ctx)
	if errors.Is(err, errEnough) {
		return nil
	}
	if err != nil {
		return failure.WithScope(err, "events:read")
	}
	for {
		err := w.follow(ctx, path, query)
		if errors.Is(err, errEnough) {
			return nil
		}
		problem, refused := errors.AsType[*idp.Problem](err)
		if refused && problem.Code == idp.CodeInvalidState && problem.Next != "" {
			s.Notef("gap: events after %s are no longer kept; going on with those after %s",
				cmp.Or(w.cursor, w.since, w.after), problem.Next)
			w.cursor = problem.Next
			query.Del("after")
			continue
		}
		if w.cursor != "" {
			s.Notef("idp events watch --after %s goes on here", w.cursor)
		}
		return failure.WithScope(err, "events:read")
	}
}

// begin finds where to begin, and returns the query of the stream.
func (w *watching) begin(ctx context.Context) (url.Values, error) {
	query := url.Values{}
	w.cursor = w.after
	for name, value := range w.query {
		if *value != "" && !w.audit {
			return nil, failure.Usagef("--%s is for --audit", name)
		}
		if *value != "" {
			query.Set(name, *value)
		}
	}
	if w.audit {
		if len(w.types) > 0 {
			return nil, failure.Usagef("--type is not for --audit: use --entity and --action")
		}
		return query, w.earlierEntries(ctx, query)
	}
	if len(w.types) > 0 {
		query.Set("types", strings.Join(w.types, ","))
	}
	if !w.from.IsZero() {
		query.Set("after", w.from.UTC().Format(time.RFC3339Nano))
		return query, nil
	}
	if w.after != "" {
		return query, nil
	}
	newest, err := w.client.ListEvents(ctx, idp.ListEventsParams{After: "now", Limit: 1})
	if err != nil {
		return nil, err
	}
	w.cursor = newest.Next // so that a break before the first event loses none
	return query, nil
}

// earlierEntries notes the newest audit entry, after which the stream begins, and prints those since --since, oldest
// first.
func (w *watching) earlierEntries(ctx context.Context, query url.Values) error {
	if w.after != "" {
		return nil
	}
	newest, err := w.client.ListAuditLogs(ctx, idp.ListAuditLogsParams{
		PageSort: "time[desc]", PageSize: 1, Count: new(false),
	})
	if err != nil {
		return err
	}
	if len(newest.Items) > 0 {
		w.cursor = newest.Items[0].ID
	}
	if w.from.IsZero() {
		return nil
	}
	call := &session.Call{Operation: session.Operation("list-audit-logs"), Query: url.Values{
		"time_from": {w.from.UTC().Format(time.RFC3339)}, "page_sort": {"time[asc]"}, "page_size": {"200"},
	}}
	for name, values := range query {
		call.Query[name] = values
	}
	for item, err := range w.session.Each(ctx, call) {
		if err != nil {
			return err
		}
		text, err := json.Marshal(item)
		if err != nil {
			return err
		}
		if err := w.take(ctx, text, item.Text("id")); err != nil {
			return err
		}
	}
	return nil
}

// follow reads the stream until it ends for good.
func (w *watching) follow(ctx context.Context, path string, query url.Values) error {
	options := []idp.Option{idp.OnBreak(func(err error) {
		if err == nil {
			err = errors.New("the platform ended it")
		}
		w.session.Notef("the stream broke and is opened again: %v", err)
	})}
	if w.cursor != "" {
		options = append(options, idp.LastEventID(w.cursor))
	}
	stream := w.client.Events(ctx, idp.Request{Method: http.MethodGet, Path: path, Query: query}, options...)
	for event, err := range stream {
		if err != nil {
			return err
		}
		if err := w.take(ctx, event.Item, event.Cursor); err != nil {
			return err
		}
	}
	return nil
}

// take hands one event on.
func (w *watching) take(ctx context.Context, text []byte, cursor string) error {
	value, err := output.Parse(text)
	if err != nil {
		return fmt.Errorf("an event is not JSON: %w", err)
	}
	if w.exec != "" {
		err = w.command(ctx, text)
	} else {
		err = w.items.Add(value)
	}
	if err != nil {
		return err
	}
	w.cursor = cursor
	if w.taken++; w.taken == w.count {
		return errEnough
	}
	return nil
}

// errEnough ends watching after --count.
var errEnough = errors.New("enough")

// command runs the command of --exec. If it fails, watching ends, so that the event is not passed over.
func (w *watching) command(ctx context.Context, text []byte) error {
	shell := []string{"sh", "-c", w.exec}
	if runtime.GOOS == "windows" {
		shell = []string{"cmd", "/c", w.exec}
	}
	c := exec.CommandContext(ctx, shell[0], shell[1:]...)
	c.Stdin, c.Stdout, c.Stderr = bytes.NewReader(append(text, '\n')), w.session.Out, w.session.Err
	if err := c.Run(); err != nil {
		return fmt.Errorf("--exec: %w", err)
	}
	return nil
}

// sinceOf reads 1h, or a time.
func sinceOf(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	return timeOf("--since", text, now)
}

// timeOf reads how long ago something is, such as 1h or 7d, or when it is.
func timeOf(flag, text string, now time.Time) (time.Time, error) {
	if number, isDays := strings.CutSuffix(text, "d"); isDays {
		if days, err := strconv.ParseUint(number, 10, 16); err == nil && days > 0 {
			return now.AddDate(0, 0, -int(days)), nil
		}
	}
	if ago, err := time.ParseDuration(text); err == nil && ago > 0 {
		return now.Add(-ago), nil
	}
	for _, form := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(form, text); err == nil {
			return at, nil
		}
	}
	return time.Time{}, failure.Usagef("%s must be like 1h, 7d, 2026-01-31 or 2026-01-31T09:30:00Z", flag)
}
