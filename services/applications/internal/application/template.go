package application

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/services/applications/internal/template"
)

// fromTemplate returns what an application gets from its template, whose parameters it must have.
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
	base.ProtocolType, base.Category = t.ProtocolType, t.Category
	return base, true
}

// checkParams checks the template and parameters of an application. ok is false if there is no template or a fault.
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

// refill follows a change of the template's parameters: members that still have the value that the template gave them
// get the new value. Members that were changed, by this request or before, stay.
func (p *Profile) refill(faults *apperr.Faults, t *template.Template, former json.RawMessage) {
	current, err1 := json.Marshal(p)
	before, err2 := t.Fill(former)
	after, err3 := t.Fill(p.TemplateParams.Params)
	var now, was, next map[string]any
	err := errors.Join(err1, err2, err3)
	if err == nil {
		err = errors.Join(json.Unmarshal(current, &now), json.Unmarshal(before, &was), json.Unmarshal(after, &next))
	}
	if p.ProtocolType != t.ProtocolType {
		delete(next, "protocol_prop") // these are the settings of another protocol
	}
	patch := followed(now, was, next)
	for _, object := range []string{"protocol_prop", "config_prop"} {
		nowIn, _ := now[object].(map[string]any)
		wasIn, _ := was[object].(map[string]any)
		if nextIn, ok := next[object].(map[string]any); ok {
			patch[object] = followed(nowIn, wasIn, nextIn)
		}
	}
	p.ProtocolProp.ResponseAttr = slices.Clone(p.ProtocolProp.ResponseAttr) // decoding would overwrite the shared items
	text, failed := json.Marshal(patch)
	if err = errors.Join(err, failed); err == nil {
		err = json.Unmarshal(text, p)
	}
	if err != nil {
		faults.Add("template_params.params", "does not fit the template")
	}
}

// followed returns the members of next that differ from was, unless now differs from was, too.
func followed(now, was, next map[string]any) map[string]any {
	patch := map[string]any{}
	for name, value := range next {
		present := now[name]
		if present == nil && was[name] == "" {
			present = "" // an empty text may be left out
		}
		if !reflect.DeepEqual(was[name], value) && reflect.DeepEqual(present, was[name]) {
			patch[name] = value
		}
	}
	return patch
}
