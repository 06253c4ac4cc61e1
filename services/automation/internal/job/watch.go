package job

import (
	"context"
	"sync"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
)

// watch says when replicas fired jobs. There is one, in the platform's tenant.
type watch struct {
	docstore.Meta
	Since clock.Time `json:"since"` // from here on there was no gap
	Until clock.Time `json:"until"`
}

var watches = docstore.Define(docstore.Schema[watch]{Name: "job_watches", Noun: "watch", NoIfMatch: true})

const (
	watchID = "fire"
	// noteEvery is how often a replica looks at the watch and, unless another has done so, prolongs it. It is less
	// than misfireAfter, so that a replica that dies leaves no gap for those that live.
	noteEvery = 20 * time.Second
)

// watchCopy is a replica's copy of the watch.
type watchCopy struct {
	mu    sync.Mutex
	watch watch
	next  clock.Time
}

func (p *watchCopy) since() clock.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.watch.Since
}

// noteFiring notes that a replica fires jobs now. After a gap of more than misfireAfter the watch begins anew.
func (s *Jobs) noteFiring(ctx context.Context) error {
	p := &s.watchCopy
	p.mu.Lock()
	defer p.mu.Unlock()
	now := s.Store.Now()
	if now.Before(p.next) {
		return nil
	}
	ctx = request.System(ctx, request.Platform)
	doc, err := watches.Find(ctx, s.Store, watchID)
	if err != nil && !apperr.IsNotFound(err) {
		return err
	}
	if err == nil {
		w, err := doc.Value()
		if err != nil {
			return err
		}
		p.watch = *w
	}
	if now.Sub(p.watch.Until) >= noteEvery/2 {
		if p.watch, err = s.prolong(ctx); err != nil {
			return err
		}
	}
	p.next = now.Add(noteEvery)
	return nil
}

func (s *Jobs) prolong(ctx context.Context) (watch, error) {
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (watch, error) {
		w, err := watches.Load(ctx, tx, watchID)
		if apperr.IsNotFound(err) {
			w = &watch{Meta: docstore.Meta{ID: watchID}, Since: tx.Now, Until: tx.Now}
			_, err = watches.Insert(ctx, tx, w)
			return *w, err
		}
		if err != nil {
			return watch{}, err
		}
		if tx.Now.Sub(w.Until) > misfireAfter {
			w.Since = tx.Now
		}
		w.Until = tx.Now
		_, err = watches.Touch(ctx, tx, w)
		return *w, err
	})
}
