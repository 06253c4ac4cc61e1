package application

import (
	"context"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/services/applications/internal/protocol"
	"github.com/idplatform/idplatform/services/applications/internal/toggle"
)

var noSecret secret.String

// Protocols lists an application's protocols with a status ("" for all), in the order in which they were set up. The
// error is apperr.NotFound.
func (s *Applications) Protocols(ctx context.Context, id, status string) ([]protocol.Doc, error) {
	if _, err := s.Get(ctx, id); err != nil {
		return nil, err
	}
	page, err := protocol.Protocols.Page(ctx, s.Store, docstore.Query{
		Filter: protocol.OfApplication(id), Limit: len(protocol.Types),
	})
	if err != nil {
		return nil, err
	}
	docs := []protocol.Doc{}
	for _, doc := range page.Docs {
		p, err := doc.Value()
		if err != nil {
			return nil, err
		}
		if status == "" || p.Status == status {
			docs = append(docs, doc)
		}
	}
	return docs, nil
}

// Protocol returns one protocol of an application. The error is apperr.NotFound, also if it was never set up.
func (s *Applications) Protocol(ctx context.Context, id, kind string) (protocol.Doc, error) {
	return protocol.Protocols.First(ctx, s.Store, protocol.OfType(id, kind))
}

// SetProtocol replaces the settings of a protocol, or creates the protocol, disabled. The settings of the application's
// own protocol_type are also in the application's record. The error is apperr.NotFound or InvalidParameters.
func (s *Applications) SetProtocol(ctx context.Context, id, kind string, prop protocol.Prop) error {
	protocolID, err := s.Store.NewID(ctx)
	if err != nil {
		return err
	}
	return docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		a, err := load(ctx, tx, id)
		if err != nil {
			return err
		}
		var faults apperr.Faults
		doc, err := s.putProtocol(ctx, tx, &faults, a.ID, kind, &prop, toggle.Off, protocolID)
		if err != nil {
			return err
		}
		if err := faults.Err(); err != nil {
			return err
		}
		if kind == a.ProtocolType && doc.Changed() {
			a.ProtocolProp = prop
			_, err = applications.Touch(ctx, tx, a)
		}
		return err
	})
}

// putMain stores the settings in an application's record as those of its own protocol, and reports whether they
// changed.
func (s *Applications) putMain(
	ctx context.Context, tx *docstore.Tx, faults *apperr.Faults, a *Application, newID string,
) (changed bool, err error) {
	doc, err := s.putProtocol(ctx, tx, faults, a.ID, a.ProtocolType, &a.ProtocolProp, toggle.On, newID)
	return doc.Changed(), err
}

// putProtocol stores valid settings of a protocol, completed, and tells the event. It creates the protocol with that
// status and id if there is none.
func (s *Applications) putProtocol(
	ctx context.Context, tx *docstore.Tx, faults *apperr.Faults, appID, kind string, prop *protocol.Prop,
	status, newID string,
) (protocol.Doc, error) {
	p, err := loadProtocol(ctx, tx, appID, kind)
	isNew := apperr.IsNotFound(err)
	if isNew && docstore.Expects(ctx, kind) {
		return protocol.Doc{}, apperr.New(apperr.VersionMismatch, "the protocol was never set up")
	}
	if err != nil && !isNew {
		return protocol.Doc{}, err
	}
	key := noSecret
	if isNew {
		p = &protocol.Protocol{Meta: docstore.Meta{ID: newID}, AppID: appID, Type: kind, Status: status}
	} else if key, err = p.RevealKey(ctx, tx); err != nil {
		return protocol.Doc{}, err
	}
	if prop.IsZero() {
		*prop = protocol.Default(kind)
	}
	prop.Check(faults.Within("protocol_prop"), kind, s.Rules.protocol(), p.Prop, key)
	if faults.Err() != nil {
		return protocol.Doc{}, nil
	}
	p.Prop = *prop
	if isNew {
		return protocol.Protocols.As("updated").Insert(ctx, tx, p)
	}
	return protocol.Protocols.Replace(ctx, tx, p)
}

// loadProtocol returns a protocol to be changed. The error is apperr.NotFound, or VersionMismatch if the request's
// If-Match is about another version of the protocol.
func loadProtocol(ctx context.Context, tx *docstore.Tx, appID, kind string) (*protocol.Protocol, error) {
	found, err := protocol.Protocols.LoadWhere(ctx, tx, protocol.OfType(appID, kind), "", 1)
	if err == nil && len(found) == 0 {
		err = apperr.Missing("protocol")
	}
	if err != nil {
		return nil, err
	}
	return found[0], docstore.CheckExpected(ctx, kind, found[0].Version)
}

// propOf returns the settings of an application's protocol; empty ones if it was never set up.
func propOf(ctx context.Context, tx *docstore.Tx, appID, kind string) (protocol.Prop, error) {
	p, err := loadProtocol(ctx, tx, appID, kind)
	if apperr.IsNotFound(err) {
		return protocol.Prop{}, nil
	}
	if err != nil {
		return protocol.Prop{}, err
	}
	return p.Prop, nil
}

// EnableProtocol enables a protocol. The error is apperr.NotFound or InvalidParameters for missing settings.
func (s *Applications) EnableProtocol(ctx context.Context, id, kind string) (protocol.Doc, error) {
	return s.setProtocolStatus(ctx, id, kind, toggle.On, "enabled")
}

// DisableProtocol disables a protocol. The error is apperr.NotFound.
func (s *Applications) DisableProtocol(ctx context.Context, id, kind string) error {
	_, err := s.setProtocolStatus(ctx, id, kind, toggle.Off, "disabled")
	return err
}

func (s *Applications) setProtocolStatus(ctx context.Context, id, kind, status, action string) (protocol.Doc, error) {
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (protocol.Doc, error) {
		a, err := Find(ctx, tx, id)
		if err != nil {
			return protocol.Doc{}, err
		}
		if err := mayHold(ctx, a.Scopes); err != nil {
			return protocol.Doc{}, err
		}
		p, err := loadProtocol(ctx, tx, id, kind)
		if err != nil {
			return protocol.Doc{}, err
		}
		if status == toggle.On {
			var faults apperr.Faults
			p.Prop.Lacks(&faults, kind, a.RedirectURL)
			if err := faults.Err(); err != nil {
				return protocol.Doc{}, err
			}
		}
		p.Status = status
		return protocol.Protocols.As(action).Replace(ctx, tx, p)
	})
}

// ProtocolSecret is the answer to the reset of a protocol's secret.
type ProtocolSecret struct {
	AppID      string `json:"app_id" doc:"The application"`
	Type       string `json:"protocol_type" doc:"Which protocol"`
	Secret     string `json:"secret" format:"password" doc:"The new secret; shown once"`
	SecretHint string `json:"secret_hint" doc:"Its last characters"`
}

// ResetProtocolSecret replaces a protocol's secret; the old one ends at once. The error is apperr.NotFound or Forbidden
// (the application has scopes that the caller lacks).
func (s *Applications) ResetProtocolSecret(ctx context.Context, id, kind string) (ProtocolSecret, error) {
	value := secret.Token(secretBytes)
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (ProtocolSecret, error) {
		a, err := Find(ctx, tx, id)
		if err != nil {
			return ProtocolSecret{}, err
		}
		if err := mayHold(ctx, a.Scopes); err != nil {
			return ProtocolSecret{}, err
		}
		p, err := loadProtocol(ctx, tx, id, kind)
		if err != nil {
			return ProtocolSecret{}, err
		}
		p.Secret, p.SecretHint = secret.NewText(value), hint(value)
		_, err = protocol.Protocols.As("secret_reset").Touch(ctx, tx, p)
		return ProtocolSecret{id, kind, value, p.SecretHint}, err
	})
}
