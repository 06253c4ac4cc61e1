package method

import (
	"context"
	"fmt"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/condition"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/outbox"
	"github.com/idplatform/idplatform/pkg/textindex"
	"github.com/idplatform/idplatform/services/questions/loginstep"
)

const (
	maxSteps         = 10
	maxMethodsOfStep = 20
)

// Template is an authentication template record. It has the same JSON form in the API, in events and in the store.
type Template struct {
	docstore.Meta
	TemplateProfile
	IsDefault string `json:"is_default" readOnly:"true" enum:"1,0" doc:"1 for exactly one of the tenant"`
}

// TemplateProfile holds the members that clients can set.
type TemplateProfile struct {
	Code  string `json:"code" required:"true" doc:"1…64 letters, digits or . _ -; unique" example:"staff"`
	Name  string `json:"name" required:"true" doc:"1…128 characters" example:"Staff"`
	Steps []Step `json:"steps" required:"true" doc:"1…10 steps, at least one of them required"`
}

// Step is one step of a login. Any one of its methods completes it. A step that is not required is one for those who
// have a factor for it.
type Step struct {
	Methods   []string `json:"methods" doc:"1…20 codes of authentication methods; any one passes the step" example:"pwd"`
	Required  bool     `json:"required" required:"false" doc:"Whether everybody has to complete the step. Others are asked of those who have a factor for it" example:"true"`
	Enrol     string   `json:"enrol,omitempty" enum:"demand,offer,off" doc:"What becomes of people who have no factor for the step. demand: they set one up before they go on. offer: they can, or go on without, and are asked again after 30 days. off: nobody can set one up at the step, so a required step lets them not in. Absent: demand for a required step, offer for others" example:"demand"`
	GraceDays int      `json:"grace_days,omitempty" minimum:"0" maximum:"365" doc:"With demand: for how many days people can go on without a factor. They begin when the person first does so; the person is asked once a day" example:"14"`
	When      string   `json:"when,omitempty" maxLength:"4096" doc:"A condition (CEL) over user (the record), groups (as in tokens), address (of the browser), known_browser (the person has signed in there with two factors within 90 days), application (id, client_id, name, category) and acr (the classes that the request asks for, which whoever signs in can change). The step is there where it holds, or cannot be decided. Absent: always" example:"!cidr(\"10.0.0.0/8\").containsIP(address)"`
}

// The values of Step.Enrol.
const (
	EnrolDemand = "demand"
	EnrolOffer  = "offer"
	EnrolOff    = "off"
)

const maxGrace = 365 // days

// enrol is what becomes of people without a factor for the step.
func (s *Step) enrol() string {
	switch {
	case s.Enrol != "":
		return s.Enrol
	case s.Required:
		return EnrolDemand
	}
	return EnrolOffer
}

// check reports every fault of a step, and returns what its condition costs at most.
func (s *Step) check(faults *apperr.Faults, at string) (cost int64) {
	methods := at + ".methods"
	faults.Check(len(s.Methods) >= 1 && len(s.Methods) <= maxMethodsOfStep, methods, "must have 1…%d items",
		maxMethodsOfStep)
	distinct(faults, methods, s.Methods, maxMethodsOfStep)
	faults.Check(slices.Contains([]string{"", EnrolDemand, EnrolOffer, EnrolOff}, s.Enrol), at+".enrol",
		"must be demand, offer or off")
	faults.Check(s.GraceDays >= 0 && s.GraceDays <= maxGrace, at+".grace_days", "must lie between 0 and %d", maxGrace)
	faults.Check(s.GraceDays == 0 || s.enrol() == EnrolDemand, at+".grace_days", "can be given only with enrol demand")
	if s.When == "" {
		return 0
	}
	cost, err := loginstep.Cost(s.When)
	if err != nil {
		faults.Add(at+".when", "%s", err)
	}
	return cost
}

var templates = outbox.Define("auth_template", "/auth-templates", docstore.Schema[Template]{
	Name: "auth_templates", Noun: "authentication template",
	Sortable: []string{byTimeCreated, byCode, byName, byTimeModified},
	Indexes: slices.Concat([]docstore.Index[Template]{
		docstore.Unique(docstore.ByText(byCode, func(t *Template) string { return t.Code }), "code"),
		docstore.ByText(byName, func(t *Template) string { return textindex.Key(t.Name) }),
		docstore.ByList(byMethod, (*Template).methods),
		docstore.Unique(docstore.ByText(byDefault, (*Template).defaultKey), "is_default"),
		docstore.ByNumber(byTimeCreated, func(t *Template) docstore.Value { return docstore.Moment(t.TimeCreated) }),
		docstore.ByNumber(byTimeModified, func(t *Template) docstore.Value { return docstore.Moment(t.TimeModified) }),
	}, textindex.KeywordIndexes(func(t *Template) []string { return []string{t.Name, t.Code} })),
})

// defaultKey is the value of the default template in a unique index; other templates have none.
func (t *Template) defaultKey() string {
	if t.IsDefault == On {
		return On
	}
	return ""
}

// methods returns the codes in the steps, each once.
func (p *TemplateProfile) methods() []string {
	var all []string
	for _, step := range p.Steps {
		all = append(all, step.Methods...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (t *Template) methods() []string { return t.TemplateProfile.methods() }

func (p *TemplateProfile) check(faults *apperr.Faults) {
	faults.Code("code", p.Code)
	faults.Name("name", p.Name, maxName)
	faults.Check(len(p.Steps) >= 1 && len(p.Steps) <= maxSteps, "steps", "must have 1…%d items", maxSteps)
	required, cost := false, int64(0)
	for i := range p.Steps {
		step := &p.Steps[i]
		cost += step.check(faults, apperr.Item("steps", i))
		required = required || step.Required && step.When == ""
	}
	faults.Check(required || len(p.Steps) == 0, "steps", "must have a step that is required and has no condition")
	faults.Check(cost <= condition.MaxCost, "steps", "have conditions that could take too long together")
}

// checkMethods reports a fault at each code of an unknown method. It is called inside a Write, which then depends on
// the methods.
func (p *TemplateProfile) checkMethods(ctx context.Context, tx *docstore.Tx) error {
	codes := p.methods()
	values := make([]docstore.Value, len(codes))
	for i, c := range codes {
		values[i] = docstore.Text(c)
	}
	found, err := methods.LoadWhere(ctx, tx, docstore.In(byCode, values...), "", len(codes))
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, m := range found {
		there[m.Code] = true
	}
	var faults apperr.Faults
	for i, step := range p.Steps {
		for j, c := range step.Methods {
			faults.Check(there[c], fmt.Sprintf("steps[%d].methods[%d]", i, j),
				"must be the code of an authentication method")
		}
	}
	return faults.Err()
}

// Templates are the use cases of authentication templates.
type Templates struct{ store *docstore.Store }

// TemplateDoc is a template as read or written.
type TemplateDoc = docstore.Doc[Template]

// TemplateFilter selects templates. An empty member means any.
type TemplateFilter struct {
	Code string `query:"code" maxLength:"64"`
	textindex.Search
	docstore.Paging
}

// List returns a page of templates. The error is apperr.InvalidParameters (paging).
func (s *Templates) List(ctx context.Context, f TemplateFilter) (docstore.Page[Template], error) {
	where := docstore.And(docstore.EqOrAll(byCode, f.Code), textindex.HavingPart(f.Keyword))
	return templates.List(ctx, s.store, where, f.Paging)
}

// Get returns a template. The error is apperr.NotFound.
func (s *Templates) Get(ctx context.Context, id string) (TemplateDoc, error) {
	return templates.Find(ctx, s.store, id)
}

// Create adds a template. The error is apperr.InvalidParameters or AlreadyExists.
func (s *Templates) Create(ctx context.Context, draft TemplateProfile) (TemplateDoc, error) {
	var faults apperr.Faults
	draft.check(&faults)
	if err := faults.Err(); err != nil {
		return TemplateDoc{}, err
	}
	id, err := s.store.NewID(ctx)
	if err != nil {
		return TemplateDoc{}, err
	}
	return docstore.Write(ctx, s.store, func(tx *docstore.Tx) (TemplateDoc, error) {
		if err := draft.checkMethods(ctx, tx); err != nil {
			return TemplateDoc{}, err
		}
		return templates.Insert(ctx, tx,
			&Template{Meta: docstore.Meta{ID: id}, TemplateProfile: draft, IsDefault: Off})
	})
}

// Update applies edit to a template. The error is apperr.NotFound, InvalidParameters, AlreadyExists or VersionMismatch.
func (s *Templates) Update(ctx context.Context, id string, edit func(*TemplateProfile) error) (TemplateDoc, error) {
	return templates.Edit(ctx, s.store, id, func(tx *docstore.Tx, t *Template) error {
		if err := edit(&t.TemplateProfile); err != nil {
			return err
		}
		var faults apperr.Faults
		t.TemplateProfile.check(&faults)
		if err := faults.Err(); err != nil {
			return err
		}
		return t.checkMethods(ctx, tx)
	})
}

// MakeDefault makes a template the tenant's default in place of the previous one. The error is apperr.NotFound or
// VersionMismatch.
func (s *Templates) MakeDefault(ctx context.Context, id string) (TemplateDoc, error) {
	return templates.Edit(ctx, s.store, id, func(tx *docstore.Tx, t *Template) error {
		before, err := templates.LoadWhere(ctx, tx, docstore.Eq(byDefault, docstore.Text(On)), "", 1)
		if err != nil {
			return err
		}
		for _, other := range before {
			if other.ID == id {
				continue
			}
			other.IsDefault = Off // first, because there is never more than one default
			if _, err := templates.Replace(ctx, tx, other); err != nil {
				return err
			}
		}
		t.IsDefault = On
		return nil
	})
}

// Delete deletes a template that is not the default. The error is apperr.NotFound, InvalidState or VersionMismatch.
func (s *Templates) Delete(ctx context.Context, id string) (docstore.Deleted, error) {
	return templates.Remove(ctx, s.store, id, func(_ *docstore.Tx, t *Template) error {
		if t.IsDefault == On {
			return apperr.New(apperr.InvalidState,
				"the default template can't be deleted; make another one the default first")
		}
		return nil
	})
}
