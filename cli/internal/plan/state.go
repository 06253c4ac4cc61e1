package plan

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/cli/internal/failure"
)

// State is what a named set of files has made and applied, so that a change of the files is told from what somebody
// else has changed, and so that only what the set made is ever deleted.
type State struct {
	Records []*Applied `json:"records"`

	store   store
	version string // of the object in the bucket; "": there is none
	byRef   map[Ref]*Applied
}

// Applied is a record as the set wanted it last.
type Applied struct {
	Ref
	ID      string         `json:"id,omitempty"`
	Managed bool           `json:"made"` // by the set
	Values  map[string]any `json:"values,omitempty"`

	// Of a write whose answer has not come: nobody knows yet whether it was done.
	Begun      bool           `json:"begun,omitempty"`           // the record is to be made
	RequestKey string         `json:"idempotency_key,omitempty"` // the same request gets the same answer
	Next       map[string]any `json:"next,omitempty"`            // the values to which the record is to change
}

// OpenState reads the state of a set: from the file, or from the platform if there is none.
func OpenState(ctx context.Context, platform Platform, set, file string) (*State, error) {
	s := &State{byRef: map[Ref]*Applied{}}
	switch {
	case file != "":
		s.store = &fileStore{path: file}
	case strings.Trim(set, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" || len(set) > 64:
		return nil, failure.Usagef("--set: a name has up to 64 letters, digits, _ and -")
	default:
		s.store = &bucketStore{platform: platform, set: set}
	}
	return s, s.Reload(ctx)
}

// Reload reads the state again: what the apply before has left.
func (s *State) Reload(ctx context.Context) error {
	s.Records, s.byRef, s.version = nil, map[Ref]*Applied{}, ""
	if err := s.store.load(ctx, s); err != nil {
		return err
	}
	for _, a := range s.Records {
		for _, values := range []map[string]any{a.Values, a.Next} {
			for name, value := range values {
				if slices.Contains(secretPlaces, name) {
					values[name] = markSecrets(value)
				}
			}
		}
		s.byRef[a.Ref] = a
	}
	return nil
}

// Lock keeps a second apply of the set out. seize takes the lock of one that was killed.
func (s *State) Lock(ctx context.Context, seize bool) error {
	if seize {
		if err := s.store.seize(ctx); err != nil {
			return err
		}
	}
	return s.store.lock(ctx)
}

// held returns an error if the lock was lost.
func (s *State) held(ctx context.Context) error {
	if s == nil {
		return nil
	}
	return s.store.held(ctx)
}

// Unlock lets others in.
func (s *State) Unlock(ctx context.Context) error { return s.store.unlock(ctx) }

// of returns what was applied last; nil if there is nothing, or no state at all.
func (s *State) of(ref Ref) *Applied {
	if s == nil {
		return nil
	}
	return s.byRef[ref]
}

// caseless is of, also of a record whose name was in another case.
func (s *State) caseless(ref Ref) *Applied {
	if s == nil {
		return nil
	}
	at := slices.IndexFunc(s.Records, func(a *Applied) bool { return caseless(a.Ref) == caseless(ref) })
	if at < 0 {
		return nil
	}
	return s.Records[at]
}

// put keeps what is applied. made is never taken back.
func (s *State) put(ref Ref, id string, made bool, values map[string]any) {
	if s == nil {
		return
	}
	a := s.record(ref)
	a.ID, a.Managed, a.Values = id, a.Managed || made, values
	a.Begun, a.RequestKey, a.Next = false, "", nil
}

// meanwhile keeps what a step has done for a while: it is no drift if the apply stops before the end.
func (s *State) meanwhile(step *Step) {
	if a := s.of(step.Ref); a != nil {
		values := maps.Clone(a.Values)
		for _, c := range step.Changes {
			values[c.Member] = c.After
		}
		a.Values = values
	}
}

func (s *State) record(ref Ref) *Applied {
	a := s.byRef[ref]
	if a == nil {
		a = &Applied{Ref: ref}
		s.byRef[ref] = a
		s.Records = append(s.Records, a)
	}
	return a
}

// begin marks steps that are about to be sent together, and returns the Idempotency-Key of their request: that of the
// same request whose answer was lost, if there was one.
func (s *State) begin(steps []*Step) string {
	key := ""
	if s == nil {
		return key
	}
	if a := s.byRef[steps[0].Ref]; len(steps) == 1 && a != nil && a.Begun && sameJSON(a.Values, steps[0].want.Values) {
		key = a.RequestKey
	}
	if key == "" {
		key = rand.Text()
	}
	for _, step := range steps {
		if step.Action == Update {
			s.record(step.Ref).Next = step.want.Values
			continue
		}
		s.put(step.Ref, "", true, step.want.Values)
		a := s.byRef[step.Ref]
		a.Begun, a.RequestKey = true, key
	}
	return key
}

// copies are what the state has of steps; nil for those of which it has nothing.
func (s *State) copies(steps []*Step) []*Applied {
	out := make([]*Applied, len(steps))
	for i, step := range steps {
		if a := s.byRef[step.Ref]; a != nil {
			was := *a
			out[i] = &was
		}
	}
	return out
}

// restore makes what the state has of a record what it was.
func (s *State) restore(ref Ref, was *Applied) {
	if was == nil {
		s.forget(ref)
		return
	}
	*s.record(ref) = *was
}

func sameJSON(a, b any) bool {
	one, errOne := json.Marshal(a)
	other, errOther := json.Marshal(b)
	return errOne == nil && errOther == nil && string(one) == string(other)
}

func (s *State) forget(ref Ref) {
	if s == nil {
		return
	}
	delete(s.byRef, ref)
	s.Records = slices.DeleteFunc(s.Records, func(a *Applied) bool { return a.Ref == ref })
}

func (s *State) save(ctx context.Context) error {
	if s == nil {
		return nil
	}
	if err := s.store.save(ctx, s); err != nil {
		return fmt.Errorf("the state of the set: %w", err)
	}
	return nil
}
