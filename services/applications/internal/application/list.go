package application

import (
	"context"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/dnsname"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/textindex"
	"github.com/idplatform/idplatform/services/applications/internal/protocol"
	"github.com/idplatform/idplatform/services/applications/internal/toggle"
	"github.com/idplatform/idplatform/services/questions"
)

// Filter selects applications. The zero Filter selects all.
type Filter struct {
	Name     string `query:"name" maxLength:"256" doc:"A part of the name; case and width are ignored"`
	Type     string `query:"type" enum:"1,2"`
	Types    string `query:"types" maxLength:"64" doc:"Types, joined by commas; must hold together with type" example:"1,2"`
	Status   string `query:"status" enum:"1,0"`
	Category string `query:"category" enum:"1,2,3,4"`
	textindex.Search
	docstore.Selection
	docstore.Paging
}

func (f Filter) where() (docstore.Filter, error) {
	var faults apperr.Faults
	types, ids := docstore.Items(f.Types), f.ReadIDs(&faults)
	unknown := func(typ string) bool { return typ != SelfBuilt && typ != FromTemplate }
	faults.Check(!slices.ContainsFunc(types, unknown), "types", "must be 1, 2 or both, joined by a comma")
	all := []docstore.Filter{textindex.HavingPart(f.Keyword), docstore.IDOrAll(ids...)}
	if key := textindex.Key(f.Name); key != "" {
		all = append(all, textindex.Containing(byNameGram, byName, "", key))
	}
	if len(types) > 0 || f.Type != "" || f.Status != "" || f.Category != "" {
		all = append(all, docstore.In(byKind, f.kinds(types)...))
	}
	return docstore.And(all...), faults.Err()
}

// kinds are the values of byKind that the filter selects.
func (f Filter) kinds(types []string) []docstore.Value {
	kinds := []docstore.Value{}
	for _, typ := range []string{SelfBuilt, FromTemplate} {
		if f.Type != "" && typ != f.Type || len(types) > 0 && !slices.Contains(types, typ) {
			continue
		}
		for _, category := range []string{StandardWeb, SinglePage, ClientProgram, BackendService} {
			for _, status := range []string{toggle.On, toggle.Off} {
				if (f.Category == "" || f.Category == category) && (f.Status == "" || f.Status == status) {
					kinds = append(kinds, docstore.Text(kind(typ, category, status)))
				}
			}
		}
	}
	return kinds
}

// List returns a page of applications. The error is apperr.InvalidParameters (an unknown type, paging).
func (s *Applications) List(ctx context.Context, f Filter) (docstore.Page[Application], error) {
	where, err := f.where()
	if err != nil {
		return docstore.Page[Application]{}, err
	}
	return applications.List(ctx, s.Store, where, f.Paging)
}

// ByDomain returns the application with this host in its login URL, with this domain_sn, or with both; of several with
// the same host the oldest. The error is apperr.InvalidParameters if neither is given or NotFound.
func (s *Applications) ByDomain(ctx context.Context, host, domainSN string) (Doc, error) {
	if host == "" && domainSN == "" {
		return Doc{}, apperr.Invalid("domain", "or domain_sn must be given")
	}
	var all []docstore.Filter
	if host != "" {
		all = append(all, docstore.Eq(byHost, docstore.Text(dnsname.HostKey(host))))
	}
	if domainSN != "" {
		all = append(all, docstore.Eq(byDomainSN, docstore.Text(textindex.Key(domainSN))))
	}
	return applications.First(ctx, s.Store, docstore.And(all...))
}

const (
	// maxRecords is how many applications one answer to another service has.
	maxRecords = 500
	// maxLaunchable is fewer, because an answer must fit into a message of 1 MiB with the longest URLs.
	maxLaunchable = 200
)

// NextTenant returns the tenant that follows another among the tenants with applications; "" after the last. It answers
// a question of the permissions service, as Records does.
func (s *Applications) NextTenant(ctx context.Context, q questions.TenantName) (questions.TenantName, error) {
	next, err := applications.NextTenant(ctx, s.Store, q.Tenant)
	return questions.TenantName{Tenant: next}, err
}

// Records returns a page of the tenant's applications in the order of ids. apperr.InvalidParameters.
func (s *Applications) Records(ctx context.Context, q questions.RecordsPage) (questions.Applications, error) {
	if q.Limit < 1 || q.Limit > maxRecords {
		return questions.Applications{}, apperr.Invalid("limit", "must lie in 1…%d", maxRecords)
	}
	page, err := applications.Page(ctx, s.Store, docstore.Query{Limit: q.Limit, After: q.After})
	if err != nil {
		return questions.Applications{}, err
	}
	answer := questions.Applications{Applications: []questions.Application{}, Next: page.Next}
	for i := range page.Docs {
		a, err := page.Docs[i].Value()
		if err != nil {
			return questions.Applications{}, err
		}
		answer.Applications = append(answer.Applications, questions.Application{
			ID: a.ID, Name: a.Name, Sequence: docstore.FirstSequence(page.Docs[i].Revision()),
		})
	}
	return answer, nil
}

// Launchable returns those of a page of the tenant's applications that people can open from a list. It answers a
// question of the sign-in service. apperr.InvalidParameters.
func (s *Applications) Launchable(ctx context.Context, q questions.RecordsPage) (questions.Launchables, error) {
	if q.Limit < 1 || q.Limit > maxLaunchable {
		return questions.Launchables{}, apperr.Invalid("limit", "must lie in 1…%d", maxLaunchable)
	}
	var kinds []docstore.Value
	for _, typ := range []string{SelfBuilt, FromTemplate} {
		for _, category := range []string{StandardWeb, SinglePage, ClientProgram} {
			kinds = append(kinds, docstore.Text(kind(typ, category, toggle.On)))
		}
	}
	page, err := applications.Page(ctx, s.Store, docstore.Query{
		Filter: docstore.In(byKind, kinds...), Limit: q.Limit, After: q.After,
	})
	if err != nil {
		return questions.Launchables{}, err
	}
	answer := questions.Launchables{Applications: []questions.Launchable{}, Next: page.Next}
	for i := range page.Docs {
		a, err := page.Docs[i].Value()
		if err != nil {
			return questions.Launchables{}, err
		}
		here := a.ProtocolType == protocol.SAML && a.SignInProp.IdPInitiated == toggle.On
		if a.LoginURL != "" || here {
			answer.Applications = append(answer.Applications,
				questions.Launchable{ID: a.ID, Name: a.Name, LoginURL: a.LoginURL})
		}
	}
	return answer, nil
}

// OfConnection counts the applications that a connection is attached to. It answers a question of the identity-sources
// service.
func (s *Applications) OfConnection(ctx context.Context, q questions.ConnectionID) (questions.Count, error) {
	n, err := applications.Count(ctx, s.Store, docstore.Eq(byConnection, docstore.Text(q.ID)))
	return questions.Count{Count: n}, err
}
