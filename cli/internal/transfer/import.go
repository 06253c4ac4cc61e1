package transfer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/idplatform/idplatform/cli/internal/failure"
	"github.com/idplatform/idplatform/cli/internal/output"
	"github.com/idplatform/idplatform/cli/internal/session"
	idp "github.com/idplatform/idplatform/sdk/go"
)

// ImportOptions are the flags of an import.
type ImportOptions struct {
	File       string // - is standard input
	Format     string // "": by the name of the file
	Map, Set   []string
	OnConflict string
	Progress   string // "": beside the file
	Failed     string // "": beside the file
}

// importer is one run of an import.
type importer struct {
	*session.Session
	kind     *Kind
	options  ImportOptions
	source   *source
	line     int64 // of the place at which the import goes on
	lock     lock  // of the progress
	progress *progress
	goesOn   bool
	failures *failures
	report   *Report // that of the progress
	meter    *meter
	told     int // records that failed in a dry run and were shown
	batched  batched

	applications map[string]string // ids by name and id; nil: not read yet
	oneEach      map[string]bool   // of applications, by id: a user may have one sub-account

	see func(*record) // each record, before anything is sent
}

// Import imports a file. The error is of exit code 9 if records failed, or if the import stopped midway.
func (k *Kind) Import(ctx context.Context, s *session.Session, o ImportOptions) error {
	printer, err := s.Printer()
	if err != nil {
		return err
	}
	i := &importer{Session: s, kind: k, options: o}
	if err := i.check(); err != nil {
		return err
	}
	if k.begin != nil {
		k.begin(i)
	}
	l, err := newLayout(k.columns, o.Map, o.Set)
	if err != nil {
		return err
	}
	if _, err := s.Client(); err != nil {
		return err
	}
	if i.source, err = openSource(o.File, o.Format, s.In, l); err != nil {
		return err
	}
	if err = s.BeforeChange(); err == nil { // before a long file is read
		err = i.run(ctx)
	}
	defer func() { _ = i.lock.release() }() // it ends with the process at the latest
	err = errors.Join(err, i.source.close())
	if err != nil {
		return err
	}
	if err := printer.Body(encoded(i.report.object()), output.View{}); err != nil {
		return err
	}
	// Only now: without its progress, the same command would begin anew.
	return errors.Join(i.progress.remove(), i.verdict())
}

// check refuses flags that an import has no use for.
func (i *importer) check() error {
	switch {
	case i.Curl:
		return failure.Usagef("--curl shows one request; an import has many")
	case i.IfVersion != "":
		return failure.Usagef("--if-version is for one record")
	case i.options.OnConflict == "":
		i.options.OnConflict = i.kind.Conflicts[0]
	}
	err := oneOf("--on-conflict", i.options.OnConflict, i.kind.Conflicts)
	if err != nil && len(i.kind.Conflicts) == 1 {
		return failure.Usagef("%w. %s", err, strings.ReplaceAll(i.kind.Conflict, "\n", " "))
	}
	return err
}

// verdict is the error of an import that is finished.
func (i *importer) verdict() error {
	if i.DryRun {
		i.Notef("dry run: nothing was changed")
	}
	switch {
	case i.report.Failed == 0:
		return nil
	case i.report.FailedFile == "":
		return partly("%d of %d %s would fail", i.report.Failed, i.report.Lines, i.kind.Things)
	}
	return partly("%d of %d %s failed: %s has them, with the reasons; mended, it can be imported", i.report.Failed,
		i.report.Lines, i.kind.Things, i.report.FailedFile)
}

func partly(format string, args ...any) error {
	return &failure.Error{Code: failure.Partly, Err: fmt.Errorf(format, args...)}
}

func (i *importer) run(ctx context.Context) error {
	if err := i.open(ctx); err != nil {
		return err
	}
	begin := i.progress.Place.Number
	if i.goesOn {
		i.Notef("goes on with the import of %s", i.progress.Started.Local().Format(time.DateTime))
	}
	i.meter = newMeter(i.Err, i.ErrIsTerminal, i.kind.Things, i.source.records, begin)
	err := i.kind.send(ctx, i)
	i.meter.close()
	if err != nil {
		return i.stopped(ctx, errors.Join(err, i.failures.close()))
	}
	if err := i.failures.close(); err != nil {
		return err
	}
	if i.report.Failed > 0 {
		i.report.FailedFile = i.failures.path
	}
	return nil
}

// open reads the file once, and the progress.
func (i *importer) open(ctx context.Context) error {
	path := i.options.Progress
	if path == "" && i.options.File != standardInput {
		path = i.options.File + ".progress"
	}
	if i.DryRun {
		path = ""
	} else if path == "" {
		i.Notef("standard input without --progress FILE: if it is interrupted, this import cannot go on")
	}
	var err error
	if i.lock, err = lockProgress(path); err != nil {
		return err
	}
	from := peekPlace(path, i.source.first())
	if i.line, err = i.source.survey(from.Offset, i.see); err != nil {
		return err
	}
	target, err := i.target(ctx, path != "")
	if err != nil {
		return err
	}
	i.progress, i.goesOn, err = openProgress(path, progress{
		Kind: i.kind.Things, Target: target, Options: i.flags(), Size: i.source.size, Sum: i.source.sum,
		Key: i.IdempotencyKey, Place: from,
	})
	if err != nil {
		return err
	}
	i.IdempotencyKey = "" // it is the whole import's: each request has its own
	i.report = &i.progress.Report
	failed := i.options.Failed
	if failed == "" && !i.DryRun {
		failed = failedPath(i.options.File, i.source.format)
	}
	if i.isSource(failed) {
		return failure.Usagef("--failed %s: it is the file that is imported", failed)
	}
	i.failures, err = openFailures(failed, i.source, i.progress.FailedSize)
	return err
}

// target says where the records go. If only the token tells the tenant, the platform is asked: the file must not go on
// in another one.
func (i *importer) target(ctx context.Context, kept bool) (string, error) {
	if !kept || i.TenantName() != "" {
		return i.Target(), nil
	}
	client, err := i.Client()
	if err != nil {
		return "", err
	}
	who, err := client.WhoAmI(ctx)
	if err != nil {
		return "", err
	}
	i.Tenant = who.TenantID
	return i.Target(), nil
}

// isSource reports whether a path leads to the file that is imported.
func (i *importer) isSource(path string) bool {
	there, err := os.Stat(path)
	if err != nil {
		return false
	}
	source, err := os.Stat(i.options.File)
	return err == nil && os.SameFile(there, source)
}

// flags are those that change what is sent.
func (i *importer) flags() string {
	list := []string{"--format " + i.source.format}
	if i.options.OnConflict != "" {
		list = append(list, "--on-conflict "+i.options.OnConflict)
	}
	for flag, pairs := range map[string][]string{"--map ": i.options.Map, "--set ": i.options.Set} {
		for _, pair := range pairs {
			name, _, _ := strings.Cut(pair, "=")
			if t, _ := i.source.layout.find(name); flag == "--set " && t.column.writeOnly {
				pair = name // a password must not be in the progress
			}
			list = append(list, flag+pair)
		}
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

// stopped is the error of an import that stopped midway.
func (i *importer) stopped(ctx context.Context, err error) error {
	if i.progress.path == "" || i.DryRun {
		return err
	}
	if ctx.Err() != nil {
		i.Notef("interrupted after %d of %d %s; the same command goes on", i.report.Lines, i.source.records,
			i.kind.Things)
		return &failure.Error{Code: failure.Interrupted, Err: err}
	}
	i.Notef("stopped after %d of %d %s; the same command goes on", i.report.Lines, i.source.records, i.kind.Things)
	if i.report.Created+i.report.Updated > 0 {
		return &failure.Error{Code: failure.Partly, Err: err}
	}
	return err
}

// failed counts a record that failed, and keeps it.
func (i *importer) failed(r *record, reason string) error {
	i.report.Failed++
	if i.DryRun {
		if i.told++; i.told <= mostTold {
			i.meter.note("%s:%d: %s", i.source.name, r.line, output.Printable(reason))
		} else if i.told == mostTold+1 && i.failures.path == "" {
			i.meter.note("… and more; --failed FILE keeps them all")
		}
	}
	return i.failures.add(r, reason)
}

const mostTold = 20 // records that fail in a dry run

const (
	firstPause   = 200 * time.Millisecond
	longestPause = 5 * time.Second
)

// patiently sends a request again while the platform is away, as long as --wait says. came tells whether the last try
// came further than those before.
func (i *importer) patiently(ctx context.Context, send func() error, came func() bool) error {
	waited, pause := time.Duration(0), firstPause
	for {
		err := send()
		if err == nil || !isAway(err) || ctx.Err() != nil {
			return err
		}
		if came() {
			waited, pause = 0, firstPause
		}
		if waited+pause > i.Wait {
			return err
		}
		if waited == 0 {
			i.meter.note("%s: waiting up to %v", reasonToWait(err), i.Wait)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
		waited, pause = waited+pause, min(2*pause, longestPause)
	}
}

func reasonToWait(err error) string {
	if idp.CodeOf(err) == idp.CodeRequestInProgress {
		return "the platform still works on what was sent before an interruption"
	}
	return fmt.Sprintf("the platform is away (%v)", err)
}

// isAway reports whether the same request may be answered later. All requests of an import can be repeated: they read,
// have a key, or do the same a second time.
func isAway(err error) bool {
	if _, lost := errors.AsType[*idp.LostError](err); lost {
		return true
	}
	problem, ok := errors.AsType[*idp.Problem](err)
	if !ok {
		return false
	}
	return problem.Status == http.StatusTooManyRequests || problem.Status >= http.StatusInternalServerError ||
		problem.Code == idp.CodeRequestInProgress
}

// isAboutRecords reports whether a refusal is about what the request has, rather than about the caller.
func isAboutRecords(err error) (*idp.Problem, bool) {
	problem, ok := errors.AsType[*idp.Problem](err)
	if !ok {
		return nil, false
	}
	switch problem.Code {
	case idp.CodeInvalidParameters, idp.CodeAlreadyExists, idp.CodeInvalidState, idp.CodeTooLarge, idp.CodeNotFound,
		idp.CodeInUse, idp.CodeHasChildren:
		return problem, true
	}
	return nil, false
}

// answer decodes an answer.
func answer(response *http.Response, into any) error {
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(into); err != nil {
		return fmt.Errorf("the answer is not as documented: %w", err)
	}
	return nil
}
