package directory

import (
	"context"
	"fmt"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/filter"
)

// server turns the part of a filter that indexes serve into a filter of the store.
type server[T any] struct {
	*lister[T]
	ctx          context.Context
	store        *docstore.Store
	connectionID string
	byID         bool // it selects by ids, whoever they belong to
}

func (v *server[T]) serve(n filter.Node) (f docstore.Filter, ok bool, err error) {
	parts := func(nodes []filter.Node, join func(...docstore.Filter) docstore.Filter) (docstore.Filter, bool, error) {
		var all []docstore.Filter
		for _, n := range nodes {
			f, ok, err := v.serve(n)
			if !ok || err != nil {
				return f, false, err
			}
			all = append(all, f)
		}
		return join(all...), true, nil
	}
	switch n := n.(type) {
	case filter.And:
		return parts(n, docstore.And)
	case filter.Or:
		return parts(n, docstore.Or)
	case *filter.Compare:
		return v.compare(n)
	}
	return f, false, nil
}

func (v *server[T]) compare(c *filter.Compare) (docstore.Filter, bool, error) {
	key := c.Key()
	switch value := c.Value.(type) {
	case bool:
		key = fmt.Sprint(value)
	case time.Time:
		key = MomentText(value)
	}
	path := c.Path.String()
	if path == v.related {
		if c.Op != filter.Equal {
			return docstore.Filter{}, false, nil
		}
		v.byID = true
		ids, err := v.relatedTo(v.ctx, v.store, v.connectionID, key)
		if apperr.IsNotFound(err) {
			ids, err = nil, nil
		}
		if len(ids) == 0 {
			return docstore.ID("0"), true, err // which nothing has
		}
		return docstore.ID(ids...), true, err
	}
	if t := v.text(path); t != nil {
		return v.compareText(t.index, c.Op, key), true, nil
	}
	text := within(v.connectionID, path+"="+key)
	switch c.Op {
	case filter.Equal:
		return docstore.Eq(byValue, docstore.Text(text)), true, nil
	case filter.StartsWith:
		return docstore.Prefix(byValue, text), true, nil
	}
	return docstore.Filter{}, false, nil
}

func (v *server[T]) compareText(index string, op filter.Op, key string) docstore.Filter {
	text := func(s string) docstore.Value { return docstore.Text(s) }
	at, first, end := v.connectionID+"/"+key, text(v.connectionID+"/"), text(v.connectionID+"0") // 0 follows /
	switch op {
	case filter.StartsWith:
		return docstore.Prefix(index, at)
	case filter.Greater:
		return docstore.Range(index, text(at+"\x00"), end)
	case filter.GreaterOrEqual:
		return docstore.Range(index, text(at), end)
	case filter.Less:
		return docstore.Range(index, first, text(at))
	case filter.LessOrEqual:
		return docstore.Range(index, first, text(at+"\x00"))
	}
	return docstore.Eq(index, text(at))
}
