package docstore

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"hash/fnv"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/request"
)

// listToken is the content of a page token of a list that is not one of a Collection.
type listToken struct {
	Query uint64 `json:"q"` // fingerprint of the list: tenant, name, filter and sort
	After []byte `json:"a"`
}

// PageToken makes the page token of a list that is not one of a Collection: of all that tells it from other lists, such
// as its name, filter and sort, and of the place in it. It needs no signature: a forged one only points to another
// place in a list of the caller's own tenant.
func PageToken(ctx context.Context, after string, list ...string) string {
	b, _ := json.Marshal(listToken{fingerprintOf(ctx, list), []byte(after)}) // a number and bytes always marshal
	return base64.RawURLEncoding.EncodeToString(b)
}

// ReadPageToken returns the place in a PageToken of the same list. The error is apperr.InvalidParameters.
func ReadPageToken(ctx context.Context, text string, list ...string) (after string, err error) {
	var t listToken
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(b, &t)
	}
	if err != nil || len(t.After) == 0 {
		return "", apperr.Invalid("page_token", "is not a page token of this list")
	}
	if t.Query != fingerprintOf(ctx, list) {
		return "", apperr.Invalid("page_token", "was made for another list, filter or sort")
	}
	return string(t.After), nil
}

func fingerprintOf(ctx context.Context, list []string) uint64 {
	h := fnv.New64a()
	_ = json.NewEncoder(h).Encode(append([]string{request.Tenant(ctx)}, list...))
	return h.Sum64()
}
