package transfer

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/idplatform/idplatform/pkg/apperr"
)

// Format is the form of a stream of users.
type Format string

// The formats: a JSON object per line, or CSV with a header.
const (
	NDJSON Format = "application/x-ndjson"
	CSV    Format = "text/csv"
)

// ParseFormat parses a Content-Type. The error is apperr.UnsupportedMediaType.
func ParseFormat(contentType string) (Format, error) {
	media, _, _ := strings.Cut(strings.ToLower(contentType), ";")
	switch strings.TrimSpace(media) {
	case "application/x-ndjson", "application/jsonl", "application/ndjson":
		return NDJSON, nil
	case "text/csv":
		return CSV, nil
	}
	return "", apperr.New(apperr.UnsupportedMediaType, "the body must be application/x-ndjson or text/csv")
}

// record is one record of a stream: a JSON object or, with the reason in fault, bytes that are not one.
type record struct {
	raw   []byte
	fault string
}

// reader returns records; io.EOF after the last.
type reader interface{ next() (record, error) }

// byteOrderMark is at the beginning of files from some spreadsheet programs.
const byteOrderMark = "\ufeff"

// newReader returns the records of body. known says which columns a CSV file may have.
func newReader(f Format, body io.Reader, known func(column string) bool) reader {
	in := bufio.NewReaderSize(body, 64<<10)
	if start, _ := in.Peek(len(byteOrderMark)); string(start) == byteOrderMark {
		_, _ = in.Discard(len(start))
	}
	if f == CSV {
		r := &csvReader{in: &bounded{in: &lineEnds{in: in}}, known: known}
		r.csv = csv.NewReader(r.in)
		r.csv.ReuseRecord = true
		r.csv.FieldsPerRecord = -1 // a record of another length is a bad record, not the end of the stream
		return r
	}
	return &lineReader{in}
}

type lineReader struct{ in *bufio.Reader }

// next skips empty lines. A last line without a line feed counts; one that a broken connection cut off does not.
func (r *lineReader) next() (record, error) {
	for {
		var line []byte
		for {
			part, err := r.in.ReadSlice('\n')
			line = append(line, part...)
			if len(line) > maxLine {
				return record{}, errTooLong
			}
			if errors.Is(err, bufio.ErrBufferFull) {
				continue
			}
			if err != nil && (!errors.Is(err, io.EOF) || len(line) == 0) {
				return record{}, readError(err)
			}
			break
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return record{raw: line}, nil
		}
	}
}

var errTooLong = apperr.New(apperr.TooLarge, "a record has more than %d bytes", maxLine)

func readError(err error) error {
	if _, ours := errors.AsType[*apperr.Error](err); ours || errors.Is(err, io.EOF) {
		return err
	}
	return apperr.Invalid("", "broke off").Because(err)
}

// The columns whose cells are not texts: booleans, and JSON objects or numbers.
var (
	booleans = []string{"email_verified", "mobile_verified", "must_change_password", "locked", "password_set"}
	jsons    = []string{"sys_ext_props", "free_ext_props", "version"}
)

// bounded stops at a record that does not end: package csv would read it into memory, however long it is.
type bounded struct {
	in   io.Reader
	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLong
	}
	n, err := b.in.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// lineEnds makes every line end a line feed: carriage return, line feed, or both. Package csv knows the last two.
type lineEnds struct {
	in    io.Reader
	ended bool // the last byte was a carriage return; a line feed after it is part of the same line end
}

func (l *lineEnds) Read(p []byte) (int, error) {
	n, err := l.in.Read(p)
	if !l.ended && bytes.IndexByte(p[:n], '\r') < 0 {
		return n, err
	}
	kept := p[:0]
	for _, b := range p[:n] {
		after := l.ended
		if l.ended = b == '\r'; l.ended {
			b = '\n'
		} else if after && b == '\n' {
			continue
		}
		kept = append(kept, b)
	}
	return len(kept), err
}

type csvReader struct {
	in     *bounded
	csv    *csv.Reader
	known  func(column string) bool
	header []string
}

// read returns the cells of the next record. The next call overwrites them.
func (r *csvReader) read() ([]string, error) {
	r.in.left = 2 * maxLine // more than a record may have, because the reader reads ahead
	start := r.csv.InputOffset()
	cells, err := r.csv.Read()
	switch {
	case err != nil:
		return nil, csvError(err)
	case r.csv.InputOffset()-start > maxLine:
		return nil, errTooLong
	}
	return cells, nil
}

func (r *csvReader) readHeader() error {
	header, err := r.read()
	if errors.Is(err, io.EOF) {
		return apperr.Invalid("", "must begin with a header: a line with the names of the columns")
	}
	if err != nil {
		return err
	}
	if len(header) > maxColumns {
		return apperr.Invalid("", "has more than %d columns", maxColumns)
	}
	for i, name := range header {
		name = strings.TrimSpace(name)
		if !utf8.ValidString(name) {
			return apperr.Invalid("", "must be UTF-8")
		}
		if slices.Contains(r.header, name) {
			return apperr.Invalid("", "has the same header in two columns, the second is column %d", i+1)
		}
		if !r.known(name) {
			return unknownColumn(i, header)
		}
		r.header = append(r.header, name)
	}
	return nil
}

// unknownColumn says what is wrong with a header. It does not repeat it: without a header, the first line has values.
func unknownColumn(i int, header []string) error {
	hint := ""
	if len(header) == 1 && strings.ContainsAny(header[0], ";\t|") {
		hint = "; columns are separated by commas"
	}
	return apperr.Invalid("", "must begin with a header of known columns, and column %d is not: %s, written so%s",
		i+1, strings.Join(append(slices.Clone(passwords), columns...), ", "), hint)
}

// next makes an object from the cells of a record. An empty cell is an absent member.
func (r *csvReader) next() (record, error) {
	if r.header == nil {
		if err := r.readHeader(); err != nil {
			return record{}, err
		}
	}
	cells, err := r.read()
	if err != nil {
		return record{}, err
	}
	bad := func(fault string) (record, error) { return record{[]byte(strings.Join(cells, "\x00")), fault}, nil }
	if len(cells) != len(r.header) {
		return bad("does not have as many cells as the header")
	}
	object := map[string]json.RawMessage{}
	for i, cell := range cells {
		if !utf8.ValidString(cell) {
			return bad("must be UTF-8")
		}
		name := r.header[i]
		switch {
		case cell == "" || slices.Contains(ignored, name):
		case slices.Contains(booleans, name):
			object[name] = boolean(cell)
		case slices.Contains(jsons, name) && json.Valid([]byte(cell)):
			object[name] = json.RawMessage(cell)
		default:
			object[name] = quoted(cell)
		}
	}
	var raw bytes.Buffer
	enc := json.NewEncoder(&raw)
	enc.SetEscapeHTML(false) // cells are copied into the record without escapes
	err = enc.Encode(object)
	return record{raw: bytes.TrimSpace(raw.Bytes())}, err
}

func boolean(cell string) json.RawMessage {
	switch strings.ToLower(cell) {
	case "true", "1":
		return json.RawMessage("true")
	case "false", "0":
		return json.RawMessage("false")
	}
	return quoted(cell) // no boolean member accepts a text: the record fails with the member's location
}

func quoted(cell string) json.RawMessage {
	text, _ := json.Marshal(cell) // cannot fail
	return text
}

func csvError(err error) error {
	if bad, ok := errors.AsType[*csv.ParseError](err); ok {
		return apperr.Invalid("", "is not CSV at line %d", bad.Line)
	}
	return readError(err)
}

// columns are the columns of an exported CSV file, in order.
var columns = []string{
	"id", "username", "display_name", "email", "mobile", "employee_number", "gender", "locale", "zoneinfo", "status",
	"email_verified", "mobile_verified", "must_change_password", "sys_ext_props", "free_ext_props",
	"locked", "lock_reason", "locked_until", "real_name_status", "real_name", "id_number_masked", "password_set",
	"time_password_changed", "time_last_login", "time_resigned", "version", "time_created", "time_modified",
}

// passwords are the columns that only an import has.
var passwords = []string{"password", "password_hash"}

// ignored are columns that an import ignores, as it does all read-only members: a cell need not be the member's JSON.
var ignored = []string{"managed_by", "shared_contacts", "first_contacts"}

// cells makes a CSV record from a user's JSON form.
func cells(record []byte) ([]string, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(record, &members); err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	row := make([]string, len(columns))
	for i, name := range columns {
		value := members[name]
		if len(value) == 0 || string(value) == "null" {
			continue
		}
		if value[0] != '"' {
			row[i] = string(value)
			continue
		}
		if err := json.Unmarshal(value, &row[i]); err != nil {
			return nil, fmt.Errorf("export: %w", err)
		}
	}
	return row, nil
}
