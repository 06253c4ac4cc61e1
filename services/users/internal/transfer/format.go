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

	"github.com/idplatform/idplatform/pkg/apperr"
)

// Format is the form of a stream of users.
type Format string

// The formats: a JSON object a line, or a header and a record a line.
const (
	NDJSON Format = "application/x-ndjson"
	CSV    Format = "text/csv"
)

// ParseFormat reads a Content-Type; apperr.UnsupportedMediaType.
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

// reader gives records as JSON objects; io.EOF after the last.
type reader interface{ next() ([]byte, error) }

func newReader(f Format, body io.Reader) reader {
	if f == CSV {
		r := csv.NewReader(body)
		r.ReuseRecord = true
		return &csvReader{csv: r}
	}
	return &lineReader{bufio.NewReaderSize(body, 64<<10)}
}

type lineReader struct{ in *bufio.Reader }

// next skips empty lines. A last line without a line feed counts; one that a broken connection cut off does not.
func (r *lineReader) next() ([]byte, error) {
	for {
		var line []byte
		for {
			part, err := r.in.ReadSlice('\n')
			line = append(line, part...)
			if len(line) > maxLine {
				return nil, apperr.New(apperr.TooLarge, "a line has more than %d bytes", maxLine)
			}
			if errors.Is(err, bufio.ErrBufferFull) {
				continue
			}
			if err != nil && (!errors.Is(err, io.EOF) || len(line) == 0) {
				return nil, readError(err)
			}
			break
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return line, nil
		}
	}
}

func readError(err error) error {
	if errors.Is(err, io.EOF) {
		return err
	}
	return apperr.Invalid("body", "broke off").Because(err)
}

// booleans and objects are the columns whose cells are not texts.
var (
	booleans = []string{"email_verified", "mobile_verified", "must_change_password", "locked", "password_set"}
	objects  = []string{"sys_ext_props", "free_ext_props"}
)

type csvReader struct {
	csv    *csv.Reader
	header []string
}

// next makes an object of a record's cells. An empty cell is an absent member.
func (r *csvReader) next() ([]byte, error) {
	if r.header == nil {
		header, err := r.csv.Read()
		if err != nil {
			return nil, csvError(err)
		}
		header[0] = strings.TrimPrefix(header[0], "\ufeff") // spreadsheets write a byte order mark
		r.header = slices.Clone(header)
	}
	cells, err := r.csv.Read()
	if err != nil {
		return nil, csvError(err)
	}
	object := map[string]json.RawMessage{}
	size := 0
	for i, cell := range cells {
		if size += len(cell); size > maxLine {
			return nil, apperr.New(apperr.TooLarge, "a record has more than %d bytes", maxLine)
		}
		name := strings.TrimSpace(r.header[i])
		switch {
		case cell == "":
		case slices.Contains(booleans, name):
			object[name] = boolean(cell)
		case slices.Contains(objects, name):
			object[name] = quoted(cell, json.Valid([]byte(cell)))
		case name == "version":
			object[name] = quoted(cell, json.Valid([]byte(cell)))
		default:
			object[name] = quoted(cell, false)
		}
	}
	return json.Marshal(object)
}

func boolean(cell string) json.RawMessage {
	switch strings.ToLower(cell) {
	case "true", "1":
		return json.RawMessage("true")
	case "false", "0":
		return json.RawMessage("false")
	}
	return quoted(cell, false) // which no boolean member takes: the record fails, and says where
}

func quoted(cell string, raw bool) json.RawMessage {
	if raw {
		return json.RawMessage(cell)
	}
	text, _ := json.Marshal(cell) // texts always marshal
	return text
}

func csvError(err error) error {
	if bad, ok := errors.AsType[*csv.ParseError](err); ok {
		return apperr.Invalid("body", "is not CSV at line %d", bad.Line)
	}
	return readError(err)
}

// Columns of an exported CSV, in order.
var columns = []string{
	"id", "username", "display_name", "email", "mobile", "employee_number", "gender", "locale", "zoneinfo", "status",
	"email_verified", "mobile_verified", "must_change_password", "sys_ext_props", "free_ext_props",
	"locked", "lock_reason", "locked_until", "real_name_status", "real_name", "id_number_masked", "password_set",
	"time_password_changed", "time_last_login", "time_resigned", "version", "time_created", "time_modified",
}

// cells makes a CSV record of a user's JSON form.
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
