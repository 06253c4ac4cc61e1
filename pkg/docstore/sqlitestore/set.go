package sqlitestore

import (
	"encoding/binary"
	"math/bits"
)

// set is a set of row ids, as bits. The ids of one collection are close together, so that a set of a million rows takes
// about 150 KiB.
type set struct {
	chunks map[int64]*setChunk // by the id without its lowest chunkBits
	size   int64
	last   *setChunk // the chunk that was used last
	at     int64     // its key in chunks
}

// A chunk has a page for every range of 512 ids that has members. Ids that follow each other are mostly in one chunk.
const chunkBits = 15

type (
	setChunk [1 << (chunkBits - 9)]*setPage
	setPage  [512 / 64]uint64
)

func newSet() *set { return &set{chunks: map[int64]*setChunk{}} }

// chunk returns the chunk of a row id, nil if there is none.
func (s *set) chunk(rid int64) *setChunk {
	if at := rid >> chunkBits; s.last == nil || s.at != at {
		s.last, s.at = s.chunks[at], at
	}
	return s.last
}

// place returns the position of a row id in its chunk.
func place(rid int64) (page, word int64, bit uint64) {
	return rid >> 9 & (1<<(chunkBits-9) - 1), rid >> 6 & 7, 1 << (rid & 63)
}

func (s *set) add(rid int64) {
	_, word, bit := place(rid)
	s.page(rid).add(s, word, bit)
}

// page returns the page of a row id, and makes it if there is none.
func (s *set) page(rid int64) *setPage {
	c := s.chunk(rid)
	if c == nil {
		c = &setChunk{}
		s.chunks[rid>>chunkBits], s.last = c, c
	}
	at, _, _ := place(rid)
	if c[at] == nil {
		c[at] = &setPage{}
	}
	return c[at]
}

func (p *setPage) add(s *set, word int64, bit uint64) {
	if p[word]&bit == 0 {
		p[word] |= bit
		s.size++
	}
}

// addPostings adds the ids in a row of postings. It repeats the loop of unpack to be fast, because a search may add a
// million ids: it looks up a page only if an id is on another page than the id before.
func (s *set) addPostings(first int64, more []byte) {
	page := s.page(first)
	for rid := first; ; {
		_, word, bit := place(rid)
		page.add(s, word, bit)
		if len(more) == 0 {
			return
		}
		gap, size := uint64(more[0]), 1
		if gap >= 0x80 {
			if gap, size = binary.Uvarint(more); size <= 0 {
				return
			}
		}
		more = more[size:]
		next := rid + int64(gap)
		if next>>9 != rid>>9 {
			page = s.page(next)
		}
		rid = next
	}
}

// common calls each with the ids in a row of postings that are also in the set, and returns how many ids the row has.
// Like addPostings, it repeats the loop of unpack to be fast.
func (s *set) common(first int64, more []byte, each func(rid int64)) int {
	page := s.pageOf(first)
	for rid, n := first, 1; ; n++ {
		if _, word, bit := place(rid); page[word]&bit != 0 {
			each(rid)
		}
		if len(more) == 0 {
			return n
		}
		gap, size := uint64(more[0]), 1
		if gap >= 0x80 {
			if gap, size = binary.Uvarint(more); size <= 0 {
				return n
			}
		}
		more = more[size:]
		next := rid + int64(gap)
		if next>>9 != rid>>9 {
			page = s.pageOf(next)
		}
		rid = next
	}
}

// pageOf returns the page of a row id to be read. It must not be changed: it may be emptyPage.
func (s *set) pageOf(rid int64) *setPage {
	if c := s.chunk(rid); c != nil {
		if at, _, _ := place(rid); c[at] != nil {
			return c[at]
		}
	}
	return &emptyPage
}

var emptyPage setPage

// bound returns errEnough if the set has more than limit ids.
func (s *set) bound(limit int64) error {
	if s.size > limit {
		return errEnough
	}
	return nil
}

func (s *set) has(rid int64) bool {
	_, word, bit := place(rid)
	return s.pageOf(rid)[word]&bit != 0
}

// intersect keeps the ids that are in both sets.
func (s *set) intersect(with *set) {
	s.combine(with, func(word *uint64, other uint64) { *word &= other })
}

// subtract keeps the ids that are not in the other set.
func (s *set) subtract(other *set) {
	s.combine(other, func(word *uint64, other uint64) { *word &^= other })
}

// combine changes every word, and counts the ids again.
func (s *set) combine(with *set, change func(word *uint64, other uint64)) {
	s.size = 0
	for at, chunk := range s.chunks {
		others := with.chunks[at]
		if others == nil {
			others = &setChunk{}
		}
		for i, page := range chunk {
			if page == nil {
				continue
			}
			other := others[i]
			if other == nil {
				other = &setPage{}
			}
			for j := range page {
				change(&page[j], other[j])
				s.size += int64(bits.OnesCount64(page[j]))
			}
		}
	}
}

// rids lists the row ids in order.
func (s *set) rids() []int64 {
	list := make([]int64, 0, s.size)
	for at, chunk := range s.chunks {
		for i, page := range chunk {
			if page == nil {
				continue
			}
			for j, word := range page {
				for ; word != 0; word &= word - 1 {
					list = append(list, at<<chunkBits|int64(i)<<9|int64(j)<<6|int64(bits.TrailingZeros64(word)))
				}
			}
		}
	}
	return list
}
