package index

import "slices"

// writes are the running writes of this replica, and the records whose deletion has arrived while they ran: what such a
// write has made of these records is older than the deletion, even if Apply gets it afterwards.
type writes struct {
	last    uint64            // the number of the last write
	running []uint64          // numbers, in their order
	gone    map[record]uint64 // the last write that had begun when the deletion arrived
	order   []record          // of gone, in the order of these numbers
}

func (w *writes) begin() (number uint64) {
	w.last++
	w.running = append(w.running, w.last)
	return w.last
}

// ended notes that the deletion of a record has arrived. Without running writes nothing older can come.
func (w *writes) ended(r record) {
	if len(w.running) == 0 {
		return
	}
	if w.gone == nil {
		w.gone = map[record]uint64{}
	}
	w.gone[r] = w.last
	w.order = append(w.order, r)
}

// end forgets deletions that arrived before the oldest running write began.
func (w *writes) end(number uint64) {
	at, _ := slices.BinarySearch(w.running, number)
	w.running = slices.Delete(w.running, at, at+1)
	keep := 0
	for keep < len(w.order) && (len(w.running) == 0 || w.gone[w.order[keep]] < w.running[0]) {
		delete(w.gone, w.order[keep])
		keep++
	}
	w.order = w.order[keep:]
}
