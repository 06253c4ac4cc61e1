package httpapi

import (
	"context"
	"net/http"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/identity-sources/internal/domain"
)

func (a *api) registerDomains(s *rest.Server) {
	rest.Named[domain.Domain](s, "ConnectionDomain")
	const all, one = oneConnection + "/domains", "/v1/idp/connections/{connection_id}/domains/{id}"
	rest.Handle(s, rest.Op{
		ID: "create-connection-domain", Method: http.MethodPost, Path: all, Scope: auth.IdentitySourcesWrite,
		IfMatchParam: rest.NoRecord, Summary: "Add a mail domain to a connection",
		Errors: []apperr.Kind{apperr.AlreadyExists, apperr.InvalidState, apperr.Unavailable},
		Doc: "Publish the TXT record of the answer in the DNS, and verify the domain. Then the sign-in page asks for " +
			"the login name first, and a name of the domain leads to the connection. With `enforce` 1, users whose " +
			"username or email is of the domain cannot use their passwords in applications that offer the " +
			"connection. Users of `exempt_user_ids` can.",
		Request: exampleDomain,
	}, a.createDomain)
	rest.Handle(s, rest.Op{
		ID: "list-connection-domains", Method: http.MethodGet, Path: all, Scope: auth.IdentitySourcesRead,
		IfMatchParam: rest.NoRecord, Summary: "List the mail domains of a connection",
	}, a.listDomains)
	rest.Handle(s, rest.Op{
		ID: "get-connection-domain", Method: http.MethodGet, Path: one, Scope: auth.IdentitySourcesRead,
		Summary: "Get a mail domain of a connection",
	}, func(ctx context.Context, in *DomainPath) (rest.Record[domain.Domain], error) {
		return rest.RecordOf[domain.Domain](a.domains.Get(ctx, in.place()))
	})
	rest.Handle(s, rest.Op{
		ID: "update-connection-domain", Method: http.MethodPatch, Path: one, Scope: auth.IdentitySourcesWrite,
		Summary: "Change a mail domain of a connection", Errors: []apperr.Kind{apperr.Unavailable},
		Doc:     "JSON merge patch (RFC 7396). The name of the domain can't be changed.",
		Request: map[string]any{"enforce": "1"},
	}, a.updateDomain)
	rest.Handle(s, rest.Op{
		ID: "delete-connection-domain", Method: http.MethodDelete, Path: one, Scope: auth.IdentitySourcesWrite,
		Summary: "Delete a mail domain of a connection",
		Doc:     "Login names of the domain lead to the connection no more.",
	}, func(ctx context.Context, in *DomainPath) (rest.Deleted, error) {
		return a.domains.Delete(ctx, in.place())
	})
	rest.Handle(s, rest.Op{
		ID: "verify-connection-domain", Method: http.MethodPost, Path: one + "/verify", NoReplay: true,
		Scope: auth.IdentitySourcesWrite, Summary: "Verify a mail domain of a connection",
		Doc: "Looks up the TXT record, for 5 seconds at most. `status` and `failure` say what became of it. The " +
			"record of a verified domain is looked up every week. A domain is not verified any more if its record is " +
			"missing for a week, or if the name server gives no answer for four weeks.",
	}, func(ctx context.Context, in *DomainPath) (rest.Record[domain.Domain], error) {
		return rest.RecordOf[domain.Domain](a.domains.Verify(ctx, in.place()))
	})
}

var exampleDomain = map[string]any{"domain": "acme.test", "enforce": "0"}

// DomainPath is the path of one domain.
type DomainPath struct {
	ConnectionID string `path:"connection_id" maxLength:"64" doc:"The connection's id" example:"1048577"`
	rest.ByID
}

func (p *DomainPath) place() domain.Path { return domain.Path{ConnectionID: p.ConnectionID, ID: p.ID} }

type createDomainInput struct {
	rest.ByID
	Body rest.JSON[rest.Input[domain.Domain]]
}

func (a *api) createDomain(ctx context.Context, in *createDomainInput) (rest.Record[domain.Domain], error) {
	var draft domain.Profile
	if err := in.Body.Into(&draft); err != nil {
		return rest.Record[domain.Domain]{}, err
	}
	return rest.RecordOf[domain.Domain](a.domains.Create(ctx, in.ID, draft))
}

type listDomainsInput struct {
	rest.ByID
	docstore.Paging
}

func (a *api) listDomains(ctx context.Context, in *listDomainsInput) (rest.List[domain.Domain], error) {
	page, err := a.domains.List(ctx, in.ID, in.Paging)
	return rest.ListOf[domain.Domain](in.Paging, page, err)
}

type updateDomainInput struct {
	DomainPath
	Body rest.MergePatch[rest.Input[domain.Domain]]
}

func (a *api) updateDomain(ctx context.Context, in *updateDomainInput) (rest.Record[domain.Domain], error) {
	return rest.RecordOf[domain.Domain](a.domains.Update(ctx, in.place(),
		func(p *domain.Profile) error { return in.Body.Into(p) }))
}
