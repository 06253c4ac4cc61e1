package member

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// list is all that tells a list of users from others.
func (q query) list() []string {
	return []string{"members", q.NodeID, strconv.FormatBool(q.Recursive), q.Role, q.Keyword}
}

// The path in a token begins at the listing's node: the list goes on if that is moved meanwhile.
func (l *listing) token(ctx context.Context, at position) string {
	at.Path = strings.TrimPrefix(at.Path, l.node.PathText())
	b, _ := json.Marshal(at) // cannot fail
	return docstore.PageToken(ctx, string(b), l.list()...)
}

func (l *listing) position(ctx context.Context) (position, error) {
	after, err := docstore.ReadPageToken(ctx, l.query.After, l.list()...)
	if err != nil {
		return position{}, err
	}
	var at position
	if json.Unmarshal([]byte(after), &at) != nil || at.Order == "" {
		return position{}, apperr.Invalid("page_token", "is not a page token of this list")
	}
	at.Path = l.node.PathText() + at.Path
	return at, nil
}
