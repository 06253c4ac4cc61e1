package proxy

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
)

const (
	// RunHeader says of how many records a run of deletes is, on its first call.
	RunHeader = "X-Console-Run"

	// maxDeletes is how many records may be deleted without a fresh sign-in.
	maxDeletes = 100
	// maxBody bounds what is read of a body: services refuse longer ones.
	maxBody = 1 << 20
)

// freshText says which operations show a new secret or delete many records that the request does not name, and when:
// the x-fresh of the OpenAPI documents. A test compares them; `make generate` writes it.
//
//go:embed fresh.json
var freshText []byte

const (
	always  = "always"
	ifBody  = "body."  // and the member of the body that must be true
	ifQuery = "query." // and the parameter of the query that must be true
)

// conditions finds the condition of a request's operation.
var conditions = sync.OnceValue(func() *http.ServeMux {
	var operations map[string]string
	if err := json.Unmarshal(freshText, &operations); err != nil {
		panic("fresh.json: " + err.Error()) // a test would have found it
	}
	mux := http.NewServeMux()
	for operation, fresh := range operations {
		method, path, _ := strings.Cut(operation, " ")
		mux.Handle(method+" "+Prefix+path, condition(fresh))
	}
	return mux
})

// condition says when an operation wants a fresh sign-in. It is an http.Handler so that a ServeMux finds it.
type condition string

// ServeHTTP implements http.Handler. It is never called.
func (condition) ServeHTTP(http.ResponseWriter, *http.Request) {}

// conditionOf returns the condition of a request's operation, "" if it has none. For a path that leads to one of
// the operations only after a redirect, such as one with two slashes, it is always.
func conditionOf(r *http.Request) condition {
	handler, pattern := conditions().Handler(r)
	if c, ok := handler.(condition); ok {
		return c
	}
	if pattern != "" {
		return always
	}
	return ""
}

// WantsFresh reports whether a call wants a sign-in of the last minutes: it makes a secret, or deletes many records.
// It may read the body, and puts it back.
func WantsFresh(r *http.Request) bool {
	run := r.Header.Get(RunHeader)
	r.Header.Del(RunHeader)
	switch {
	case isDryRun(r):
		return false
	case conditionOf(r).holds(r):
		return true
	case r.Method != http.MethodDelete:
		return false
	}
	records, err := strconv.Atoi(run)
	return run != "" && (err != nil || records > maxDeletes) || hasItems(peek(r), maxDeletes+1)
}

// holds reports whether a request meets the condition. It may read the body, and puts it back.
func (c condition) holds(r *http.Request) bool {
	if member, ok := strings.CutPrefix(string(c), ifBody); ok {
		return isSet(peek(r), member)
	}
	if parameter, ok := strings.CutPrefix(string(c), ifQuery); ok {
		return slices.ContainsFunc(r.URL.Query()[parameter], func(value string) bool {
			return value != "" && value != "false" && value != "0"
		})
	}
	return c != ""
}

// isDryRun is strict: what a service takes for a dry run may have another form, but never the reverse.
func isDryRun(r *http.Request) bool {
	values := r.URL.Query()["dry_run"]
	return len(values) == 1 && (values[0] == "true" || values[0] == "1")
}

// peek returns the body's first maxBody bytes, which are still there for the next reader.
func peek(r *http.Request) []byte {
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	head, _ := io.ReadAll(io.LimitReader(r.Body, maxBody)) // the next reader meets the error again
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head), r.Body), r.Body}
	return head
}

// hasItems reports whether the arrays in a JSON text have n items, all together. What is no JSON, services refuse.
func hasItems(text []byte, n int) bool {
	d := json.NewDecoder(bytes.NewReader(text))
	var inArray []bool // for each open array and object
	for n > 0 {
		token, err := d.Token()
		if err != nil {
			return false
		}
		delim, _ := token.(json.Delim)
		if delim == ']' || delim == '}' {
			inArray = inArray[:len(inArray)-1]
			continue
		}
		if len(inArray) > 0 && inArray[len(inArray)-1] {
			n--
		}
		if delim != 0 {
			inArray = append(inArray, delim == '[')
		}
	}
	return true
}

// isSet reports whether a body has a member that is not false. Of several members with the name, any may count,
// whatever the case of its letters: encoding/json takes each for the other.
func isSet(text []byte, member string) bool {
	d := json.NewDecoder(bytes.NewReader(text))
	for {
		token, err := d.Token()
		if err != nil {
			return false
		}
		if name, ok := token.(string); ok && strings.EqualFold(name, member) {
			if value, err := d.Token(); err != nil || value != false {
				return true
			}
		}
	}
}
