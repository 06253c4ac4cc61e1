package application

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/services/applications/internal/toggle"
)

// administrators lists the applications, of all tenants, that can get tokens with the scope platform:admin. There is
// one document. It is written only when such an application comes or goes. An entry may be out of date after an
// upgrade; whoever relies on one reads the application.
type administrators struct {
	docstore.Meta
	Applications []string `json:"applications"` // the tenant, a slash, the id
}

const administratorsID = "platform"

var administratorLists = docstore.Define(docstore.Schema[administrators]{
	Name: "administrators", Noun: "list of administrators", NoIfMatch: true,
})

// administers reports whether the application can get tokens with the scope platform:admin.
func (a *Application) administers() bool {
	return a.Enabled() && a.Category == BackendService && slices.Contains(a.Scopes, string(auth.PlatformAdmin))
}

func (a *Application) entry() string { return a.TenantID + "/" + a.ID }

// inPlatform is a context for documents that belong to no tenant.
func inPlatform(ctx context.Context) context.Context {
	info := request.From(ctx)
	info.Tenant = request.Platform
	return request.With(ctx, info)
}

// noteAdministrator keeps the list of administrators in the transaction that changes an application. is says whether
// it administers the platform from now on. The error is apperr.InUse if no other application would.
func noteAdministrator(ctx context.Context, tx *docstore.Tx, a *Application, was, is bool) error {
	if was == is {
		return nil
	}
	list, err := administratorLists.Load(inPlatform(ctx), tx, administratorsID)
	if apperr.IsNotFound(err) {
		list, err = &administrators{Meta: docstore.Meta{ID: administratorsID}}, nil
	}
	if err != nil {
		return err
	}
	others := slices.DeleteFunc(slices.Clone(list.Applications), func(e string) bool { return e == a.entry() })
	if is {
		return putAdministrators(ctx, tx, list, append(others, a.entry()))
	}
	for _, other := range others {
		good, err := administers(ctx, tx, other)
		if err != nil {
			return err
		}
		if good {
			return putAdministrators(ctx, tx, list, others)
		}
	}
	refusal := apperr.New(apperr.InUse, "it is the last application with the scope %s", auth.PlatformAdmin)
	refusal.Faults = []apperr.Fault{{
		Location: "scopes", Message: "nobody else could administer the platform", Count: 1,
	}}
	return refusal
}

// administers reports whether an entry of the list is true. The transaction depends on the application.
func administers(ctx context.Context, tx *docstore.Tx, entry string) (bool, error) {
	tenant, id, _ := strings.Cut(entry, "/")
	info := request.From(ctx)
	info.Tenant = tenant
	a, err := Find(request.With(ctx, info), tx, id)
	if apperr.IsNotFound(err) {
		return false, nil
	}
	return err == nil && a.administers(), err
}

func putAdministrators(ctx context.Context, tx *docstore.Tx, list *administrators, entries []string) (err error) {
	list.Applications = entries
	if list.Version == 0 {
		_, err = administratorLists.Insert(inPlatform(ctx), tx, list)
	} else {
		_, err = administratorLists.Replace(inPlatform(ctx), tx, list)
	}
	return err
}

// ListAdministrators makes the list of administrators, for data of versions that had none.
func (s *Applications) ListAdministrators(ctx context.Context) error {
	_, err := administratorLists.Find(inPlatform(ctx), s.Store, administratorsID)
	if !apperr.IsNotFound(err) {
		return err
	}
	kinds := docstore.In(byKind, docstore.Text(kind(SelfBuilt, BackendService, toggle.On)),
		docstore.Text(kind(FromTemplate, BackendService, toggle.On)))
	var found []*Application
	err = applications.EachTenant(ctx, s.Store, func(ctx context.Context) error {
		return applications.Each(ctx, s.Store, kinds, func(doc Doc) error {
			a, err := doc.Value()
			if err == nil && a.administers() {
				found = append(found, a)
			}
			return err
		})
	})
	if err != nil {
		return err
	}
	err = docstore.Do(inPlatform(ctx), s.Store, func(tx *docstore.Tx) error {
		for _, a := range found {
			if err := noteAdministrator(ctx, tx, a, false, true); err != nil {
				return err
			}
		}
		return nil
	})
	if _, ok := errors.AsType[*docstore.DuplicateError](err); ok { // another replica made it meanwhile
		return nil
	}
	return err
}
