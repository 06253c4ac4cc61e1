package message

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/resource"
)

// The limits of a Bulk request.
const (
	MaxBulkOperations = 1000
	MaxBulkSize       = 1 << 20 // bytes
)

// BulkOperation is an operation of a Bulk request (RFC 7644 §3.7).
type BulkOperation struct {
	Method  string // POST, PUT, PATCH or DELETE
	Path    string // as sent: /Users, /Users/<id> or /Users/bulkId:<bulkId>
	BulkID  string
	Version string // an entity tag, as in If-Match
	Data    any    // nil of DELETE
	// Err is what is wrong with the operation itself. It fails alone.
	Err error
}

// Bulk is a Bulk request.
type Bulk struct {
	Operations   []BulkOperation
	FailOnErrors int // after so many failures the rest is not tried; 0: never
	// Order has the indexes of the operations in the order in which they are to be carried out: as sent, but an
	// operation that refers to the bulkId of a later one comes after that one.
	Order []int
}

// BulkResult is the result of an operation in a Bulk answer.
type BulkResult struct {
	Method   string `json:"method"`
	BulkID   string `json:"bulkId,omitempty"`
	Version  string `json:"version,omitempty"`
	Location string `json:"location,omitempty"`
	Status   string `json:"status"`
	Response any    `json:"response,omitempty"`
}

// BulkResponse is the answer to a Bulk request.
type BulkResponse struct {
	Schemas    []string     `json:"schemas"`
	Operations []BulkResult `json:"Operations"`
}

// NewBulkResponse makes a Bulk answer.
func NewBulkResponse(results []BulkResult) BulkResponse {
	if results == nil {
		results = []BulkResult{}
	}
	return BulkResponse{[]string{BulkResponseURN}, results}
}

// ParseBulk reads a Bulk request. Its errors are of kind TooLarge for too many operations (413, RFC 7644 §3.7.4), or
// have type invalidSyntax. What is wrong with one operation is its Err: among that, a circle of references, 409.
func ParseBulk(body []byte) (Bulk, error) {
	o, err := resource.DecodeObject(body)
	if err != nil {
		return Bulk{}, err
	}
	if !hasURN(member(o, "schemas"), BulkRequestURN) {
		return Bulk{}, scim.Invalid(scim.InvalidSyntax, "schemas", "must be a list with %s", BulkRequestURN)
	}
	sent, is := member(o, "Operations").([]any)
	if !is {
		return Bulk{}, scim.Invalid(scim.InvalidSyntax, "Operations", "must be a list")
	}
	if len(sent) > MaxBulkOperations {
		return Bulk{}, apperr.New(apperr.TooLarge, "a Bulk request has at most %d operations", MaxBulkOperations)
	}
	b := Bulk{Operations: make([]BulkOperation, len(sent))}
	if v := member(o, "failOnErrors"); v != nil {
		n, _ := v.(json.Number)
		failures, err := n.Int64()
		if err != nil || failures < 0 {
			return Bulk{}, scim.Invalid(scim.InvalidSyntax, "failOnErrors", "must be a whole number")
		}
		b.FailOnErrors = int(min(failures, MaxBulkOperations))
	}
	for i, v := range sent {
		b.Operations[i] = bulkOperation(v)
	}
	b.order()
	return b, nil
}

func bulkOperation(v any) BulkOperation {
	o, _ := v.(resource.Object)
	text := func(name string) string {
		s, _ := member(o, name).(string)
		return s
	}
	op := BulkOperation{
		Method: strings.ToUpper(text("method")), Path: text("path"), BulkID: text("bulkId"), Version: text("version"),
		Data: member(o, "data"),
	}
	_, isObject := op.Data.(resource.Object)
	switch {
	case o == nil:
		op.Err = scim.Invalid(scim.InvalidSyntax, "", "the operation must be an object")
	case !slices.Contains([]string{"POST", "PUT", "PATCH", "DELETE"}, op.Method):
		op.Err = scim.Invalid(scim.InvalidSyntax, "method", "must be POST, PUT, PATCH or DELETE")
	case op.Path == "":
		op.Err = scim.Invalid(scim.InvalidSyntax, "path", "is required")
	case op.Method == "POST" && op.BulkID == "":
		op.Err = scim.Invalid(scim.InvalidSyntax, "bulkId", "is required of POST")
	case op.Method == "DELETE":
		op.Data = nil
	case !isObject:
		op.Err = scim.Invalid(scim.InvalidSyntax, "data", "must be an object")
	}
	return op
}

const reference = "bulkId:"

// references calls see with each bulkId that an operation refers to: in its path, and as a text in its data.
func (op *BulkOperation) references(see func(bulkID string)) {
	for part := range strings.SplitSeq(op.Path, "/") {
		if id, is := cutReference(part); is {
			see(id)
		}
	}
	texts(op.Data, func(s string) string {
		if id, is := cutReference(s); is {
			see(id)
		}
		return s
	})
}

func cutReference(s string) (bulkID string, is bool) {
	if len(s) > len(reference) && strings.EqualFold(s[:len(reference)], reference) {
		return s[len(reference):], true
	}
	return "", false
}

// texts replaces each text within v, in place where it can, and returns the new v.
func texts(v any, by func(string) string) any {
	switch v := v.(type) {
	case string:
		return by(v)
	case []any:
		for i := range v {
			v[i] = texts(v[i], by)
		}
	case resource.Object:
		for name := range v {
			v[name] = texts(v[name], by)
		}
	}
	return v
}

// Resolve replaces the references of an operation by the ids of the resources that were made. A bulkId that has none
// (because that operation failed, or there is none) is 400 invalidValue.
func (op *BulkOperation) Resolve(id func(bulkID string) (string, bool)) error {
	var missing error
	resolve := func(s string) string {
		bulkID, is := cutReference(s)
		if !is {
			return s
		}
		if made, has := id(bulkID); has {
			return made
		}
		missing = scim.Invalid(scim.InvalidValue, "bulkId", "refers to an operation that made no resource")
		return s
	}
	parts := strings.Split(op.Path, "/")
	for i := range parts {
		parts[i] = resolve(parts[i])
	}
	op.Path, op.Data = strings.Join(parts, "/"), texts(op.Data, resolve)
	return missing
}

// order sets Order, and the Err of operations that are part of a circle of references.
func (b *Bulk) order() {
	makers := map[string]int{}
	for i := range b.Operations {
		op := &b.Operations[i]
		if op.Method != "POST" || op.BulkID == "" {
			continue
		}
		if _, twice := makers[op.BulkID]; twice {
			op.Err = scim.Invalid(scim.InvalidSyntax, "bulkId", "is that of another operation too")
			continue
		}
		makers[op.BulkID] = i
	}
	w := walk{bulk: b, makers: makers, state: make([]int, len(b.Operations))}
	for i := range b.Operations {
		w.visit(i)
	}
}

// walk visits operations in depth, those that an operation refers to before it.
type walk struct {
	bulk   *Bulk
	makers map[string]int
	state  []int
	path   []int // the operations that are being visited
}

const (
	visiting = 1
	visited  = 2
)

func (w *walk) visit(i int) {
	switch w.state[i] {
	case visited:
		return
	case visiting:
		for _, of := range w.path[slices.Index(w.path, i):] {
			if op := &w.bulk.Operations[of]; op.Err == nil {
				op.Err = apperr.New(apperr.InvalidState, "the operation is part of a circle of bulkIds")
			}
		}
		return
	}
	w.state[i] = visiting
	w.path = append(w.path, i)
	w.bulk.Operations[i].references(func(bulkID string) {
		if maker, is := w.makers[bulkID]; is {
			w.visit(maker)
		}
	})
	w.path = w.path[:len(w.path)-1]
	w.state[i] = visited
	w.bulk.Order = append(w.bulk.Order, i)
}
