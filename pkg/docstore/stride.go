package docstore

// Stride is how many documents to read at once, so that they have about a MiB together however large they are.
type Stride struct{ n int }

const (
	strideBytes = 1 << 20
	firstStride = 100
	maxStride   = 500
)

// Next returns the Limit of the next query.
func (s *Stride) Next() int {
	if s.n == 0 {
		s.n = firstStride
	}
	return s.n
}

// Took notes the size of the documents that were read.
func (s *Stride) Took(docs, bytes int) {
	if docs > 0 {
		s.n = max(1, min(strideBytes*docs/max(bytes, 1), maxStride))
	}
}
