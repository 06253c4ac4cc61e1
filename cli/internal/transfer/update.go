package transfer

import (
	"context"
	"maps"
	"net/http"
	"slices"

	"github.com/idplatform/idplatform/cli/internal/session"
	idp "github.com/idplatform/idplatform/sdk/go"
)

// updater is a kind of records that --on-conflict update changes.
type updater interface {
	// change makes the requests that change a record which is there already; or says why it cannot be changed. They
	// can be sent twice. ids are those of names.
	change(ctx context.Context, i *importer, r *record, found ids) (calls []*session.Call, reason string, err error)
}

// updateExisting changes the records of a batch that are there already, in their order. Changing one twice is changing
// it once, so an import that was killed meanwhile begins with the first one again.
func (i *importer) updateExisting(ctx context.Context, list []*record, kind batched) error {
	b := i.progress.Current
	changes, can := kind.(updater)
	if !can || i.options.OnConflict != update || len(b.Exists) == 0 {
		return nil
	}
	existing := slices.Sorted(maps.Keys(b.Exists))
	for _, group := range kind.group(pick(list, existing)) {
		numbers := pick(existing, group)
		var names []name
		for _, n := range numbers { // each by itself: none is made in the request of another
			names = append(names, kind.names([]*record{list[n]})...)
		}
		found, err := i.find(ctx, names)
		if err != nil {
			return err
		}
		for _, n := range numbers {
			reason, err := i.updateOne(ctx, changes, list[n], found)
			if err != nil {
				return err
			}
			if reason != "" {
				b.Aside[n] = reason
			} else {
				b.Made[updated]++
			}
		}
	}
	clear(b.Exists)
	return nil
}

// updateOne changes a record, or says why it could not.
func (i *importer) updateOne(ctx context.Context, kind updater, r *record, found ids) (reason string, err error) {
	calls, reason, err := kind.change(ctx, i, r, found)
	if err != nil || reason != "" {
		return reason, err
	}
	for _, call := range calls {
		err := i.patiently(ctx, func() error {
			response, err := i.Send(ctx, call)
			if err != nil {
				return err
			}
			return response.Body.Close()
		}, func() bool { return false })
		problem, refused := isAboutRecords(err)
		switch {
		case refused && len(problem.Errors) > 0:
			return faultsOf(problem.Errors), nil
		case refused:
			return problem.Error(), nil
		case idp.CodeOf(err) == idp.CodeVersionMismatch:
			return "was changed by somebody else meanwhile: import it again", nil
		case err != nil:
			return "", err
		}
	}
	return "", nil
}

// patched is the request that changes the given members of a record; none if there are none.
func patched(operation, id string, item any, members int) []*session.Call {
	if members == 0 {
		return nil
	}
	return []*session.Call{{
		Operation: session.Operation(operation), Path: []string{id}, Body: encoded(item), Header: http.Header{},
	}}
}
