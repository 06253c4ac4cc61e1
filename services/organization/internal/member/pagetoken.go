package member

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash/fnv"

	"github.com/idplatform/idplatform/pkg/apperr"
)

func (q query) fingerprint() uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%q %t %q %q", q.NodeID, q.Recursive, q.Role, q.Keyword)
	return h.Sum64()
}

type token struct {
	Query uint64 `json:"q"`
	position
}

func (q query) token(at position) string {
	b, _ := json.Marshal(token{q.fingerprint(), at}) // cannot fail
	return base64.RawURLEncoding.EncodeToString(b)
}

func (q query) position() (position, error) {
	var t token
	b, err := base64.RawURLEncoding.DecodeString(q.After)
	if err == nil {
		err = json.Unmarshal(b, &t)
	}
	if err != nil || t.Path == "" || t.Order == "" {
		return position{}, apperr.Invalid("page_token", "is not a page token of this list")
	}
	if t.Query != q.fingerprint() {
		return position{}, apperr.Invalid("page_token", "was made with another filter or sort")
	}
	return t.position, nil
}
