package idp

import "iter"

const largestPage = 200

// pages walks a list by its page tokens: nothing is skipped or repeated while others write.
func pages[T any](first string, fetch func(token string) ([]T, *string, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for token := first; ; {
			items, next, err := fetch(token)
			if err != nil {
				yield(*new(T), err)
				return
			}
			for _, item := range items {
				if !yield(item, nil) {
					return
				}
			}
			if next == nil || *next == "" {
				return
			}
			token = *next
		}
	}
}

// wholePages sets what a walk wants of its pages, if the caller does not say: they are large, and nobody counts.
func wholePages(number, size *int64, count **bool) {
	*number = 0 // the token says where the page begins
	if *size == 0 {
		*size = largestPage
	}
	if *count == nil {
		*count = new(bool)
	}
}
