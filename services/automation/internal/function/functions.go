package function

import (
	"context"
	"log/slog"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/pkg/textindex"
	"github.com/idplatform/idplatform/services/automation/internal/sandbox"
)

// Deps are what Functions need.
type Deps struct {
	Store *docstore.Store
	Pool  *sandbox.Pool
	Log   *slog.Logger
	Keys  *secret.Keyring // seals payload origins

	// Stream has the events of functions that are behind.
	Stream interface {
		Stored(ctx context.Context, r stream.Reading) (events []*stream.Event, next uint64, err error)
	}

	// Jobs counts the jobs of the context's tenant whose target is a function.
	Jobs func(ctx context.Context, tx *docstore.Tx, functionID string) (int64, error)

	// UnknownTypes returns those of some types and patterns of events that no event can have. Without an answer, the
	// error is apperr.Unavailable.
	UnknownTypes func(ctx context.Context, types []string) ([]string, error)
}

// Functions are the use cases.
type Functions struct {
	Deps
	wake chan struct{} // gets a value when events have made runs
}

// New makes the use cases.
func New(d Deps) *Functions {
	return &Functions{Deps: d, wake: make(chan struct{}, 1)}
}

// Collections are the collections that the store must have.
func Collections() []*docstore.Def {
	return []*docstore.Def{functions.Def(), codes.Def(), logs.Def(), runs.Def(), progresses.Def(), places.Def()}
}

// Doc is a function as read or written, without its code.
type Doc = docstore.Doc[Function]

// Filter selects functions whose members are equal to its own. Empty members select all.
type Filter struct {
	Code    string `query:"code" maxLength:"64"`
	Runtime string `query:"runtime" enum:"javascript,wasm"`
	Status  string `query:"status" enum:"1,0"`
	textindex.Search
	docstore.Paging
}

// List returns a page of functions, without their code.
func (s *Functions) List(ctx context.Context, f Filter) (docstore.Page[Function], error) {
	where := docstore.And(docstore.EqOrAll(byCode, f.Code), docstore.EqOrAll(byRuntime, f.Runtime),
		docstore.EqOrAll(byStatus, f.Status), textindex.HavingPart(f.Keyword))
	return functions.List(ctx, s.Store, where, f.Paging)
}

// Get returns a function with its code. The error is apperr.NotFound.
func (s *Functions) Get(ctx context.Context, id string) (Detail, error) {
	doc, err := functions.Find(ctx, s.Store, id)
	if err != nil {
		return Detail{}, err
	}
	return detail(ctx, s.Store, doc)
}

// Create adds a function. A WebAssembly function may get its module later. The error is apperr.InvalidParameters,
// AlreadyExists, InvalidState if the tenant has too many functions, or Unavailable if no worker can compile the code
// now.
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
		err := functions.CheckLimit(ctx, tx, docstore.Filter{}, maxFunctions, "a tenant has at most %d functions")
		if err != nil {
			return Detail{}, err
		}
		f := &Function{Meta: docstore.Meta{ID: id}, Profile: d.Profile, Revisions: []Revision{}}
		if content != nil {
			if err := setCode(ctx, tx, f, content, request.From(ctx).Actor); err != nil {
				return Detail{}, err
			}
		}
		doc, err := functions.Insert(ctx, tx, f)
		return withCode(ctx, tx, doc, err)
	})
}

// checked completes a draft and reports all its faults, also those of compiling its code. before is the stored
// function, nil for a new one. It returns the code of the next revision: the draft's or, if only runtime or entry
// change, the present code; nil if there is no next revision.
func (s *Functions) checked(ctx context.Context, d *Draft, before *Function) (content []byte, err error) {
	var faults apperr.Faults
	d.complete()
	var old *Profile
	if before != nil {
		old = &before.Profile
	}
	d.check(&faults, old)
	if err := s.checkTypes(ctx, &faults, &d.Profile, old); err != nil {
		return nil, err
	}
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

// Update applies edit to a function. A draft without code keeps the code. Other code, another runtime or another entry
// make a new revision. The error is apperr.NotFound, VersionMismatch, one of Create's, or that of edit.
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
		if f.Version != before.Version { // it was changed after the draft was made from it
			return Detail{}, docstore.Mismatch(f.Version)
		}
		f.Profile = draft.Profile
		if r := f.current(); content != nil && (r == nil || r.Runtime != f.Runtime || r.Entry != f.Entry ||
			r.SHA256 != hash(content)) {
			if err := setCode(ctx, tx, f, content, request.From(ctx).Actor); err != nil {
				return Detail{}, err
			}
		}
		doc, err := functions.Replace(ctx, tx, f)
		return withCode(ctx, tx, doc, err)
	})
}

// Rollback creates a revision with the code, runtime and entry of an earlier one; 0 stands for the latest before the
// current one. The error is apperr.NotFound, VersionMismatch, or InvalidState if that revision is not kept.
func (s *Functions) Rollback(ctx context.Context, id string, revision int64) (Detail, error) {
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (Detail, error) {
		f, err := functions.Load(ctx, tx, id)
		if err != nil {
			return Detail{}, err
		}
		from := revision
		if from == 0 && len(f.Revisions) > 1 {
			from = f.Revisions[1].Revision
		}
		r := f.revision(from)
		if r == nil {
			return Detail{}, apperr.New(apperr.InvalidState, "there is no such revision, or its code is no longer kept")
		}
		content, err := content(ctx, tx, id, from)
		if err != nil {
			return Detail{}, err
		}
		f.Runtime, f.Entry = r.Runtime, r.Entry
		if err := setCode(ctx, tx, f, content, request.From(ctx).Actor); err != nil {
			return Detail{}, err
		}
		doc, err := functions.Replace(ctx, tx, f)
		return withCode(ctx, tx, doc, err)
	})
}

// Delete removes a function with its revisions, logs and waiting runs. The error is apperr.NotFound, VersionMismatch,
// or InUse if it is the target of jobs.
func (s *Functions) Delete(ctx context.Context, id string) (docstore.Deleted, error) {
	return functions.Remove(ctx, s.Store, id, func(tx *docstore.Tx, _ *Function) error {
		if err := s.unused(ctx, tx, id); err != nil {
			return err
		}
		of := docstore.Eq(byFunction, docstore.Text(id))
		if err := codes.DeleteWhere(ctx, tx, of, nil); err != nil {
			return err
		}
		if err := logs.DeleteWhere(ctx, tx, of, nil); err != nil {
			return err
		}
		if err := runs.DeleteWhere(ctx, tx, of, nil); err != nil {
			return err
		}
		return deleteProgress(ctx, tx, id)
	})
}

// unused returns apperr.InUse if jobs run the function. The transaction of a job that is created meanwhile depends on
// the function, so one of the two transactions runs again.
func (s *Functions) unused(ctx context.Context, tx *docstore.Tx, id string) error {
	n, err := s.Jobs(ctx, tx, id)
	if err != nil {
		return err
	}
	return apperr.InUseBy("jobs run the function", apperr.Use{What: "jobs", Count: n})
}

// Exists reports whether the context's tenant has a function. The transaction depends on it.
func (s *Functions) Exists(ctx context.Context, tx *docstore.Tx, id string) (bool, error) {
	_, err := functions.Find(ctx, tx, id)
	return err == nil, apperr.Ignore(err, apperr.NotFound)
}

func withCode(ctx context.Context, tx *docstore.Tx, doc Doc, err error) (Detail, error) {
	if err != nil {
		return Detail{}, err
	}
	return detail(ctx, tx, doc)
}
