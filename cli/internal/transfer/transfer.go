// Package transfer imports and exports data: people, nodes, memberships, grants, sub-accounts and objects of buckets,
// as CSV or as JSON lines, of any length in bounded memory.
//
// An import survives being killed at any moment. What it has done is in a progress file, which is on disk before each
// request is sent and after it was answered. A request has a key that is made of the import's key and the request's
// place, so that the platform recognises one whose answer was lost, and does it only once.
package transfer

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/idplatform/idplatform/cli/internal/failure"
	"github.com/idplatform/idplatform/cli/internal/output"
	"github.com/idplatform/idplatform/cli/internal/session"
)

// Kind is a kind of records that files hold.
type Kind struct {
	Noun      string   // of the command
	Things    string   // what the records are called
	Short     string   // of the group of commands, if nothing else makes one
	Conflicts []string // the values of --on-conflict, the default first
	Conflict  string   // what they mean for the kind, for its help; and why there are no others
	Filters   []Filter // what an export can be limited to
	Notes     string   // about the columns, for the help of import

	ImportExample, ExportExample string
	ImportScopes, ExportScopes   string

	columns []column
	begin   func(i *importer) // before the file is read; nil: there is nothing to do
	send    func(ctx context.Context, i *importer) error
	read    func(ctx context.Context, s *session.Session, filters map[string]string, out *writer) error
}

// Filter is a flag of an export.
type Filter struct{ Name, Usage string }

// Columns are the names of the columns that an import of the kind takes.
func (k *Kind) Columns() []string {
	var names []string
	for _, c := range k.columns {
		if !c.readOnly {
			names = append(names, c.name)
		}
	}
	return names
}

// Kinds are all kinds.
func Kinds() []*Kind { return []*Kind{users(), nodes(), members(), grants(), accounts(), objects()} }

// column is a member of a record, and a column of a table.
type column struct {
	name      string
	form      form
	readOnly  bool // of records that the platform exports; an import ignores it
	writeOnly bool // never exported
}

// form says how a cell of a table becomes JSON.
type form int

const (
	text    form = iota
	boolean      // true, false, 1 or 0
	number
	list    // texts that are joined by commas
	extra   // a JSON object; a column extra.a.b is a text within it
	anyJSON // any JSON, null too
)

const (
	fail   = "fail"
	skip   = "skip"
	update = "update"
)

// Report is how an import ended.
type Report struct {
	Lines      int64  `json:"lines"`
	Created    int64  `json:"created"`
	Updated    int64  `json:"updated"`
	Skipped    int64  `json:"skipped"`
	Failed     int64  `json:"failed"`
	FailedFile string `json:"failed_file,omitempty"`
}

func (r *Report) object() output.Object {
	out := output.Object{
		{Name: "lines", Value: count(r.Lines)}, {Name: "created", Value: count(r.Created)},
		{Name: "updated", Value: count(r.Updated)}, {Name: "skipped", Value: count(r.Skipped)},
		{Name: "failed", Value: count(r.Failed)},
	}
	if r.FailedFile != "" {
		out = append(out, output.Member{Name: "failed_file", Value: r.FailedFile})
	}
	return out
}

func count(n int64) json.Number { return json.Number(strconv.FormatInt(n, 10)) }

// oneOf checks a flag that has fixed values.
func oneOf(flag, value string, values []string) error {
	if slices.Contains(values, value) {
		return nil
	}
	return failure.Usagef("%s must be one of %s", flag, strings.Join(values, ", "))
}
