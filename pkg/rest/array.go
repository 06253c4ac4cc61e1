package rest

import (
	"context"
	"io"

	"github.com/idplatform/idplatform/pkg/docstore"
)

// ArrayOf makes the body of all records of a list: an array without paging. first is their first page as the domain
// returned it, and read returns the page after the one whose Next is after. One page at a time is in memory; each after
// the first has at most that many bytes.
func ArrayOf[W, T any](
	first docstore.Page[T], err error, most int,
	read func(ctx context.Context, after string) (docstore.Page[T], error),
) (Pieces[[]W], error) {
	if err != nil {
		return Pieces[[]W]{}, err
	}
	items, err := jsonOf(first.Docs, nil)
	if err != nil {
		return Pieces[[]W]{}, err
	}
	holds := 0
	for _, item := range items {
		holds += len(item)
	}
	if first.Next != "" {
		holds = max(holds, most)
	}
	return Pieces[[]W]{Holds: holds, Write: func(ctx context.Context, w io.Writer) error {
		separator := "["
		for next := first.Next; ; {
			for _, item := range items {
				if _, err := io.WriteString(w, separator); err != nil {
					return err
				}
				if _, err := w.Write(item); err != nil {
					return err
				}
				separator = ","
			}
			if next == "" {
				break
			}
			page, err := read(ctx, next)
			if err != nil {
				return err
			}
			if items, err = jsonOf(page.Docs, nil); err != nil {
				return err
			}
			next = page.Next
		}
		if separator == "[" {
			_, err := io.WriteString(w, "[]")
			return err
		}
		_, err := io.WriteString(w, "]")
		return err
	}}, nil
}
