package directory

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/idplatform/idplatform/services/provisioning/internal/scim"
)

// cursor is the content of a cursor: a place in the order of a query, as the store has it, or after a resource.
type cursor struct {
	Query uint64 `json:"q"`
	Count int    `json:"c"`
	Token string `json:"t,omitempty"`
	Key   string `json:"k,omitempty"`
	ID    string `json:"i,omitempty"`
}

func (q Query) print() uint64 {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%q %q %v", q.FilterText, strings.ToLower(q.SortBy), q.Descending)
	return h.Sum64()
}

func writeCursor(q Query, at cursor) string {
	at.Query, at.Count = q.print(), q.Count
	body, _ := json.Marshal(at) // texts and numbers
	return base64.RawURLEncoding.EncodeToString(body)
}

func readCursor(q Query) (at cursor, err error) {
	if !q.HasCursor || q.Cursor == "" {
		return at, nil
	}
	body, err := base64.RawURLEncoding.DecodeString(q.Cursor)
	if err == nil {
		err = json.Unmarshal(body, &at)
	}
	if err != nil || at.Query != q.print() || at.Token == "" && at.ID == "" {
		return at, scim.Invalid(scim.InvalidCursor, "cursor", "is not one of this list")
	}
	if at.Count != q.Count {
		return at, scim.Invalid(scim.InvalidCount, "count", "must be that of the first page")
	}
	return at, nil
}
