package httpapi

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"sort"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/rest"
)

// answerList is a list that the engine has computed as a whole. Its entries are in the order of their keys.
type answerList[T any] struct {
	entries []T
	key     func(T) string
	append  func(b []byte, entry T) []byte // appends the JSON of an entry
	query   []string                       // what the list was asked with
}

// pageOf returns the requested page of a list. apperr.InvalidParameters at page_sort or page_token.
func pageOf[W, T any](ctx context.Context, p rest.Paging, l answerList[T]) (rest.List[W], error) {
	list := rest.List[W]{Total: -1, Num: p.PageNum, Size: p.PageSize}
	if p.PageSort != "" {
		return list, apperr.Invalid("page_sort", "must not be given: this list has only one order")
	}
	from := min((p.PageNum-1)*p.PageSize, len(l.entries))
	if p.PageToken != "" {
		after, fault := readToken(ctx, p.PageToken, l.query)
		if fault != "" {
			return list, apperr.Invalid("page_token", "%s", fault)
		}
		from = sort.Search(len(l.entries), func(i int) bool { return l.key(l.entries[i]) > after })
	}
	to := min(from+p.PageSize, len(l.entries))
	list.Write = func(b []byte) []byte {
		for i, entry := range l.entries[from:to] {
			if i > 0 {
				b = append(b, ',')
			}
			b = l.append(b, entry)
		}
		return b
	}
	if p.Count.Or(true) {
		list.Total = int64(len(l.entries))
	}
	if to < len(l.entries) {
		list.Next = writeToken(ctx, l.key(l.entries[to-1]), l.query)
	}
	return list, nil
}

// pageToken is the content of a page token. It needs no signature: a forged one only points to another place in a list
// of the caller's own tenant.
type pageToken struct {
	Query uint64 `json:"q"` // fingerprint of the list
	After []byte `json:"a"` // key of the last entry
}

func writeToken(ctx context.Context, after string, query []string) string {
	text, _ := json.Marshal(pageToken{fingerprint(ctx, query), []byte(after)}) // numbers and bytes always marshal
	return base64.RawURLEncoding.EncodeToString(text)
}

// readToken returns the key after which a page begins, or what is wrong with the token.
func readToken(ctx context.Context, text string, query []string) (after, fault string) {
	var token pageToken
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(raw, &token)
	}
	switch {
	case err != nil || len(token.After) == 0:
		return "", "is not a page token of this list"
	case token.Query != fingerprint(ctx, query):
		return "", "was made for another list or filter"
	}
	return string(token.After), ""
}

// fingerprint tells lists of different tenants and queries apart.
func fingerprint(ctx context.Context, query []string) uint64 {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%q %q", request.Tenant(ctx), query)
	return h.Sum64()
}
