package transfer

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/idplatform/idplatform/cli/internal/failure"
	"github.com/idplatform/idplatform/cli/internal/output"
)

// maxRecord is how many bytes a record may have. The platform has the same limit.
const maxRecord = 1 << 20

// record is a record of a file.
type record struct {
	number  int64 // from 1
	line    int64 // of the file, at which it begins
	end     place // after it
	members map[string]json.RawMessage
	fault   string // why it cannot be sent; "": it can

	cells []string // of a table, as they stand there
	raw   []byte   // of JSON lines, as they stand there
}

// text returns a member that is a text; "" if it is absent. Other JSON is returned as it stands.
func (r *record) text(name string) string {
	raw := r.members[name]
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	if raw[0] != '"' {
		return string(raw)
	}
	var out string
	_ = json.Unmarshal(raw, &out) // it is a JSON string
	return out
}

// size is how many bytes the record takes in a request, roughly.
func (r *record) size() int {
	size := 0
	for name, raw := range r.members {
		size += len(name) + len(raw) + 4
	}
	return size
}

// reader returns records; io.EOF after the last.
type reader interface{ next() (*record, error) }

func (s *source) reader(in io.Reader, at place, line int64) reader {
	if s.format == CSV {
		return s.newTable(in, at, line)
	}
	return &lines{s, bufio.NewReaderSize(in, 64<<10), at, line}
}

// lines reads JSON lines.
type lines struct {
	s    *source
	in   *bufio.Reader
	at   place
	line int64 // at which the next one begins
}

func (l *lines) next() (*record, error) {
	for {
		line, err := l.read()
		if err != nil {
			return nil, err
		}
		l.at.Offset += int64(len(line))
		l.line++
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		l.at.Number++
		r := &record{number: l.at.Number, line: l.line - 1, end: l.at, raw: line}
		l.s.parse(r)
		return r, nil
	}
}

func (l *lines) read() ([]byte, error) {
	var line []byte
	for {
		part, err := l.in.ReadSlice('\n')
		if line = append(line, part...); len(line) > maxRecord {
			return nil, failure.Usagef("%s:%d: the line has more than %d bytes", l.s.name, l.line, maxRecord)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && len(line) > 0:
			return line, nil
		}
		return line, err
	}
}

// parse makes the members of a JSON line.
func (s *source) parse(r *record) {
	if !utf8.Valid(r.raw) {
		r.fault = "is not UTF-8"
		return
	}
	var members map[string]json.RawMessage
	if members, r.fault = membersOf(r.raw); r.fault != "" {
		return
	}
	values := s.values()
	for _, name := range slices.Sorted(maps.Keys(members)) { // the same record makes the same bytes
		raw := members[name]
		t, known := s.layout.of(name)
		switch {
		case !known:
			r.fault = s.layout.unknown("", name).Error()
			return
		case !t.ignore:
			values.set(t, raw)
		}
	}
	r.members, r.fault = values.members()
}

// membersOf reads an object. A member that is there twice is a fault, because one of the two would be lost.
func membersOf(raw []byte) (members map[string]json.RawMessage, fault string) {
	if !json.Valid(raw) || raw[0] != '{' {
		return nil, "is not a JSON object"
	}
	members = map[string]json.RawMessage{}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	_, _ = decoder.Token() // it is valid
	for decoder.More() {
		name, _ := decoder.Token()
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return nil, "is not a JSON object"
		}
		if _, twice := members[name.(string)]; twice {
			return nil, fmt.Sprintf("has the member %q twice", output.Printable(name.(string)))
		}
		members[name.(string)] = value
	}
	return members, ""
}

// table reads CSV.
type table struct {
	s    *source
	in   *bounded
	csv  *csv.Reader
	base place
	line int64 // at which the reader begins
	end  int64 // of the last row, from the base
}

func (s *source) table(offset, line int64) *table {
	return s.newTable(io.NewSectionReader(s.file, offset, s.size-offset), place{Offset: offset}, line)
}

func (s *source) newTable(in io.Reader, at place, line int64) *table {
	t := &table{s: s, in: &bounded{in: in}, base: at, line: line}
	t.csv = csv.NewReader(t.in)
	t.csv.FieldsPerRecord = -1 // a row of another length is a bad row, not the end of the import
	return t
}

// bounded stops at a row that does not end: package csv would read it into memory, however long it is.
type bounded struct {
	in   io.Reader
	left int
}

var errTooLong = errors.New("too long")

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLong
	}
	n, err := b.in.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// row returns the cells of the next row.
func (t *table) row() ([]string, error) {
	t.in.left = 2 * maxRecord // more than a row may have, because the reader reads ahead
	cells, err := t.csv.Read()
	switch bad, isBad := errors.AsType[*csv.ParseError](err); {
	case errors.Is(err, io.EOF):
		return nil, io.EOF
	case errors.Is(err, errTooLong):
		return nil, failure.Usagef("%s: the row after line %d does not end: a quotation mark is missing", t.s.name,
			t.line)
	case isBad:
		return nil, failure.Usagef("%s:%d: is not CSV: %w; nothing was sent", t.s.name,
			t.line+int64(bad.StartLine)-1, bad.Err)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", t.s.name, err)
	}
	start := t.end
	if t.end = t.csv.InputOffset(); t.end-start > maxRecord {
		return nil, failure.Usagef("%s:%d: the row has more than %d bytes", t.s.name, t.lineOf(), maxRecord)
	}
	return cells, nil
}

// lineOf is the line of the last row.
func (t *table) lineOf() int64 {
	line, _ := t.csv.FieldPos(0)
	return t.line + int64(line) - 1
}

func (t *table) next() (*record, error) {
	cells, err := t.row()
	if err != nil {
		return nil, err
	}
	t.base.Number++
	r := &record{
		number: t.base.Number, line: t.lineOf(), cells: cells,
		end: place{t.base.Offset + t.end, t.base.Number},
	}
	if len(cells) != len(t.s.header) {
		r.fault = fmt.Sprintf("has %d cells, but the header has %d", len(cells), len(t.s.header))
		return r, nil
	}
	values := t.s.values()
	for i, cell := range cells {
		if !utf8.ValidString(cell) {
			r.fault = "is not UTF-8"
			return r, nil
		}
		if target := t.s.targets[i]; cell != "" && !target.ignore {
			raw, fault := target.column.parse(cell, len(target.path) > 0)
			if fault != "" {
				r.fault = fmt.Sprintf("%s: %s", target.name(), fault)
				return r, nil
			}
			values.set(target, raw)
		}
	}
	r.members, r.fault = values.members()
	return r, nil
}

// parse makes JSON of a cell. What is not of the column's form stays a text, which the platform refuses by its rules.
func (c column) parse(cell string, nested bool) (raw json.RawMessage, fault string) {
	if nested {
		return quoted(cell), ""
	}
	switch c.form {
	case boolean:
		switch strings.ToLower(cell) {
		case "true", "1":
			return json.RawMessage("true"), ""
		case "false", "0":
			return json.RawMessage("false"), ""
		}
	case number:
		if json.Valid([]byte(cell)) {
			return json.RawMessage(cell), ""
		}
	case list:
		parts := strings.Split(cell, ",")
		for i := range parts {
			parts[i] = strings.TrimSpace(parts[i])
		}
		return encoded(parts), ""
	case extra, anyJSON:
		if !json.Valid([]byte(cell)) {
			return nil, "is not JSON"
		}
		return json.RawMessage(cell), ""
	}
	return quoted(cell), ""
}

func quoted(text string) json.RawMessage { return encoded(text) }

// encoded writes JSON, with < and & as they are. The value can be encoded.
func encoded(value any) json.RawMessage {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(err)
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// values collects the members of a record.
type values struct {
	whole  map[string]json.RawMessage
	nested []nestedValue
}

type nestedValue struct {
	target target
	raw    json.RawMessage
}

// values begins a record, with what --set gives to all.
func (s *source) values() *values {
	v := &values{whole: map[string]json.RawMessage{}}
	for _, name := range slices.Sorted(maps.Keys(s.layout.fixed)) {
		t, _ := s.layout.find(name) // newLayout has found and parsed it
		raw, _ := t.column.parse(s.layout.fixed[name], len(t.path) > 0)
		v.set(t, raw)
	}
	return v
}

func (v *values) set(t target, raw json.RawMessage) {
	if len(t.path) > 0 {
		v.nested = append(v.nested, nestedValue{t, raw})
		return
	}
	v.whole[t.column.name] = raw
}

// members puts the texts of columns such as free_ext_props.team into their objects.
func (v *values) members() (members map[string]json.RawMessage, fault string) {
	for _, n := range v.nested {
		name := n.target.column.name
		object := output.Object{}
		if raw := v.whole[name]; len(raw) > 0 {
			value, err := output.Parse(raw)
			if isObject := false; err == nil {
				if object, isObject = value.(output.Object); !isObject {
					return nil, name + ": is not a JSON object"
				}
			}
		}
		v.whole[name] = encoded(placed(object, n.target.path, n.raw))
	}
	return v.whole, ""
}

// placed puts a value at a path of an object.
func placed(object output.Object, path []string, value any) output.Object {
	if len(path) > 1 {
		inner, _ := object.Get(path[0]).(output.Object)
		value = placed(inner, path[1:], value)
	}
	for i := range object {
		if object[i].Name == path[0] {
			object[i].Value = value
			return object
		}
	}
	return append(object, output.Member{Name: path[0], Value: value})
}
