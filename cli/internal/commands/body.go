package commands

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"os"
	"path/filepath"
	"strings"

	"github.com/idplatform/idplatform/cli/internal/failure"
	"github.com/idplatform/idplatform/cli/internal/operations"
	"github.com/idplatform/idplatform/cli/internal/output"
	"github.com/idplatform/idplatform/cli/internal/session"
	idp "github.com/idplatform/idplatform/sdk/go"
)

// members are the members of a body. Values are what encoding/json writes; those that came as JSON are raw, so that
// large integers survive.
type members map[string]any

// typed makes the value of a flag.
func typed(p operations.Parameter, text string) (any, error) {
	if p.Type == "string" {
		return text, nil
	}
	if file, ok := strings.CutPrefix(text, "@"); ok && p.Type != "" {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		text = string(content)
	}
	if json.Valid([]byte(text)) {
		return json.RawMessage(text), nil
	}
	if p.Type == "" {
		return text, nil
	}
	return nil, fmt.Errorf("must be JSON, of type %s", p.Type)
}

// otherwise sets a member that is not there.
func (m members) otherwise(name string, value any) {
	if m[name] == nil {
		m[name] = value
	}
}

// text is a member that is a string; "" if it is not.
func (m members) text(name string) string {
	text, _ := m[name].(string)
	if raw, isRaw := m[name].(json.RawMessage); isRaw && json.Unmarshal(raw, &text) != nil {
		return ""
	}
	return text
}

// set sets the member of a path: a.b=value. With remove, a.b=null takes the member away.
func (m members) set(known []operations.Parameter, field string, remove bool) error {
	path, text, ok := strings.Cut(field, "=")
	if !ok || path == "" {
		return failure.Usagef("-F %s: it must be member=value", field)
	}
	value, err := fieldValue(known, path, text)
	if err != nil {
		return err
	}
	names := strings.Split(path, ".")
	within := m
	for _, name := range names[:len(names)-1] {
		inner, isObject := within[name].(members)
		if raw, isRaw := within[name].(json.RawMessage); isRaw {
			inner, isObject = rawMembers(raw)
		}
		if !isObject {
			inner = members{}
		}
		within[name] = inner
		within = inner
	}
	last := names[len(names)-1]
	within[last] = value
	if remove && text == "null" {
		delete(within, last)
	}
	return nil
}

// keep reads the record that the operation replaces, so that members which are not given stay. --data is the whole of
// it, so nothing is kept then. A record that is not there yet has nothing to keep.
func (p *parameters) keep(ctx context.Context, s *session.Session, path []string) error {
	if p.data != "" {
		return nil
	}
	record, err := s.Record(ctx, &session.Call{Operation: p.operation, Path: path})
	if idp.CodeOf(err) == idp.CodeNotFound {
		return nil
	}
	if err != nil {
		return err
	}
	kept := output.Object{}
	for _, m := range p.operation.Members {
		if value := record.Get(m.Name); value != nil {
			kept = append(kept, output.Member{Name: m.Name, Value: value})
		}
	}
	if s.IfVersion == "" {
		s.IfVersion = record.Text("version")
	}
	p.kept, err = json.Marshal(kept)
	return err
}

func fieldValue(known []operations.Parameter, path, text string) (any, error) {
	if file, ok := strings.CutPrefix(text, "@"); ok {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, failure.Usagef("-F %s: %w", path, err)
		}
		return string(content), nil
	}
	for _, p := range known {
		if p.Name == path && p.Type == "string" && text != "null" {
			return text, nil
		}
	}
	if json.Valid([]byte(text)) {
		return json.RawMessage(text), nil
	}
	return text, nil
}

func rawMembers(raw json.RawMessage) (members, bool) {
	var inner map[string]json.RawMessage
	if json.Unmarshal(raw, &inner) != nil || inner == nil {
		return nil, false
	}
	out := members{}
	for name, value := range inner {
		out[name] = value
	}
	return out, true
}

// setBody sets the body: --data, then -F, then the flags of members.
func (p *parameters) setBody(s *session.Session, call *session.Call, flags members) error {
	if len(p.operation.Body) == 0 {
		return nil
	}
	if !p.operation.TakesJSON() && len(p.operation.Members) == 0 {
		return p.setUpload(s, call)
	}
	body := members{}
	if p.kept != nil {
		body, _ = rawMembers(p.kept)
	}
	if p.data != "" {
		text, err := read(s, p.data)
		if err != nil {
			return err
		}
		var isObject bool
		if body, isObject = rawMembers(text); !isObject {
			if !json.Valid(text) {
				return failure.Usagef("--data is not JSON")
			}
			if len(flags) > 0 || len(p.fields) > 0 {
				return failure.Usagef("--data is not an object, so no members can be added")
			}
			call.Body = text
			return nil
		}
	}
	for _, field := range p.fields {
		if err := body.set(p.operation.Members, field, p.kept != nil); err != nil {
			return err
		}
	}
	for name, value := range flags {
		body[name] = value
	}
	return p.write(call, body)
}

// add changes the members of the body.
func (p *parameters) add(call *session.Call, change func(members) error) error {
	body, ok := rawMembers(call.Body)
	if !ok {
		return failure.Usagef("--data must be an object")
	}
	if err := change(body); err != nil {
		return err
	}
	return p.write(call, body)
}

func (p *parameters) write(call *session.Call, body members) error {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(body); err != nil {
		return failure.Usagef("the body: %w", err)
	}
	call.Body = bytes.TrimSpace(out.Bytes())
	return nil
}

func read(s *session.Session, data string) ([]byte, error) {
	file, isFile := strings.CutPrefix(data, "@")
	switch {
	case data == "-" || file == "-" && isFile:
		return io.ReadAll(s.In)
	case isFile:
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, failure.Usagef("--data: %w", err)
		}
		return text, nil
	}
	return []byte(data), nil
}

// setUpload sets a body that is a file, which is sent as it is read.
func (p *parameters) setUpload(s *session.Session, call *session.Call) error {
	file, isFile := strings.CutPrefix(p.data, "@")
	call.Type = p.contentType
	switch {
	case p.data == "":
		return failure.Usagef("--data is needed: @file, or - for standard input")
	case p.data == "-" || file == "-" && isFile:
		call.Upload = s.In
	case isFile:
		opened, err := os.Open(file) // it stays open until the program ends
		if err != nil {
			return failure.Usagef("--data: %w", err)
		}
		call.Upload = opened
		if call.Type == "" {
			call.Type = typeOf(file)
		}
	default:
		call.Upload = strings.NewReader(p.data)
	}
	if call.Type == "" {
		call.Type = p.operation.Body[0]
	}
	return nil
}

// typeOf is the content type of a file by its name; "" if it does not tell.
func typeOf(file string) string {
	switch extension := strings.ToLower(filepath.Ext(file)); extension {
	case ".jsonl", ".ndjson":
		return "application/x-ndjson"
	case ".csv":
		return "text/csv"
	default:
		return mime.TypeByExtension(extension)
	}
}
