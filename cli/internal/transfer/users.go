package transfer

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/idplatform/idplatform/cli/internal/failure"
	"github.com/idplatform/idplatform/cli/internal/output"
	"github.com/idplatform/idplatform/cli/internal/session"
	idp "github.com/idplatform/idplatform/sdk/go"
)

func users() *Kind {
	return &Kind{
		Noun: "users", Things: "users", Short: "People", Conflicts: []string{fail, skip, update},
		Filters: []Filter{
			{"keyword", "only users who are found by it"},
			{"search-type", "generic: keyword is searched for in all texts"},
			{"status", "only users with this status: 1, 0 or resigned"}, {"locked", "true: only who is locked now"},
			{"time-modified-from", "only users changed then or later"},
			{"time-modified-to", "only users changed before then"},
		},
		Notes:    "password and password_hash (argon2, bcrypt, PBKDF2 or scrypt) need the scope users:secrets.",
		Conflict: "update changes the user with the same username.",
		ImportExample: "  idp users import people.csv --map Mail=email --on-conflict update --dry-run\n" +
			"  idp users import people.jsonl",
		ExportExample: "  idp users export people.csv\n  idp users export --status 1 -o jsonl",
		ImportScopes:  "users:write",
		ExportScopes:  "users:read",
		columns: []column{
			{name: "id", readOnly: true}, {name: "username"}, {name: "display_name"}, {name: "email"}, {name: "mobile"},
			{name: "employee_number"}, {name: "gender"}, {name: "locale"}, {name: "zoneinfo"}, {name: "status"},
			{name: "email_verified", form: boolean}, {name: "mobile_verified", form: boolean},
			{name: "must_change_password", form: boolean},
			{name: "sys_ext_props", form: extra}, {name: "free_ext_props", form: extra},
			{name: "password", writeOnly: true}, {name: "password_hash", writeOnly: true},
			{name: "tenant_id", readOnly: true}, {name: "avatar_url", readOnly: true}, {name: "locked", readOnly: true},
			{name: "lock_reason", readOnly: true}, {name: "locked_until", readOnly: true},
			{name: "real_name_status", readOnly: true}, {name: "real_name", readOnly: true},
			{name: "id_number_masked", readOnly: true}, {name: "password_set", readOnly: true},
			{name: "time_password_changed", readOnly: true}, {name: "time_last_login", readOnly: true},
			{name: "time_resigned", readOnly: true}, {name: "version", readOnly: true},
			{name: "time_created", readOnly: true}, {name: "time_modified", readOnly: true},
		},
		send: sendUsers, read: readUsers,
	}
}

// upload makes JSON lines of a file while they are sent. Each try has one of its own, because the last one may still be
// read from.
type upload struct {
	records reader
	left    []byte
	done    *atomic.Int64
}

func (u *upload) Read(p []byte) (int, error) {
	for len(u.left) == 0 {
		r, err := u.records.next()
		if err != nil {
			return 0, err
		}
		u.done.Store(r.number)
		if r.fault == "" {
			u.left = append(encoded(r.members), '\n')
		}
	}
	n := copy(p, u.left)
	u.left = u.left[n:]
	return n, nil
}

// sendUsers sends all users in one stream. The platform stores them by the thousands, and keeps the results for a day
// with the key: the same stream finds out what became of one that was interrupted, and goes on after it.
func sendUsers(ctx context.Context, i *importer) error {
	if err := i.progress.save(); err != nil {
		return err
	}
	furthest := int64(0)
	return i.patiently(ctx, func() error {
		i.meter.done.Store(0)
		response, err := i.Send(ctx, &session.Call{
			Operation: session.Operation("import-users"), Query: url.Values{"on_conflict": {i.options.OnConflict}},
			Header: http.Header{"Idempotency-Key": {i.progress.Key}}, Type: "application/x-ndjson",
			Upload: &upload{records: i.source.from(i.source.first(), i.line), done: &i.meter.done},
		})
		if err != nil {
			return err
		}
		defer response.Body.Close()
		return i.userResults(response.Body)
	}, func() bool {
		came := i.meter.done.Load() > furthest
		furthest = max(furthest, i.meter.done.Load())
		return came
	})
}

// userResults reads the answer beside the file: a line for each user who was sent, in order. The file of failures
// begins anew, because the answer to a request that is repeated does.
func (i *importer) userResults(body io.Reader) error {
	*i.report = Report{}
	if err := i.failures.reopen(); err != nil {
		return err
	}
	results := bufio.NewReaderSize(body, 64<<10)
	records := i.source.from(i.source.first(), i.line)
	sent := int64(0)
	for {
		r, err := records.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		i.report.Lines++
		if r.fault == "" {
			sent++
			err = i.userResult(results, r, sent)
		} else {
			err = i.failed(r, r.fault)
		}
		if err != nil {
			return err
		}
	}
	if rest, err := results.ReadByte(); err == nil {
		return fmt.Errorf("the answer is not as documented: after the last result comes %q", rest)
	}
	return i.failures.sync()
}

func (i *importer) userResult(results *bufio.Reader, r *record, sent int64) error {
	line, err := results.ReadBytes('\n')
	if err != nil {
		return &idp.LostError{
			Method: http.MethodPost, Path: "/v1/users/import", MayBeDone: true, Key: i.progress.Key, Err: err,
		}
	}
	var result struct {
		Line   int64       `json:"line"`
		Status string      `json:"status"`
		Errors []idp.Fault `json:"errors"`
	}
	if err := json.Unmarshal(line, &result); err != nil || result.Line != sent {
		return fmt.Errorf("the answer is not as documented: the result of user %d is not there", sent)
	}
	switch result.Status {
	case "created":
		i.report.Created++
	case "updated":
		i.report.Updated++
	case "skipped":
		i.report.Skipped++
	default:
		return i.failed(r, faultsOf(result.Errors))
	}
	return nil
}

// faultsOf says why a record failed.
func faultsOf(faults []idp.Fault) string {
	var parts []string
	for _, fault := range faults {
		_, member, _ := strings.Cut(fault.Location, ".") // of the body, or of the path
		parts = append(parts, strings.TrimPrefix(member+": "+fault.Message, ": "))
	}
	if len(parts) == 0 {
		return "was refused"
	}
	return strings.Join(parts, "; ")
}

// readUsers exports users.
func readUsers(ctx context.Context, s *session.Session, filters map[string]string, out *writer) error {
	query := url.Values{"format": {"ndjson"}}
	for name, value := range filters {
		query.Set(strings.ReplaceAll(name, "-", "_"), value)
	}
	response, err := s.Send(ctx, &session.Call{Operation: session.Operation("export-users"), Query: query})
	if err != nil {
		return err
	}
	defer response.Body.Close()
	lines := bufio.NewReaderSize(response.Body, 64<<10)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(line) == 0 {
			return nil
		}
		if err != nil {
			return &failure.Error{Code: failure.Unavailable, Err: fmt.Errorf("the users broke off: %w", err)}
		}
		value, err := output.Parse(line)
		if err != nil {
			return fmt.Errorf("the answer is not as documented: %w", err)
		}
		user, _ := value.(output.Object)
		if err := out.write(user); err != nil {
			return err
		}
	}
}
