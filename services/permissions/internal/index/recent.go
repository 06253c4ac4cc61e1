package index

// recent remembers the sequences of the records that changed last: for tokens that name records deleted since, and of
// memberships that have ended.
type recent struct {
	sequences map[record]int64
	order     []record // a ring, in the order of first changes
	next      int      // the place of the next record in a full ring
}

// remembered is how many records recent has at most. The events about so many, or more, come within the time that an
// event may be late.
const remembered = 50_000

func (r *recent) sequence(of record) int64 { return r.sequences[of] }

func (r *recent) has(of record) bool {
	_, ok := r.sequences[of]
	return ok
}

func (r *recent) note(of record, sequence int64) {
	if _, ok := r.sequences[of]; !ok {
		if r.sequences == nil {
			r.sequences = map[record]int64{}
		}
		if len(r.order) < remembered {
			r.order = append(r.order, of)
		} else {
			delete(r.sequences, r.order[r.next])
			r.order[r.next] = of
			r.next = (r.next + 1) % remembered
		}
	}
	r.sequences[of] = max(sequence, r.sequences[of])
}
