package session

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/idplatform/idplatform/cli/internal/failure"
	"github.com/idplatform/idplatform/cli/internal/operations"
	"github.com/idplatform/idplatform/cli/internal/output"
	idp "github.com/idplatform/idplatform/sdk/go"
)

// Call is an operation with its parameters.
type Call struct {
	Operation *operations.Operation
	Path      []string // the values of the path's parameters, in their order
	Query     url.Values
	Header    http.Header
	Body      []byte    // JSON
	Upload    io.Reader // instead of Body
	Type      string    // of Upload
	View      output.View
	What      string // what a deletion deletes, for the question before it
	Verb      string // of that question; "": Delete

	// Reads is what reading the record takes in its query, for the difference that a dry run shows.
	Reads url.Values

	// Join adds to the items of a list what tables show and the answer lacks, such as names beside ids; nil: nothing.
	Join func(ctx context.Context, items []output.Object) error
	// Answer makes what is printed of an answer; an error comes after it. nil: the answer itself.
	Answer func(body []byte) ([]byte, error)

	Asked bool   // the person has been asked about it already, or need not be
	Try   bool   // only ask what it would do, as with --dry-run
	Key   string // the Idempotency-Key; "": one that is made up, or that of --idempotency-key
}

// Operation finds an operation of the table that the program was built with. Commands name it, so it is there: a test
// runs every command.
func Operation(id string) *operations.Operation {
	o := operations.CompiledIn().Find(id)
	if o == nil {
		panic("there is no operation " + id)
	}
	return o
}

// path returns the path and the query.
func (c *Call) path() string {
	path := c.Operation.Path
	for i, p := range c.Operation.In("path") {
		path = strings.Replace(path, "{"+p.Name+"}", url.PathEscape(c.Path[i]), 1)
	}
	return path
}

// request makes the request of a call, with the flags that hold for all.
func (s *Session) request(c *Call) (idp.Request, []idp.Option, error) {
	r := idp.Request{
		Method: c.Operation.Method, Path: c.path(), Query: c.Query, Header: c.Header, ContentType: operations.JSON,
		Momentary: c.Operation.Momentary, Open: c.Operation.Open,
	}
	switch {
	case c.Upload != nil:
		r.Body, r.ContentType = c.Upload, c.Type
	case c.Body != nil:
		r.Body = bytes.NewReader(c.Body)
		if slices.Contains(c.Operation.Body, formType) {
			form, err := formOf(c.Body)
			if err != nil {
				return r, nil, err
			}
			r.Body, r.ContentType = strings.NewReader(form), formType
		}
	default:
		r.ContentType = ""
	}
	var options []idp.Option
	if !c.Operation.Changes() {
		return r, options, s.noWriteFlags()
	}
	if s.DryRun || c.Try {
		options = append(options, idp.DryRun())
	}
	if s.IdempotencyKey != "" && r.Method != http.MethodPost {
		return r, nil, failure.Usagef("--idempotency-key is for operations that POST; this one is %s", r.Method)
	}
	if key := cmp.Or(c.Key, s.IdempotencyKey); key != "" && r.Method == http.MethodPost {
		options = append(options, idp.IdempotencyKey(key))
	}
	if s.IfVersion != "" {
		if !c.Operation.Matches {
			return r, nil, failure.Usagef("--if-version: %s does not change one record with a version", c.Operation.ID)
		}
		options = append(options, idp.IfMatch(strconv.Quote(strings.Trim(s.IfVersion, `"`))))
	}
	return r, options, nil
}

const formType = "application/x-www-form-urlencoded"

// formOf makes a form of a JSON object.
func formOf(body []byte) (string, error) {
	value, err := output.Parse(body)
	object, isObject := value.(output.Object)
	if err != nil || !isObject {
		return "", failure.Usagef("the body must be a JSON object, whose members become a form")
	}
	form := url.Values{}
	for _, m := range object {
		form.Set(m.Name, output.Text(m.Value))
	}
	return form.Encode(), nil
}

func (s *Session) noWriteFlags() error {
	for name, given := range map[string]bool{
		"--dry-run": s.DryRun, "--if-version": s.IfVersion != "", "--idempotency-key": s.IdempotencyKey != "",
	} {
		if given {
			return failure.Usagef("%s is for changes; this command only reads", name)
		}
	}
	return nil
}

// Send sends a call by all rules and returns the answer.
func (s *Session) Send(ctx context.Context, c *Call) (*http.Response, error) {
	client, err := s.Client()
	if err != nil {
		return nil, err
	}
	r, options, err := s.request(c)
	if err != nil {
		return nil, err
	}
	changes := c.Operation.Changes()
	s.changes.Store(changes)
	if changes {
		if s.Curl && !c.Try {
			return nil, failure.Usagef("--curl shows one request; this command needs the answers of several")
		}
		if err := s.beforeChange(c.Try); err != nil {
			return nil, err
		}
		if c.Operation.Method == http.MethodDelete && !c.Asked && !c.Try {
			what := c.What
			if what == "" {
				what = strings.Join(c.Path, " ")
			}
			if err := s.Confirm(strings.TrimSpace(cmp.Or(c.Verb, "Delete") + " " + what)); err != nil {
				return nil, err
			}
		}
	}
	if !slices.Contains(c.Operation.Answer, operations.JSON) {
		r.Stream()
	}
	response, err := client.Do(ctx, r, options...)
	return response, failure.WithScope(err, c.Operation.Scope)
}

// Body sends a call and returns the answer's body.
func (s *Session) Body(ctx context.Context, c *Call) ([]byte, error) {
	response, err := s.Send(ctx, c)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return io.ReadAll(response.Body)
}

// Run sends a call and prints the answer.
func (s *Session) Run(ctx context.Context, c *Call) error {
	printer, err := s.Printer()
	if err != nil {
		return err
	}
	switch {
	case s.Curl:
		return s.PrintCurl(c)
	case c.Operation.Paged:
		return s.list(ctx, c, printer)
	case !slices.Contains(c.Operation.Answer, operations.JSON):
		return s.download(ctx, c)
	case s.DryRun && printer.ForPeople():
		return s.difference(ctx, c)
	}
	body, err := s.Body(ctx, c)
	if err != nil {
		return err
	}
	body, after := c.printed(body)
	return errors.Join(s.print(ctx, c, printer, body), after)
}

func (c *Call) printed(body []byte) ([]byte, error) {
	if c.Answer == nil {
		return body, nil
	}
	return c.Answer(body)
}

// print prints an answer; a list in a table with what Join adds.
func (s *Session) print(ctx context.Context, c *Call, printer *output.Printer, body []byte) error {
	if c.Join == nil || !printer.ForPeople() {
		return printer.Body(body, c.View)
	}
	value, err := output.Parse(body)
	if err != nil {
		return fmt.Errorf("the answer is not JSON: %w", err)
	}
	list, isList := output.List(value, c.View.Items)
	if !isList {
		return printer.Body(body, c.View)
	}
	joined, err := c.joined(ctx, list)
	if err != nil {
		return err
	}
	items := printer.Items(c.View)
	for _, item := range joined {
		if err := items.Add(item); err != nil {
			return err
		}
	}
	return items.Close()
}

// joined are the objects of a list, with what Join adds. A caller who may not read it sees ids instead, and
// so does one whose change was made and who cannot read it now.
func (c *Call) joined(ctx context.Context, list []any) ([]output.Object, error) {
	objects := make([]output.Object, len(list))
	for i, item := range list {
		objects[i], _ = item.(output.Object)
	}
	if c.Join == nil {
		return objects, nil
	}
	err := c.Join(ctx, objects)
	if err != nil && idp.CodeOf(err) != idp.CodeForbidden && !c.Operation.Changes() { // a change was made
		return nil, err
	}
	return objects, nil
}

// download copies an answer that is not JSON.
func (s *Session) download(ctx context.Context, c *Call) error {
	response, err := s.Send(ctx, c)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	kind := response.Header.Get("Content-Type")
	if s.OutIsTerminal && strings.HasPrefix(kind, "image/") {
		return failure.Usagef("the answer is %s: send it to a file with >", kind)
	}
	out := s.Out
	if s.OutIsTerminal {
		out = output.Safe(out)
	}
	if _, err := io.Copy(out, response.Body); err != nil {
		return &idp.LostError{
			Method: c.Operation.Method, Path: c.Operation.Path, MayBeDone: c.Operation.Changes(),
			Key: s.IdempotencyKey, Err: err,
		}
	}
	return nil
}

// difference prints what a dry run would change.
func (s *Session) difference(ctx context.Context, c *Call) error {
	before, err := s.before(ctx, c)
	if err != nil {
		return err
	}
	body, err := s.Body(ctx, c)
	if err != nil {
		return err
	}
	body, answered := c.printed(body)
	value, err := output.Parse(body)
	if err != nil {
		return fmt.Errorf("the answer is not JSON: %w", err)
	}
	after, isRecord := value.(output.Object)
	if list, isList := value.([]any); isList && len(list) == 1 { // of the one record
		after, isRecord = list[0].(output.Object)
	}
	sent := c.sent()
	switch isDelete := c.Operation.Method == http.MethodDelete; {
	case isDelete && before == nil:
		before, after, isRecord = sent, nil, true
	case isDelete:
		after, isRecord = nil, true
	case isRecord && len(after) == 0: // the answer tells nothing: what was sent does
		record, _ := before.(output.Object)
		for _, m := range sent {
			record = record.With(m.Name, m.Value)
		}
		after, isRecord = record, len(sent) > 0
	}
	if isRecord {
		if err := output.Difference(s.Out, s.Style(), before, after); err != nil {
			return err
		}
	}
	s.Notef("dry run: nothing was changed")
	return answered
}

// sent are the members of the body, without secrets; nil if it has none.
func (c *Call) sent() output.Object {
	value, err := output.Parse(c.Body)
	if err != nil {
		return nil // there is no body
	}
	members, _ := value.(output.Object)
	for i, m := range members {
		if strings.Contains(m.Name, "password") || strings.Contains(m.Name, "secret") {
			members[i].Value = "******"
		}
	}
	return members
}

// before reads the record that a call changes; nil if it changes none, or none that can be read.
func (s *Session) before(ctx context.Context, c *Call) (any, error) {
	path := c.path()
	read := operations.CompiledIn().Match(http.MethodGet, path)
	if cutAt := strings.LastIndex(path, "/"); read == nil || c.Operation.Method == http.MethodPost {
		read = operations.CompiledIn().Match(http.MethodGet, path[:cutAt])
		path = path[:cutAt]
	}
	if read == nil || read.List || len(read.In("path")) == 0 {
		return nil, nil
	}
	record, err := s.read(ctx, path, c.Reads)
	if problem, ok := errors.AsType[*idp.Problem](err); ok && problem.Status < http.StatusInternalServerError {
		return nil, nil // the dry run says what is wrong, if anything is
	}
	return record, err
}

// Record reads the record that a call is about: what GET answers at its path.
func (s *Session) Record(ctx context.Context, c *Call) (output.Object, error) {
	value, err := s.read(ctx, c.path(), c.Reads)
	if err != nil {
		read := operations.CompiledIn().Match(http.MethodGet, c.path())
		return nil, failure.WithScope(err, read.Scope)
	}
	record, isObject := value.(output.Object)
	if !isObject {
		return nil, fmt.Errorf("the answer is not as documented: it is no object")
	}
	return record, nil
}

// read sends a GET of a path. It is no change, so the flags of changes are not looked at.
func (s *Session) read(ctx context.Context, path string, query url.Values) (any, error) {
	client, err := s.Client()
	if err != nil {
		return nil, err
	}
	response, err := client.Do(ctx, idp.Request{Method: http.MethodGet, Path: path, Query: query})
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	return output.Parse(text)
}
