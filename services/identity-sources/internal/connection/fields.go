package connection

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/services/identity-sources/internal/provider"
)

// Fields are a connection's config_fields. Members that the provider marks as secrets are encrypted; in JSON they are
// masks.
type Fields map[string]Field

// Field is one value: any JSON, or a secret.
type Field struct {
	json   json.RawMessage
	secret *secret.Text
}

// UnmarshalJSON keeps any value. The provider's schema says whether it is a secret.
func (f *Field) UnmarshalJSON(text []byte) error {
	*f = Field{json: bytes.Clone(text)}
	return nil
}

// MarshalJSON returns the value; for a secret, the mask.
func (f Field) MarshalJSON() ([]byte, error) {
	if f.secret != nil {
		return f.secret.MarshalJSON()
	}
	return f.json, nil
}

// text returns the value of a text field; "" for other types.
func (f Fields) text(name string) (text string) {
	_ = json.Unmarshal(f[name].json, &text) // other types stay ""
	return text
}

// secrets returns the secret members, by name, for the store to encrypt.
func (f Fields) secrets(p *provider.Provider) map[string]*secret.Text {
	found := map[string]*secret.Text{}
	for _, name := range p.Secrets {
		field, ok := f[name]
		if !ok {
			continue
		}
		if field.secret == nil {
			field.secret = new(secret.Text)
			if err := json.Unmarshal(field.json, field.secret); err != nil {
				continue // not a text: check refuses it
			}
			f[name] = field
		}
		found[name] = field.secret
	}
	return found
}

// check reports every fault of the fields in a request. A mask stands for the secret in before, if there is one.
func (f Fields) check(faults *apperr.Faults, p *provider.Provider, before Fields) error {
	sent := map[string]json.RawMessage{}
	for name, field := range f {
		sent[name] = field.json
	}
	text, err := json.Marshal(sent)
	if err != nil {
		return err
	}
	var all apperr.Faults
	p.Validate(&all, text)
	masked := map[string]bool{}
	for _, name := range p.Secrets {
		if f.text(name) == secret.Mask {
			masked[name] = true
			_, kept := before[name]
			faults.Check(kept, name, "must be the secret itself: there is none that the mask could keep")
		}
	}
	if refusal, ok := errors.AsType[*apperr.Error](all.Err()); ok {
		for _, fault := range refusal.Faults {
			faults.Check(masked[fault.Location], fault.Location, "%s", fault.Message)
		}
	}
	return nil
}
