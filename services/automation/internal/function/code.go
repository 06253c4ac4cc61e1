package function

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/automation/internal/sandbox"
)

// code is the code of one revision. It is a document of its own, so that lists and events do not carry it. Its id is
// codeID.
type code struct {
	docstore.Meta
	FunctionID string `json:"function_id"`
	Content    []byte `json:"content"` // base64 in JSON
}

const byFunction = "function_id"

var codes = docstore.Define(docstore.Schema[code]{
	Name: "function_codes", Noun: "revision", NoIfMatch: true,
	Indexes: []docstore.Index[code]{
		docstore.ByText(byFunction, func(c *code) string { return c.FunctionID }),
	},
})

func codeID(function string, revision int64) string {
	return function + "." + strconv.FormatInt(revision, 10)
}

// Detail is a function with its code, as the API returns it.
type Detail struct {
	Doc
	runtime sandbox.Runtime
	content []byte
	none    bool // there is no code yet
}

// Stored returns the record's JSON with the member source or module_base64 added at its end, and its ETag.
func (d Detail) Stored() (body []byte, tag string, err error) {
	record, err := d.JSON()
	if err != nil || d.none {
		return record, d.Tag(), err
	}
	member := []byte(`,"source":`)
	var content any = string(d.content)
	if d.runtime == sandbox.WebAssembly {
		member, content = []byte(`,"module_base64":`), d.content
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(content); err != nil {
		return nil, "", err
	}
	body = append(bytes.TrimSuffix(bytes.Clone(record), []byte("}")), member...)
	return append(append(body, bytes.TrimSpace(text.Bytes())...), '}'), d.Tag(), nil
}

// detail reads the code of a function.
func detail(ctx context.Context, r docstore.Reader, doc Doc) (Detail, error) {
	f, err := doc.Value()
	if err != nil || f.Revision == 0 {
		return Detail{Doc: doc, none: true}, err
	}
	content, err := content(ctx, r, f.ID, f.Revision)
	return Detail{Doc: doc, runtime: f.Runtime, content: content}, err
}

func content(ctx context.Context, r docstore.Reader, function string, revision int64) ([]byte, error) {
	found, err := codes.Find(ctx, r, codeID(function, revision))
	if err != nil {
		return nil, err
	}
	c, err := found.Value()
	if err != nil {
		return nil, err
	}
	return c.Content, nil
}

// Draft is what a client sends: a profile, and the code in the member of its runtime. Absent code stays as it is.
type Draft struct {
	Profile
	Source *string `json:"source,omitempty"`
	Module []byte  `json:"module_base64,omitempty"`
}

// content returns the code that was sent, nil if none was.
func (d *Draft) content(faults *apperr.Faults) []byte {
	if d.Source != nil {
		faults.Check(d.Runtime != sandbox.WebAssembly, "source", "is only for runtime javascript")
		faults.Check(*d.Source != "", "source", "must not be empty")
		faults.Check(len(*d.Source) <= maxSource, "source", "must have at most %d KiB", maxSource>>10)
		faults.Check(utf8.ValidString(*d.Source), "source", "must be UTF-8")
		return []byte(*d.Source)
	}
	if d.Module != nil {
		faults.Check(d.Runtime != sandbox.JavaScript, "module_base64", "is only for runtime wasm")
		faults.Check(len(d.Module) <= maxModule, "module_base64", "must have at most %d MiB", maxModule>>20)
		return d.Module
	}
	return nil
}

// codeMember is the member that holds the code of a runtime.
func codeMember(r sandbox.Runtime) string {
	if r == sandbox.WebAssembly {
		return "module_base64"
	}
	return "source"
}

func hash(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// compiles has a worker compile code, and reports what is wrong with it as a fault of its member. The error is
// apperr.Unavailable if there is no worker in time.
func (s *Functions) compiles(ctx context.Context, faults *apperr.Faults, p *Profile, content []byte) error {
	fault, err := s.Pool.Check(ctx, sandbox.Code{
		Runtime: p.Runtime, Entry: p.Entry, Hash: hash(content),
		Load: func() ([]byte, error) { return content, nil },
	}, p.limits().Memory)
	if err != nil || fault == nil {
		return err
	}
	message := fault.Message
	if fault.Line > 0 {
		message = fmt.Sprintf("line %d, column %d: %s", fault.Line, fault.Column, message)
	}
	faults.Add(codeMember(p.Runtime), "%s", message)
	return nil
}

// setCode makes content the code of a new revision of f, and deletes the oldest revisions if there are too many.
func setCode(ctx context.Context, tx *docstore.Tx, f *Function, content []byte, actor string) error {
	f.Revision = 1
	if len(f.Revisions) > 0 {
		f.Revision = f.Revisions[0].Revision + 1
	}
	if _, err := codes.Insert(ctx, tx, &code{
		Meta: docstore.Meta{ID: codeID(f.ID, f.Revision)}, FunctionID: f.ID, Content: content,
	}); err != nil {
		return err
	}
	f.Revisions = append([]Revision{{
		Revision: f.Revision, Runtime: f.Runtime, Entry: f.Entry, Bytes: int64(len(content)), SHA256: hash(content),
		Actor: actor, TimeCreated: tx.Now,
	}}, f.Revisions...)
	keep, size := 0, int64(0)
	for _, r := range f.Revisions {
		if size += r.Bytes; keep == MaxRevisions || keep > 0 && size > maxRevisionBytes {
			break
		}
		keep++
	}
	var old []string
	for _, r := range f.Revisions[keep:] {
		old = append(old, codeID(f.ID, r.Revision))
	}
	f.Revisions = f.Revisions[:keep]
	if len(old) == 0 {
		return nil
	}
	return codes.DeleteWhere(ctx, tx, docstore.ID(old...), nil)
}

// current describes the current revision; nil while there is no code.
func (f *Function) current() *Revision { return f.revision(f.Revision) }

func (f *Function) revision(n int64) *Revision {
	for i := range f.Revisions {
		if f.Revisions[i].Revision == n {
			return &f.Revisions[i]
		}
	}
	return nil
}
