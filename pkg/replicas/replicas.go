// Package replicas divides work among the replicas of a service. Each replica has a document that it writes regularly,
// its heartbeat; the others take a replica for dead if they have seen no change of it for a while, by their own clocks.
// Each piece of work belongs to one of the live replicas (rendezvous hashing), so that little work moves when replicas
// come or go.
//
// What a replica owns is only a proposal. A replica that takes a piece of work writes its id to the document with the
// work's results, and every later write there checks that it is still the owner.
package replicas

import (
	"context"
	"hash/fnv"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
)

const (
	// Beat is the time between two heartbeats.
	Beat = 1500 * time.Millisecond
	// dead is how long a replica may be silent before others take its work. Together with the heartbeat and the time
	// to take over it is less than 10 s.
	dead = 6 * time.Second
	// quiet is when a replica that could not write its heartbeat stops its work: before others take it for dead.
	quiet = dead - Beat

	buried     = time.Minute // how long a replica is silent before its document is deleted
	maxMembers = 200
)

// member is the heartbeat of a replica.
type member struct {
	docstore.Meta       // the id is the replica's
	Beats         int64 `json:"beats"`
}

var members = docstore.Define(docstore.Schema[member]{Name: "replicas", Noun: "replica", NoIfMatch: true})

// Collections are those that the store must have.
func Collections() []*docstore.Def { return []*docstore.Def{members.Def()} }

// Group is the replicas as one of them sees them. It is safe for concurrent use.
type Group struct {
	ID string // this replica's

	store *docstore.Store
	log   *slog.Logger
	alone bool // no other process has the store

	mu      sync.Mutex
	seen    map[string]sighting
	live    []string
	shown   time.Time // when this replica last wrote its heartbeat
	changes int       // of what this replica owns
	changed chan struct{}
}

type sighting struct {
	beats int64
	at    time.Time
}

// New makes a group with this replica. Run makes it a member. With alone no other process can have the store: members
// that Run finds are dead, so this replica takes their work at once.
func New(store *docstore.Store, log *slog.Logger, alone bool) *Group {
	return &Group{ID: request.NewID(), store: store, log: log, alone: alone, seen: map[string]sighting{},
		changed: make(chan struct{})}
}

// Run writes this replica's heartbeat until ctx ends; then the replica leaves the group. A replica that is alone needs
// no heartbeat.
func (g *Group) Run(ctx context.Context) error {
	ctx = request.System(ctx, request.Platform)
	if g.alone {
		if err := g.clear(ctx); err != nil {
			return err
		}
		g.ownAll()
		<-ctx.Done()
		return nil
	}
	beat := time.NewTicker(Beat)
	defer beat.Stop()
	for {
		if err := g.beat(ctx); err != nil {
			return err
		}
		select {
		case <-beat.C:
		case <-ctx.Done():
			return g.leave(context.WithoutCancel(ctx))
		}
	}
}

// clear deletes the members that were there before this replica, which can only be dead.
func (g *Group) clear(ctx context.Context) error {
	return docstore.Do(ctx, g.store, func(tx *docstore.Tx) error {
		return members.DeleteWhere(ctx, tx, docstore.Filter{}, nil)
	})
}

func (g *Group) ownAll() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shown, g.live = time.Now(), []string{g.ID}
	g.change()
}

// change announces that what this replica owns may have changed. The mutex is held.
func (g *Group) change() {
	g.changes++
	close(g.changed)
	g.changed = make(chan struct{})
}

func (g *Group) beat(ctx context.Context) error {
	began := time.Now()
	err := docstore.Do(ctx, g.store, func(tx *docstore.Tx) error {
		m, err := members.Load(ctx, tx, g.ID)
		if apperr.IsNotFound(err) {
			_, err = members.Insert(ctx, tx, &member{Meta: docstore.Meta{ID: g.ID}})
			return err
		}
		if err != nil {
			return err
		}
		m.Beats++
		_, err = members.Replace(ctx, tx, m)
		return err
	})
	if err != nil {
		return err
	}
	page, err := members.Page(ctx, g.store, docstore.Query{Limit: maxMembers})
	if err != nil {
		return err
	}
	var gone []string
	g.mu.Lock()
	late := !g.alive() // who asked meanwhile was told that this replica owns nothing
	g.shown = began
	gone, err = g.look(page.Docs, late)
	g.mu.Unlock()
	for _, id := range gone {
		err := docstore.Do(ctx, g.store, func(tx *docstore.Tx) error {
			return members.DeleteWhere(ctx, tx, docstore.ID(id), nil)
		})
		if err != nil {
			return err
		}
	}
	return err
}

// look updates the live replicas, and returns those that have been dead for long. It announces a change if the replicas
// are others than before, or if this replica's heartbeat was late.
func (g *Group) look(docs []docstore.Doc[member], late bool) (gone []string, _ error) {
	now, seen := time.Now(), map[string]sighting{}
	var live []string
	for _, doc := range docs {
		m, err := doc.Value()
		if err != nil {
			return nil, err
		}
		s, known := g.seen[m.ID]
		if !known || s.beats != m.Beats {
			s = sighting{m.Beats, now}
		}
		seen[m.ID] = s
		switch silent := now.Sub(s.at); {
		case silent < dead || m.ID == g.ID:
			live = append(live, m.ID)
		case silent > buried:
			gone = append(gone, m.ID)
		}
	}
	g.seen = seen
	others := !slices.Equal(live, g.live)
	if others {
		g.log.Info("the replicas that share the work", "replicas", len(live))
		g.live = live
	}
	if others || late {
		g.change()
	}
	return gone, nil
}

func (g *Group) leave(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, Beat)
	defer cancel()
	return docstore.Do(ctx, g.store, func(tx *docstore.Tx) error {
		return members.DeleteWhere(ctx, tx, docstore.ID(g.ID), nil)
	})
}

// Alive reports whether the other replicas still take this one for alive. Otherwise it must not work.
func (g *Group) Alive() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.alive()
}

func (g *Group) alive() bool {
	return time.Since(g.shown) < quiet || g.alone && !g.shown.IsZero()
}

// Lives reports whether a replica is alive.
func (g *Group) Lives(id string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Contains(g.live, id)
}

// Owns reports whether a piece of work belongs to this replica.
func (g *Group) Owns(work string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.alive() {
		return false
	}
	best, owner := uint64(0), ""
	for _, id := range g.live {
		h := fnv.New64a()
		_, _ = h.Write([]byte(work + "\x00" + id))
		if weight := mix(h.Sum64()); owner == "" || weight > best {
			best, owner = weight, id
		}
	}
	return owner == g.ID
}

// mix spreads a hash over all bits (the finalizer of MurmurHash3): FNV's first bits hardly depend on the last bytes.
func mix(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// MayTake reports whether this replica may take work with an owner: "", itself, or a replica that is dead.
func (g *Group) MayTake(owner string) bool { return owner == "" || owner == g.ID || !g.Lives(owner) }

// Changed returns how often what this replica owns may have changed, and a channel that is closed when it does so
// again: replicas come and go, and a replica that could not write its heartbeat in time owns nothing until it has. Who
// shares work compares the number with that of the last time: the channel alone tells nothing of a change before it was
// asked for.
func (g *Group) Changed() (times int, again <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.changes, g.changed
}
