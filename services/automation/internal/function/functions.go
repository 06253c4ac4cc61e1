package function

import (
	"context"
	"log/slog"
	"strconv"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/outbox"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/services/automation/internal/sandbox"
)

// Deps are what Functions work with.
type Deps struct {
	Store *docstore.Store
	Pool  *sandbox.Pool
	Log   *slog.Logger

	// Jobs counts the jobs of the context's tenant whose target is a function.
	Jobs func(ctx context.Context, tx *docstore.Tx, functionID string) (int64, error)
}

// Functions are the use cases.
type Functions struct {
	Deps
	wake chan struct{} // tells the runner of triggered runs that there is one
}

// New makes the use cases.
func New(d Deps) *Functions { return &Functions{d, make(chan struct{}, 1)} }

// Collections are those that the store must have.
func Collections() []*docstore.Def {
	return []*docstore.Def{functions.Def(), codes.Def(), logs.Def(), runs.Def()}
}

// Doc is a function as read or written, without its code.
type Doc = docstore.Doc[Function]

// Filter holds what must be equal; empty members do not count.
type Filter struct{ Code, Runtime, Status string }

func (f Filter) where() docstore.Filter {
	var all []docstore.Filter
	for _, m := range []struct{ index, value string }{{byCode, f.Code}, {byRuntime, f.Runtime}, {byStatus, f.Status}} {
		if m.value != "" {
			all = append(all, docstore.Eq(m.index, docstore.Text(m.value)))
		}
	}
	return docstore.And(all...)
}

// List returns a page of functions, without their code.
func (s *Functions) List(ctx context.Context, f Filter, p docstore.Paging) (docstore.Page[Function], error) {
	return functions.List(ctx, s.Store, f.where(), p)
}

// Get returns a function; apperr.NotFound.
func (s *Functions) Get(ctx context.Context, id string) (Detail, error) {
	doc, err := functions.Find(ctx, s.Store, id)
	if err != nil {
		return Detail{}, err
	}
	return detail(ctx, s.Store, doc)
}

// Create adds a function. A function for wasm may get its module later. apperr.InvalidParameters, AlreadyExists,
// InvalidState (too many), Unavailable (nothing can compile the code now).
func (s *Functions) Create(ctx context.Context, d Draft) (Detail, error) {
	content, err := s.checked(ctx, &d, nil)
	if err != nil {
		return Detail{}, err
	}
	id, err := s.Store.NewID(ctx)
	if err != nil {
		return Detail{}, err
	}
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (Detail, error) {
		n, err := functions.Count(ctx, tx, docstore.Filter{})
		if err != nil {
			return Detail{}, err
		}
		if n >= maxFunctions {
			return Detail{}, apperr.New(apperr.InvalidState, "a tenant has at most %d functions", maxFunctions)
		}
		f := &Function{Meta: docstore.Meta{ID: id}, Profile: d.Profile, Revisions: []Revision{}}
		if content != nil {
			if err := setCode(ctx, tx, f, content, request.From(ctx).Actor); err != nil {
				return Detail{}, err
			}
		}
		doc, err := functions.Insert(ctx, tx, f)
		if err != nil {
			return Detail{}, err
		}
		return told(ctx, tx, "created", doc)
	})
}

// checked finds all faults of a draft, and returns the code that it has or that must be checked anew; nil if the code
// stays as it is.
func (s *Functions) checked(ctx context.Context, d *Draft, before *Function) (content []byte, err error) {
	var faults apperr.Faults
	d.complete()
	var old *Profile
	if before != nil {
		old = &before.Profile
	}
	d.check(&faults, old)
	content = d.content(&faults)
	switch changed := old != nil && (old.Runtime != d.Runtime || old.Entry != d.Entry); {
	case content != nil:
	case before != nil && before.Revision > 0 && old.Runtime != d.Runtime,
		before == nil && d.Runtime == sandbox.JavaScript:
		faults.Add(codeMember(d.Runtime), "is missing")
	case changed && before.Revision > 0:
		if content, err = contentOf(ctx, s.Store, before); err != nil {
			return nil, err
		}
	}
	if err := faults.Err(); err != nil || content == nil {
		return nil, err
	}
	if err := s.compiles(ctx, &faults, &d.Profile, content); err != nil {
		return nil, err
	}
	return content, faults.Err()
}

func contentOf(ctx context.Context, r docstore.Reader, f *Function) ([]byte, error) {
	return content(ctx, r, f.ID, f.Revision)
}

// Update applies edit to a function; a draft without code keeps it. New code, another runtime or another entry make a
// new revision. apperr.NotFound, VersionMismatch, and those of Create.
func (s *Functions) Update(ctx context.Context, id string, edit func(*Draft) error) (Detail, error) {
	doc, err := functions.Find(ctx, s.Store, id)
	if err != nil {
		return Detail{}, err
	}
	before, err := doc.Value()
	if err != nil {
		return Detail{}, err
	}
	draft := Draft{Profile: before.Profile}
	if err := edit(&draft); err != nil {
		return Detail{}, err
	}
	content, err := s.checked(ctx, &draft, before)
	if err != nil {
		return Detail{}, err
	}
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (Detail, error) {
		f, err := functions.Load(ctx, tx, id)
		if err != nil {
			return Detail{}, err
		}
		if f.Version != before.Version { // what was checked is not what would be changed
			return Detail{}, apperr.New(apperr.VersionMismatch, "the record has changed; its version is now %d",
				f.Version)
		}
		f.Profile = draft.Profile
		if r := f.current(); content != nil && (r == nil || r.Runtime != f.Runtime || r.Entry != f.Entry ||
			r.SHA256 != hash(content)) {
			if err := setCode(ctx, tx, f, content, request.From(ctx).Actor); err != nil {
				return Detail{}, err
			}
		}
		return replaced(ctx, tx, f)
	})
}

// Rollback makes the code, runtime and entry of an earlier revision those of a new one; 0 stands for the one before the
// current. apperr.NotFound, InvalidState (there is none), VersionMismatch.
func (s *Functions) Rollback(ctx context.Context, id string, revision int64) (Detail, error) {
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (Detail, error) {
		f, err := functions.Load(ctx, tx, id)
		if err != nil {
			return Detail{}, err
		}
		if revision == 0 && len(f.Revisions) > 1 {
			revision = f.Revisions[1].Revision
		}
		r := f.revision(revision)
		if r == nil {
			return Detail{}, apperr.New(apperr.InvalidState, "the code of this revision is not kept")
		}
		content, err := content(ctx, tx, id, revision)
		if err != nil {
			return Detail{}, err
		}
		f.Runtime, f.Entry = r.Runtime, r.Entry
		if err := setCode(ctx, tx, f, content, request.From(ctx).Actor); err != nil {
			return Detail{}, err
		}
		return replaced(ctx, tx, f)
	})
}

// Revisions returns the revisions whose code is kept, the latest first; apperr.NotFound.
func (s *Functions) Revisions(ctx context.Context, id string) ([]Revision, error) {
	doc, err := functions.Find(ctx, s.Store, id)
	if err != nil {
		return nil, err
	}
	f, err := doc.Value()
	if err != nil {
		return nil, err
	}
	return f.Revisions, nil
}

// Delete removes a function with its revisions, logs and waiting runs. apperr.NotFound, VersionMismatch, InUse (jobs
// have it as their target).
func (s *Functions) Delete(ctx context.Context, id string) (docstore.Deleted, error) {
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (docstore.Deleted, error) {
		f, err := functions.Load(ctx, tx, id)
		if err != nil {
			return docstore.Deleted{}, err
		}
		if err := s.unused(ctx, tx, id); err != nil {
			return docstore.Deleted{}, err
		}
		doc, err := functions.Delete(ctx, tx, f)
		if err != nil {
			return docstore.Deleted{}, err
		}
		of := docstore.Eq(byFunction, docstore.Text(id))
		if err := codes.DeleteWhere(ctx, tx, of, nil); err != nil {
			return docstore.Deleted{}, err
		}
		if err := logs.DeleteWhere(ctx, tx, of, nil); err != nil {
			return docstore.Deleted{}, err
		}
		if err := runs.DeleteWhere(ctx, tx, of, nil); err != nil {
			return docstore.Deleted{}, err
		}
		return docstore.Deleted{ID: id}, tell(ctx, tx, "deleted", &doc)
	})
}

// unused refuses with apperr.InUse if jobs run the function. A job that is created meanwhile depends on the function,
// so one of the two transactions runs again.
func (s *Functions) unused(ctx context.Context, tx *docstore.Tx, id string) error {
	n, err := s.Jobs(ctx, tx, id)
	if err != nil || n == 0 {
		return err
	}
	return &apperr.Error{Kind: apperr.InUse, Detail: "jobs run the function",
		Faults: []apperr.Fault{{Location: "jobs", Message: strconv.FormatInt(n, 10)}}}
}

// Exists reports whether the context's tenant has a function. The transaction depends on it.
func (s *Functions) Exists(ctx context.Context, tx *docstore.Tx, id string) (bool, error) {
	_, err := functions.Find(ctx, tx, id)
	if apperr.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

func replaced(ctx context.Context, tx *docstore.Tx, f *Function) (Detail, error) {
	doc, err := functions.Replace(ctx, tx, f)
	if err != nil || !doc.Changed() {
		return withCode(ctx, tx, doc, err)
	}
	return told(ctx, tx, "updated", doc)
}

func told(ctx context.Context, tx *docstore.Tx, action string, doc Doc) (Detail, error) {
	return withCode(ctx, tx, doc, tell(ctx, tx, action, &doc))
}

func withCode(ctx context.Context, tx *docstore.Tx, doc Doc, err error) (Detail, error) {
	if err != nil {
		return Detail{}, err
	}
	return detail(ctx, tx, doc)
}

func tell(ctx context.Context, tx *docstore.Tx, action string, doc *Doc) error {
	return outbox.Tell(ctx, tx, outbox.Kind{Entity: "function", Source: "/functions"}, action, doc, nil)
}
