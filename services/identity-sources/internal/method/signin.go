package method

import (
	"context"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/identity-sources/internal/connection"
	"github.com/idplatform/idplatform/services/identity-sources/internal/domain"
	"github.com/idplatform/idplatform/services/questions"
)

// ForSignIn returns the steps of the template with a code, or of the default template for "", with the methods that are
// enabled.
func (s *Templates) ForSignIn(ctx context.Context, q questions.TemplateCode) (questions.LoginTemplate, error) {
	answer := questions.LoginTemplate{Steps: []questions.LoginStep{}}
	where := docstore.Eq(byDefault, docstore.Text(On))
	if q.Code != "" {
		where = docstore.Eq(byCode, docstore.Text(q.Code))
	}
	doc, err := templates.First(ctx, s.store, where)
	if apperr.IsNotFound(err) {
		return answer, nil
	}
	if err != nil {
		return answer, err
	}
	t, err := doc.Value()
	if err != nil {
		return answer, err
	}
	enabled, err := s.enabled(ctx, t.methods())
	if err != nil {
		return answer, err
	}
	reachable, err := s.findConnections(ctx, enabled)
	answer.Found, answer.ID, answer.Code = true, t.ID, t.Code
	for _, step := range t.Steps {
		out := questions.LoginStep{
			Required: step.Required, Methods: []questions.LoginMethod{}, Enrol: step.enrol(), GraceDays: step.GraceDays,
			When: step.When,
		}
		for _, code := range step.Methods {
			if m, ok := enabled[code]; ok {
				out.Methods = append(out.Methods, questions.LoginMethod{
					Code: code, Type: m.Type, Second: m.Factor == "2", Policy: m.Policy,
					Connections: m.choose(reachable),
				})
			}
		}
		answer.Steps = append(answer.Steps, out)
	}
	return answer, err
}

// enabled returns those of the methods that are enabled, by their codes.
func (s *Templates) enabled(ctx context.Context, codes []string) (map[string]*Method, error) {
	values := make([]docstore.Value, len(codes))
	for i, c := range codes {
		values[i] = docstore.Text(c)
	}
	page, err := methods.Page(ctx, s.store, docstore.Query{Filter: docstore.In(byCode, values...), Limit: len(codes)})
	if err != nil {
		return nil, err
	}
	enabled := map[string]*Method{}
	for i := range page.Docs {
		m, err := page.Docs[i].Value()
		if err != nil {
			return nil, err
		}
		if m.Status == On {
			enabled[m.Code] = m
		}
	}
	return enabled, nil
}

// The types of methods whose sign-in happens at another provider.
const (
	social     = "social"
	enterprise = "enterprise"
)

// findConnections returns the enabled connections of some methods, by their ids.
func (s *Templates) findConnections(ctx context.Context, of map[string]*Method) (map[string]questions.Connection,
	error,
) {
	var ids []string
	for _, m := range of {
		if m.Type == social || m.Type == enterprise {
			ids = append(ids, m.ConnectionIDs...)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	found, err := connection.FindEnabled(ctx, s.store, ids)
	if err != nil {
		return nil, err
	}
	domains, err := domain.VerifiedOf(ctx, s.store, ids)
	for id, c := range found {
		c.Domains = domains[id]
		found[id] = c
	}
	return found, err
}

// choose returns the method's own connections among some, in the method's order.
func (m *Method) choose(reachable map[string]questions.Connection) (all []questions.Connection) {
	if m.Type != social && m.Type != enterprise {
		return nil
	}
	for _, id := range m.ConnectionIDs {
		if c, ok := reachable[id]; ok {
			all = append(all, c)
		}
	}
	return all
}
