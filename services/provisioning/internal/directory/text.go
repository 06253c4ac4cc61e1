package directory

import (
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/mapping"
)

// viewless and memberless are the views of resources that only filters look at.
var (
	viewless   = mapping.UserView{}
	memberless = mapping.GroupView{}
)

// text is an attribute with one value, and the index in which it is looked up and sorted by.
type text[T any] struct {
	index string
	path  string
	of    func(*T) string // in the form of filter.Key
}

type linked interface {
	where() (connectionID string, live bool)
}

// liveText indexes a text of what is not gone.
func liveText[T any, P interface {
	*T
	linked
}](name string, of func(*T) string) docstore.Index[T] {
	return docstore.ByText(name, func(t *T) string {
		connectionID, live := P(t).where()
		if !live {
			return ""
		}
		return within(connectionID, of(t))
	})
}

func liveTexts[T any, P interface {
	*T
	linked
}](texts []text[T]) []docstore.Index[T] {
	indexes := make([]docstore.Index[T], len(texts))
	for i, t := range texts {
		indexes[i] = liveText[T, P](t.index, t.of)
	}
	return indexes
}
