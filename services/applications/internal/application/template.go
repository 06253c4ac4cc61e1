package application

import (
	"encoding/json"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/services/applications/internal/template"
)

// fromTemplate is what an application gets from its template, whose parameters it must have.
func (s *Applications) fromTemplate(faults *apperr.Faults, a *Application) (Profile, bool) {
	t, ok := s.checkParams(faults, &a.Profile)
	if !ok {
		return Profile{}, false
	}
	version := a.TemplateParams.Version
	faults.Check(version == "" || version == t.Version, "template_params.version", "is not in the catalogue")
	base := Profile{}
	members, err := t.Fill(a.TemplateParams.Params)
	if err == nil {
		err = json.Unmarshal(members, &base)
	}
	if err != nil {
		faults.Add("template_params.params", "does not fit the template")
		return Profile{}, false
	}
	base.TemplateID, base.TemplateParams.Version, base.Type = t.TemplateID, t.Version, FromTemplate
	base.ProtocolType, base.Category, base.Logo = t.ProtocolType, t.Category, t.Logo
	return base, true
}

// checkParams checks template and parameters of an application, and reports whether there is a template with good ones.
func (s *Applications) checkParams(faults *apperr.Faults, p *Profile) (*template.Template, bool) {
	if p.TemplateID == "" {
		faults.Check(p.TemplateParams.IsZero(), "template_params", "needs a template")
		return nil, false
	}
	t, ok := s.Templates.Find(p.TemplateID)
	if !ok {
		faults.Add("template_id", "is not in the catalogue")
		return nil, false
	}
	return t, t.Check(faults.Within("template_params.params"), p.TemplateParams.Params)
}
