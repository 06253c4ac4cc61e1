package member

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// list is all that tells a list of users from others.
func (q query) list() []string {
	return []string{"members", q.NodeID, strconv.FormatBool(q.Recursive), q.Role, q.Keyword}
}

func (q query) token(ctx context.Context, at position) string {
	b, _ := json.Marshal(at) // cannot fail
	return docstore.PageToken(ctx, string(b), q.list()...)
}

func (q query) position(ctx context.Context) (position, error) {
	after, err := docstore.ReadPageToken(ctx, q.After, q.list()...)
	if err != nil {
		return position{}, err
	}
	var at position
	if json.Unmarshal([]byte(after), &at) != nil || at.Path == "" || at.Order == "" {
		return position{}, apperr.Invalid("page_token", "is not a page token of this list")
	}
	return at, nil
}
