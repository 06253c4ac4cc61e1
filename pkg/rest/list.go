package rest

import (
	"context"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/idplatform/idplatform/pkg/docstore"
)

// List is the body of a page of a list.
type List[W any] struct {
	Items [][]byte
	Write func(b []byte) []byte // instead of Items: appends them, with commas between
	Total int64                 // −1 means not counted
	More  bool                  // there are more than Total
	Num   int
	Size  int
	Next  string

	later []string // ids of the records after Items, which are read again when it is their turn
	again func(ctx context.Context, ids []string) ([][]byte, error)
}

// Of a page that is larger than listChunk, only so much is held while the client reads it. The rest is read again, a
// few records at a time: a record that is deleted meanwhile is left out, a changed one has its new state.
const (
	listChunk = 512 << 10
	listAgain = 8
)

// ListOf makes the body of a page that the domain returned for p.
func ListOf[W, T any](p docstore.Paging, page docstore.Page[T], err error) (List[W], error) {
	if err != nil {
		return List[W]{}, err
	}
	list := List[W]{Items: make([][]byte, 0, len(page.Docs)), Total: page.Total, More: page.More, Num: p.Num,
		Size: p.Size, Next: page.Next}
	size, again := 0, page.Again()
	for i := range page.Docs {
		if size > listChunk && again != nil {
			list.later = append(list.later, page.Docs[i].ID)
			continue
		}
		item, err := page.Docs[i].JSON()
		if err != nil {
			return List[W]{}, err
		}
		list.Items = append(list.Items, item)
		size += len(item)
	}
	if len(list.later) > 0 {
		list.again = func(ctx context.Context, ids []string) ([][]byte, error) { return jsonOf(again(ctx, ids)) }
	}
	return list, nil
}

func jsonOf[T any](docs []docstore.Doc[T], err error) ([][]byte, error) {
	all := make([][]byte, len(docs))
	for i := range docs {
		if err != nil {
			break
		}
		all[i], err = docs[i].JSON()
	}
	return all, err
}

func (l List[W]) answer() (answer, error) {
	size := 128 + len(l.Next)
	for _, item := range l.Items {
		size += len(item) + 1
	}
	if size > listChunk {
		return answer{Status: http.StatusOK, ContentType: jsonType, stream: inPieces(l.write),
			holds: max(size, 2*listChunk)}, nil
	}
	buffer := buffers.Get().(*[]byte)
	b := append(slices.Grow(*buffer, size), `{"items":[`...)
	if l.Write != nil {
		b = l.Write(b)
	}
	for i, item := range l.Items {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, item...)
	}
	return answer{Status: http.StatusOK, ContentType: jsonType, Body: l.appendEnd(b), buffer: buffer}, nil
}

// appendEnd appends what follows the items.
func (l List[W]) appendEnd(b []byte) []byte {
	b = append(b, ']')
	if l.Total >= 0 {
		b = strconv.AppendInt(append(b, `,"total":`...), l.Total, 10)
		if l.More {
			b = append(b, `,"total_relation":"gte"`...)
		}
	}
	b = strconv.AppendInt(append(b, `,"page_num":`...), int64(l.Num), 10)
	b = strconv.AppendInt(append(b, `,"page_size":`...), int64(l.Size), 10)
	if l.Next != "" {
		b = append(append(append(b, `,"next_page_token":"`...), l.Next...), '"') // base64url needs no JSON escapes
	}
	return append(b, '}')
}

// write writes the items and forgets each.
func (l List[W]) write(ctx context.Context, w io.Writer) error {
	separator := `{"items":[`
	put := func(items [][]byte) error {
		for i, item := range items {
			if _, err := io.WriteString(w, separator); err != nil {
				return err
			}
			if _, err := w.Write(item); err != nil {
				return err
			}
			separator, items[i] = ",", nil
		}
		return nil
	}
	err := put(l.Items)
	for ids := range slices.Chunk(l.later, listAgain) {
		if err != nil {
			return err
		}
		var items [][]byte
		if items, err = l.readAgain(ctx, ids); err == nil {
			err = put(items)
		}
	}
	if err == nil {
		_, err = w.Write(l.appendEnd(nil))
	}
	return err
}

func (l List[W]) readAgain(ctx context.Context, ids []string) ([][]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, defaultTimeout)
	defer cancel()
	return l.again(ctx, ids)
}

func (List[W]) written() {}

type listSchema[W any] struct {
	Items    []W    `json:"items" doc:"The records of the page"`
	Total    int64  `json:"total,omitempty" doc:"How many records the filter selects; left out with count=false" example:"1"`
	Relation string `json:"total_relation,omitempty" enum:"gte" doc:"gte if there are more records than total; otherwise left out"`
	PageNum  int    `json:"page_num" doc:"As asked, from 1; 1 with a page token" example:"1"`
	PageSize int    `json:"page_size" doc:"As asked: the most records of a page" example:"20"`
	Next     string `json:"next_page_token,omitempty" doc:"The page_token of the next page; left out on the last page"`
}

// Schema returns the schema of the list with items of W. It has the name of the items', with List.
func (List[W]) Schema(r huma.Registry) *huma.Schema {
	ref := r.Schema(reflect.TypeFor[W](), true, "").Ref + "List"
	if name := strings.TrimPrefix(ref, schemaPath); r.Map()[name] == nil {
		r.Map()[name] = huma.SchemaFromType(r, reflect.TypeFor[listSchema[W]]())
	}
	return &huma.Schema{Ref: ref}
}

// Pieces is a JSON body with the schema of W that is written while it is read. An error after its first byte breaks the
// connection, so that no client takes a part for the whole.
type Pieces[W any] struct {
	Write func(ctx context.Context, w io.Writer) error
	Holds int // the most bytes that Write has in memory at a time
}

func (p Pieces[W]) answer() (answer, error) {
	return answer{Status: http.StatusOK, ContentType: jsonType, stream: inPieces(p.Write), holds: p.Holds}, nil
}

func (Pieces[W]) written() {}

// Schema returns the schema of W.
func (Pieces[W]) Schema(r huma.Registry) *huma.Schema {
	return r.Schema(reflect.TypeFor[W](), true, "")
}

// inPiecesType is implemented by the bodies that may be written while they are read. They cannot be kept for an
// Idempotency-Key.
var inPiecesType = reflect.TypeFor[interface{ written() }]()
