package replicaset

import (
	"bytes"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// sortField is one member of a sort document.
type sortField struct {
	path string
	desc bool
}

// scan goes through intervals of one index. There is no scan of a whole collection: a query without a usable index is
// refused, as by a server with the parameter notablescan.
type scan struct {
	index     *index
	intervals []interval
	depth     int  // number of fields of the index that are bounded
	points    int  // how many of those have one or several fixed values
	sorted    bool // entries come in the requested order
	desc      bool
}

type interval struct{ from, below string }

// plan is one scan, or several whose results are combined.
type plan struct{ scans []*scan }

const (
	maxIntervals = 5000 // of one scan; further values are tested on the documents
	trialLength  = 100  // entries that are counted to compare scans
)

// conjunction is a query in the form of conditions that must all hold.
type conjunction struct {
	leaves []*filter
	ors    []*filter
}

func (c *conjunction) add(f *filter) {
	switch f.op {
	case opAnd:
		for _, sub := range f.sub {
			c.add(sub)
		}
	case opOr:
		c.ors = append(c.ors, f)
	default:
		c.leaves = append(c.leaves, f)
	}
}

// plan chooses how to answer a query.
func (v *view) plan(c *collection, f *filter, sort []sortField) (*plan, error) {
	query := &conjunction{}
	query.add(f)
	return v.planFor(c, query, sort)
}

func (v *view) planFor(c *collection, query *conjunction, sort []sortField) (*plan, error) {
	best := v.bestScan(c, query.leaves, sort)
	if best != nil && (len(query.ors) == 0 || best.depth > 1) {
		return &plan{[]*scan{best}}, nil
	}
	// Every branch of an "or", with all the other conditions, is a query of its own.
	for i, or := range query.ors {
		together := &plan{}
		for _, branch := range or.sub {
			q := &conjunction{leaves: slices.Clone(query.leaves), ors: slices.Delete(slices.Clone(query.ors), i, i+1)}
			q.add(branch)
			p, err := v.planFor(c, q, sort)
			if err != nil {
				together = nil
				break
			}
			together.scans = append(together.scans, p.scans...)
		}
		if together != nil {
			return together, nil
		}
	}
	if best != nil {
		return &plan{[]*scan{best}}, nil
	}
	return nil, refuse(codeNoQueryPlans,
		"error processing query: No indexed plans available, and running with 'notablescan'")
}

func (v *view) bestScan(c *collection, leaves []*filter, sort []sortField) *scan {
	var candidates []*scan
	deepest := 0
	for _, x := range c.indexes {
		if s := c.scan(x, leaves, sort); s != nil {
			candidates = append(candidates, s)
			deepest = max(deepest, s.depth)
		}
	}
	var best *scan
	fewest := 0
	for _, s := range candidates {
		if s.depth < deepest && !s.sorted {
			continue
		}
		n := v.trial(s)
		if best == nil || n < fewest || n == fewest && better(s, best) {
			best, fewest = s, n
		}
	}
	return best
}

func better(a, b *scan) bool {
	if a.sorted != b.sorted {
		return a.sorted
	}
	return a.points > b.points
}

// trial counts the entries of a scan, up to a limit.
func (v *view) trial(s *scan) int {
	n := 0
	for _, in := range s.intervals {
		v.tree.AscendRange(item{key: in.from}, item{key: in.below}, func(item) bool {
			n++
			return n < trialLength
		})
		if n >= trialLength {
			break
		}
	}
	return n
}

// scan returns how an index would serve the query; nil if it cannot.
func (c *collection) scan(x *index, leaves []*filter, sort []sortField) *scan {
	if x.partial != nil && !implied(x.partial, leaves) {
		return nil
	}
	s := &scan{index: x}
	starts, same := []string{c.prefix(x)}, map[string]bool{}
	var ranged bool
	at := 0
	for ; at < len(x.fields) && !ranged; at++ {
		points, low, high, found := bounds(leaves, x.fields[at], x.multikey)
		if !found {
			break
		}
		s.depth++
		if points == nil {
			ranged = true
			for _, start := range starts {
				s.intervals = append(s.intervals, interval{start + low, start + high})
			}
			break
		}
		if len(starts)*len(points) > maxIntervals {
			break
		}
		s.points++
		var longer []string
		for _, start := range starts {
			for _, p := range points {
				longer = append(longer, start+p)
			}
		}
		starts = longer
		if len(points) == 1 {
			same[x.fields[at]] = true
		}
	}
	if !ranged {
		for _, start := range starts {
			s.intervals = append(s.intervals, interval{start, start + string(orderHighest)})
		}
	}
	s.sorted, s.desc = c.sorts(x, at, len(s.intervals), same, sort)
	if s.depth == 0 && !s.sorted {
		return nil
	}
	return s
}

// sorts reports whether entries are in the requested order from the field at on.
func (c *collection) sorts(x *index, at, intervals int, same map[string]bool, sort []sortField) (sorted, desc bool) {
	if len(sort) == 0 || intervals > 1 || x.multikey {
		return false, false
	}
	rest, first := x.fields[at:], true
	for _, s := range sort {
		if same[s.path] {
			continue
		}
		if len(rest) == 0 || rest[0] != s.path || !first && s.desc != desc {
			return false, false
		}
		rest, desc, first = rest[1:], s.desc, false
	}
	return true, desc
}

// implied reports whether a partial index has all documents that the conditions select. It knows only "the member
// exists".
func implied(partial *filter, leaves []*filter) bool {
	for _, p := range partial.sub {
		if p.op != opExists {
			return false
		}
		if !slices.ContainsFunc(leaves, func(f *filter) bool { return f.path == p.path }) {
			return false
		}
	}
	return true
}

// bounds are what conditions require of one field: values, or a range. All conditions are tested on the document again,
// so one is enough. If the field may be a list, two conditions must not be combined, because different elements may
// meet them; those within one $elemMatch may (https://www.mongodb.com/docs/manual/core/multikey-index-bounds/).
func bounds(leaves []*filter, path string, multikey bool) (points []string, low, high string, found bool) {
	for _, f := range leaves {
		if f.path == path && (f.op == opEqual || f.op == opIn) && (points == nil || len(f.values) < len(points)) {
			points, found = append([]string{}, f.values...), true
		}
	}
	if found {
		return points, "", "", true
	}
	high = string(orderHighest)
	for _, f := range leaves {
		if f.path != path {
			continue
		}
		found = true
		conditions := []*filter{f}
		if f.op == opElem {
			conditions = f.sub
		}
		for _, f := range conditions {
			low, high = narrowed(f, low, high)
		}
		if multikey {
			break
		}
	}
	return nil, low, high, found
}

func narrowed(f *filter, low, high string) (string, string) {
	var from, below string
	switch f.op {
	case opGreater:
		from = f.values[0] + string(orderHighest)
	case opFrom:
		from = f.values[0]
	case opLess:
		below = f.values[0]
	case opTo:
		below = f.values[0] + string(orderHighest)
	default: // $regex, $exists: any entry
		return low, high
	}
	kind := f.values[0][0]
	if from == "" {
		from = string([]byte{kind})
	}
	if below == "" {
		below = string([]byte{kind + 1})
	}
	return max(low, from), min(high, below)
}

// find lists the documents that a query selects, in the order of sort, without the first skip documents, and at most
// limit (0 means all).
func (v *view) find(c *collection, f *filter, sort []sortField, skip, limit int) ([]bson.Raw, error) {
	p, err := v.plan(c, f, sort)
	if err != nil {
		return nil, err
	}
	need := 0
	if limit > 0 {
		need = skip + limit
	}
	seen := map[string]bool{}
	var found []bson.Raw
	sorted := len(p.scans) == 1 && p.scans[0].sorted
	for _, s := range p.scans {
		enough := need
		if len(sort) > 0 && !s.sorted {
			enough = 0
		}
		if err := v.walk(c, s, f, enough, seen, &found); err != nil {
			return nil, err
		}
	}
	if len(sort) > 0 && !sorted {
		if found, err = sortDocuments(found, sort); err != nil {
			return nil, err
		}
	}
	found = found[min(skip, len(found)):]
	if limit > 0 {
		found = found[:min(limit, len(found))]
	}
	return found, nil
}

// walk adds the documents that one scan finds, at most limit (0 means all).
func (v *view) walk(c *collection, s *scan, f *filter, limit int, seen map[string]bool, found *[]bson.Raw) (err error) {
	n := 0
	visit := func(i item) bool {
		key, doc := i.key, i.doc
		if doc == nil {
			key, doc = i.to, v.get(i.to)
		}
		if seen[key] {
			return true
		}
		var ok bool
		if ok, err = f.matches(doc); err != nil {
			return false
		}
		if ok {
			seen[key] = true
			*found = append(*found, doc)
			n++
		}
		return limit == 0 || n < limit
	}
	for _, in := range s.intervals {
		if s.desc {
			v.tree.DescendLessOrEqual(
				item{key: in.below},
				func(i item) bool { return i.key >= in.from && (i.key == in.below || visit(i)) },
			)
		} else {
			v.tree.AscendRange(item{key: in.from}, item{key: in.below}, visit)
		}
		if err != nil || limit > 0 && n >= limit {
			return err
		}
	}
	return err
}

func sortDocuments(docs []bson.Raw, sort []sortField) ([]bson.Raw, error) {
	type keyed struct {
		keys [][]byte
		doc  bson.Raw
	}
	all := make([]keyed, len(docs))
	for i, doc := range docs {
		all[i].doc = doc
		for _, s := range sort {
			v, err := lookup(doc, s.path)
			if err != nil {
				return nil, err
			}
			if v.Type == bson.TypeArray {
				return nil, unsupported("sort by a list (%s)", s.path)
			}
			key, err := appendValue(nil, v)
			if err != nil {
				return nil, err
			}
			all[i].keys = append(all[i].keys, key)
		}
	}
	slices.SortStableFunc(all, func(a, b keyed) int {
		for i, s := range sort {
			order := bytes.Compare(a.keys[i], b.keys[i])
			if s.desc {
				order = -order
			}
			if order != 0 {
				return order
			}
		}
		return 0
	})
	for i := range all {
		docs[i] = all[i].doc
	}
	return docs, nil
}
