package sqlitestore

import (
	"hash/maphash"
	"math/bits"
	"path/filepath"
	"sync"
	"sync/atomic"
)

// scope is a tenant's part of a collection.
type scope struct{ collection, tenant string }

// everything is the scope of all tenants and collections.
var everything = scope{}

// changes are the indexes whose entries a transaction has changed: a bit for the place of each.
type changes map[scope]uint64

// merge may be called on no changes, and then takes over more.
func (c *changes) merge(more changes) {
	if *c == nil {
		*c = more
		return
	}
	for s, places := range more {
		(*c)[s] |= places
	}
}

// maxPlaces is how many indexes of a collection are told apart; further ones share places.
const maxPlaces = 64

// generations number the states of a file's indexes, so that what was found in one snapshot is known to be good in another: see matches.go.
//
// Of what changes an index the writer calls begin before it commits, and end after that, before it answers. While an index's two
// numbers are equal no commit is changing it, and while they stay as they are so do its entries. So a reader that sees them equal before its snapshot
// is taken, and unchanged after, knows which generation the snapshot shows.
//
// There are so many numbers and no more. Indexes that share one only seem to change more often than they do.
type generations struct {
	seed    maphash.Seed
	numbers [4096]generation
	path    string
	users   int // engines that have the file open; guarded by files
}

type generation struct{ begun, ended atomic.Uint64 }

// first is where the numbers of a scope begin.
func (g *generations) first(s scope) uint64 { return maphash.Comparable(g.seed, s) }

func (g *generations) at(first uint64, place int) *generation {
	return &g.numbers[(first+uint64(place))%uint64(len(g.numbers))]
}

func (g *generations) begin(c changes) { g.each(c, func(n *generation) { n.begun.Add(1) }) }

func (g *generations) end(c changes) { g.each(c, func(n *generation) { n.ended.Add(1) }) }

func (g *generations) each(c changes, do func(*generation)) {
	for s, places := range c {
		if s == everything {
			for i := range g.numbers {
				do(&g.numbers[i])
			}
			continue
		}
		for first := g.first(s); places != 0; places &= places - 1 {
			do(g.at(first, bits.TrailingZeros64(places)))
		}
	}
}

// files has the generations of open files, so that two engines on one file know of each other's changes.
var files = struct {
	sync.Mutex
	open map[string]*generations
}{open: map[string]*generations{}}

// shareGenerations is for a file that is there. It is undone by release.
func shareGenerations(path string) (*generations, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return nil, err
	}
	files.Lock()
	defer files.Unlock()
	g := files.open[path]
	if g == nil {
		g = &generations{seed: maphash.MakeSeed(), path: path}
		files.open[path] = g
	}
	g.users++
	return g, nil
}

func (g *generations) release() {
	files.Lock()
	defer files.Unlock()
	if g.users--; g.users == 0 {
		delete(files.open, g.path)
	}
}
