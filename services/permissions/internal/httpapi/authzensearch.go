package httpapi

import (
	"context"
	"net/http"
	"sort"
	"strconv"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/permissions/internal/engine"
)

func (a *api) registerAuthZENSearches(s *rest.Server) {
	for _, search := range []struct {
		of      string
		handler func(context.Context, *searchInput) (SearchResults, error)
		result  any
	}{
		{"subject", a.searchSubjects, map[string]any{"type": "user", "id": "alice"}},
		{"resource", a.searchResources, map[string]any{"type": "record", "id": "101"}},
		{"action", a.searchActions, map[string]any{"name": "read"}},
	} {
		rest.Handle(s, authZEN(rest.Op{
			ID: "search-" + search.of + "s", Path: "/access/v1/search/" + search.of,
			Summary: "Search " + search.of + "s (AuthZEN)",
			Doc: "`page.next_token` is not empty while more results follow. The results are never cut: the answer is " +
				"an error if too many records must be examined.",
			Response: map[string]any{"page": map[string]any{"next_token": "", "count": 1, "total": 1},
				"results": []any{search.result}},
		}), search.handler)
	}
	rest.Handle(s, rest.Op{
		ID: "get-authzen-configuration", Method: http.MethodGet, Path: "/.well-known/authzen-configuration",
		Summary: "Get the AuthZEN configuration", Response: discovery("https://id.acme.test"),
	}, a.authzenConfiguration)
}

// Search is an evaluation without the part that is searched for, and the requested page.
type Search struct {
	Evaluation
	Page *SearchPage `json:"page,omitempty" doc:"AuthZEN 1.0: which page"`
}

// SearchPage is the requested page.
type SearchPage struct {
	Token string `json:"token,omitempty" doc:"next_token of an earlier page of the same search"`
	Limit int    `json:"limit,omitempty" minimum:"0" maximum:"1000" doc:"Absent: 1000"`
}

// SearchResults are a page of what was found.
type SearchResults struct {
	Page    SearchedPage `json:"page" doc:"AuthZEN 1.0: where the next page is"`
	Results []Found      `json:"results" doc:"AuthZEN 1.0: what was found"`
}

// SearchedPage describes a page of results.
type SearchedPage struct {
	NextToken string `json:"next_token" doc:"Empty on the last page"`
	Count     int    `json:"count" doc:"AuthZEN 1.0: results of this page"`
	Total     int    `json:"total" doc:"AuthZEN 1.0: results of all pages"`
}

// Found is a subject or resource, with type and id, or an action, with name.
type Found struct {
	Type string `json:"type,omitempty" doc:"AuthZEN 1.0: of a subject or resource"`
	ID   string `json:"id,omitempty" doc:"AuthZEN 1.0: of a subject or resource"`
	Name string `json:"name,omitempty" doc:"AuthZEN 1.0: of an action"`
}

type searchInput struct {
	Consistency
	Body rest.JSON[Search]
}

// search reads and checks a search for one part of an evaluation, runs find, and answers with the requested page.
func (a *api) search(
	ctx context.Context, in *searchInput, of part, find func(*engine.State, evaluation, *engine.Question) ([]Found,
		error),
) (SearchResults, error) {
	var body struct {
		evaluation
		Page SearchPage `json:"page"`
	}
	if err := in.Body.Into(&body); err != nil {
		return SearchResults{}, err
	}
	var faults apperr.Faults
	body.check(&faults, of)
	if err := faults.Err(); err != nil {
		return SearchResults{}, err
	}
	asked := body.about(ctx, of)
	var after string
	if body.Page.Token != "" {
		var err error
		if after, err = docstore.ReadPageToken(ctx, body.Page.Token, asked...); err != nil {
			return SearchResults{}, apperr.Invalid("page.token", "is not a token of a page of this search")
		}
	}
	state, err := a.state(ctx, in.Token)
	if err != nil {
		return SearchResults{}, err
	}
	q := a.question(ctx, state, body.evaluation)
	var done func()
	q.Work, done = a.work(ctx)
	defer done()
	found, err := find(state, body.evaluation, q)
	if err != nil {
		return SearchResults{}, answerable(err)
	}
	return pageOfFound(ctx, found, after, body.Page.Limit, asked), nil
}

// about says what a search is about: a page token is only for a search about the same. Properties and context may
// change from page to page.
func (e *evaluation) about(ctx context.Context, of part) []string {
	query := []string{"search", strconv.Itoa(int(of)), e.Subject.Type, e.Subject.ID, e.Resource.Type, e.Resource.ID,
		applicationOf(ctx, e.Resource)}
	if e.Action != nil {
		query = append(query, e.Action.Name)
	}
	return query
}

// maxResults is how many results a page has at most.
const maxResults = 1000

// pageOfFound returns the page of results that follows a key; asked is what the search is about.
func pageOfFound(ctx context.Context, found []Found, after string, limit int, asked []string) SearchResults {
	key := func(f Found) string { return f.ID + f.Name }
	sort.Slice(found, func(i, j int) bool { return key(found[i]) < key(found[j]) })
	results := SearchResults{Results: []Found{}, Page: SearchedPage{Total: len(found)}}
	from := sort.Search(len(found), func(i int) bool { return key(found[i]) > after })
	if after == "" {
		from = 0
	}
	if limit <= 0 {
		limit = maxResults
	}
	to := min(from+limit, len(found))
	results.Results = append(results.Results, found[from:to]...)
	results.Page.Count = to - from
	if to < len(found) {
		results.Page.NextToken = docstore.PageToken(ctx, key(found[to-1]), asked...)
	}
	return results
}

func (a *api) searchSubjects(ctx context.Context, in *searchInput) (SearchResults, error) {
	return a.search(ctx, in, forSubjects, func(s *engine.State, e evaluation, q *engine.Question) ([]Found, error) {
		who, err := s.Identities(ctx, q, e.Subject.Type)
		found := make([]Found, len(who))
		for i := range who {
			found[i] = Found{Type: who[i].Type, ID: nameOf(s, who[i])}
		}
		return found, err
	})
}

func (a *api) searchResources(ctx context.Context, in *searchInput) (SearchResults, error) {
	return a.search(ctx, in, forResources, func(s *engine.State, e evaluation, q *engine.Question) ([]Found, error) {
		q.ObjectCode = ""
		objects, err := s.Objects(ctx, q)
		var found []Found
		for _, o := range objects {
			named := *q
			named.ObjectCode = o.Resource.Code
			id, ok := typed(e.Resource.Type, o.Resource.Code)
			if ok && s.Resource(&named) == o.Resource { // an evaluation of this code is about another one otherwise
				found = append(found, Found{Type: e.Resource.Type, ID: id})
			}
		}
		return found, err
	})
}

func (a *api) searchActions(ctx context.Context, in *searchInput) (SearchResults, error) {
	return a.search(ctx, in, forActions, func(s *engine.State, _ evaluation, q *engine.Question) ([]Found, error) {
		names, err := s.Actions(ctx, q)
		var found []Found
		for _, name := range names {
			found = append(found, Found{Name: name})
		}
		return found, err
	})
}

type authzenConfigurationInput struct {
	Host  string `header:"Host" hidden:"true"`
	Proto string `header:"X-Forwarded-Proto" hidden:"true"`
	Name  string `header:"X-Forwarded-Host" hidden:"true"`
}

// AuthZENConfiguration is the metadata of the policy decision point (Authorization API 1.0 §9).
type AuthZENConfiguration struct {
	PolicyDecisionPoint       string `json:"policy_decision_point" doc:"AuthZEN 1.0: its metadata"`
	AccessEvaluationEndpoint  string `json:"access_evaluation_endpoint" doc:"AuthZEN 1.0: its metadata"`
	AccessEvaluationsEndpoint string `json:"access_evaluations_endpoint" doc:"AuthZEN 1.0: its metadata"`
	SearchSubjectEndpoint     string `json:"search_subject_endpoint" doc:"AuthZEN 1.0: its metadata"`
	SearchResourceEndpoint    string `json:"search_resource_endpoint" doc:"AuthZEN 1.0: its metadata"`
	SearchActionEndpoint      string `json:"search_action_endpoint" doc:"AuthZEN 1.0: its metadata"`
}

func (a *api) authzenConfiguration(_ context.Context, in *authzenConfigurationInput) (AuthZENConfiguration, error) {
	scheme, host := "http", in.Host
	if in.Proto == "https" {
		scheme = "https"
	}
	if in.Name != "" {
		host = in.Name
	}
	return discovery(scheme + "://" + host), nil
}

// discovery is the metadata of the service at a base URL.
func discovery(base string) AuthZENConfiguration {
	return AuthZENConfiguration{
		base, base + "/access/v1/evaluation", base + "/access/v1/evaluations",
		base + "/access/v1/search/subject", base + "/access/v1/search/resource", base + "/access/v1/search/action",
	}
}
