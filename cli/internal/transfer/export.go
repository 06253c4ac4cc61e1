package transfer

import (
	"bufio"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/cli/internal/failure"
	"github.com/idplatform/idplatform/cli/internal/output"
	"github.com/idplatform/idplatform/cli/internal/session"
)

// Export writes records to a file, or to standard output if it is "" or -. Import reads what it writes. The file has
// its name only when it is whole.
func (k *Kind) Export(ctx context.Context, s *session.Session, file string, filters map[string]string) error {
	format, err := exportFormat(s, file)
	if err != nil {
		return err
	}
	columns, err := k.exported(s.Fields)
	if err != nil {
		return err
	}
	if _, err := s.Client(); err != nil {
		return err
	}
	if file == "" || file == standardInput {
		buffer := bufio.NewWriterSize(s.Out, 64<<10)
		_, err := k.export(ctx, s, buffer, format, columns, filters)
		return errors.Join(err, buffer.Flush())
	}
	temporary, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+"-*")
	if err != nil {
		return failure.Usagef("%w", err)
	}
	buffer := bufio.NewWriterSize(temporary, 64<<10)
	count, err := k.export(ctx, s, buffer, format, columns, filters)
	if err == nil {
		err = errors.Join(buffer.Flush(), temporary.Sync())
	}
	if err = errors.Join(err, temporary.Close()); err == nil {
		err = os.Rename(temporary.Name(), file)
	}
	if err != nil {
		_ = os.Remove(temporary.Name()) // the first error says more
		return err
	}
	s.Notef("%d %s in %s", count, k.Things, file)
	return nil
}

func exportFormat(s *session.Session, file string) (string, error) {
	format := s.Format
	if format == "table" { // -o was not given
		if format = formatOf(file); format == "" {
			format = CSV
		}
	}
	if s.JQ != "" {
		return "", failure.Usagef("--jq is for answers; an export writes what an import reads")
	}
	return format, oneOf("-o", format, []string{CSV, JSONL})
}

// exported are the columns of an export: those that an import takes, or those that --fields names.
func (k *Kind) exported(fields []string) ([]column, error) {
	l := layout{columns: k.columns}
	var columns []column
	for _, name := range fields {
		t, known := l.find(name)
		if !known || t.column.writeOnly || len(t.path) > 0 || name == reasonColumn {
			return nil, l.unknown("--fields: ", name)
		}
		columns = append(columns, t.column)
	}
	for _, c := range k.columns {
		if len(fields) == 0 && !c.readOnly && !c.writeOnly {
			columns = append(columns, c)
		}
	}
	return columns, nil
}

func (k *Kind) export(
	ctx context.Context, s *session.Session, w io.Writer, format string, columns []column, filters map[string]string,
) (int64, error) {
	m := newMeter(s.Err, s.ErrIsTerminal, k.Things, 0, 0)
	out := &writer{w: w, columns: columns, meter: m}
	err := out.begin(format)
	if err == nil {
		err = k.read(ctx, s, filters, out)
	}
	m.close()
	if err == nil && out.returns > 0 {
		s.Notef("%d cells have CR LF, which CSV does not tell from LF: -o jsonl keeps them", out.returns)
	}
	return m.done.Load(), err
}

// writer writes records as import reads them.
type writer struct {
	w       io.Writer
	csv     *csv.Writer // nil: JSON lines
	columns []column
	meter   *meter
	returns int // cells with CR LF
}

func (w *writer) begin(format string) error {
	if format == JSONL {
		return nil
	}
	w.csv = csv.NewWriter(w.w)
	var names []string
	for _, c := range w.columns {
		names = append(names, c.name)
	}
	return w.row(names)
}

func (w *writer) row(cells []string) error {
	if err := w.csv.Write(cells); err != nil {
		return err
	}
	w.csv.Flush()
	return w.csv.Error()
}

// write writes a record. Members that are not columns are left out.
func (w *writer) write(record output.Object) error {
	w.meter.done.Add(1)
	if w.csv == nil {
		var line output.Object
		for _, c := range w.columns {
			if at := slices.IndexFunc(record, func(m output.Member) bool { return m.Name == c.name }); at >= 0 &&
				!c.isDefault(record[at].Value) {
				line = append(line, record[at])
			}
		}
		_, err := w.w.Write(append(encoded(line), '\n'))
		return err
	}
	cells := make([]string, len(w.columns))
	for i, c := range w.columns {
		if value := record.Get(c.name); !c.isDefault(value) {
			cells[i] = c.cell(value)
		}
		if strings.Contains(cells[i], "\r\n") {
			w.returns++
		}
	}
	return w.row(cells)
}

// isDefault reports whether an import makes the same of a value and of none.
func (c column) isDefault(value any) bool {
	if c.form == anyJSON {
		return false
	}
	object, isObject := value.(output.Object)
	return value == nil || value == "" || isObject && len(object) == 0
}

// cell writes a value so that parse reads it.
func (c column) cell(value any) string {
	switch c.form {
	case extra, anyJSON:
		return string(encoded(value))
	case list:
		items, _ := value.([]any)
		parts := make([]string, len(items))
		for i, item := range items {
			parts[i] = output.Text(item)
		}
		return strings.Join(parts, ",")
	}
	return output.Text(value)
}

// pages walks all pages of a list, a page at a time, so that names can be found for all of it at once.
func pages(
	ctx context.Context, s *session.Session, operation string, path []string, query url.Values,
	each func([]output.Object) error,
) error {
	call := &session.Call{Operation: session.Operation(operation), Path: path, Query: query}
	return pagesOf(ctx, s, call, each)
}

func pagesOf(ctx context.Context, s *session.Session, c *session.Call, each func([]output.Object) error) error {
	call, query := *c, maps.Clone(c.Query)
	if query == nil {
		query = url.Values{}
	}
	call.Query = query
	query.Set("page_size", "200")
	query.Set("count", "false")
	for {
		body, err := reading(s).Body(ctx, &call)
		if err != nil {
			return err
		}
		value, err := output.Parse(body)
		if err != nil {
			return fmt.Errorf("the answer is not as documented: %w", err)
		}
		items, next := itemsOf(value)
		if err := each(items); err != nil {
			return err
		}
		if next == "" {
			return nil
		}
		query.Set("page_token", next)
	}
}

// reading is a session for what only reads, also within a dry run.
func reading(s *session.Session) *session.Session {
	reads := *s
	reads.DryRun = false
	return &reads
}

// itemsOf are the records of an answer: those of a page, or all of an array.
func itemsOf(value any) (items []output.Object, next string) {
	list, isList := value.([]any)
	if page, isPage := value.(output.Object); isPage && !isList {
		list, _ = page.Get("items").([]any)
		next = page.Text("next_page_token")
	}
	for _, item := range list {
		if object, ok := item.(output.Object); ok {
			items = append(items, object)
		}
	}
	return items, next
}
