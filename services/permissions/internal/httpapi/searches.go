package httpapi

import (
	"context"
	"fmt"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/permissions/internal/engine"
)

// Object is what an identity may do something with.
type Object struct {
	ApplicationID string   `json:"application_id" doc:"The application" example:"2001"`
	Type          string   `json:"object_type" enum:"data,api,ui,app" doc:"What it is"`
	ID            string   `json:"object_id" doc:"Its id" example:"1048578"`
	Code          string   `json:"object_code" doc:"Its code" example:"orders"`
	Name          string   `json:"object_name" doc:"How it is shown" example:"Orders"`
	Actions       []string `json:"actions" doc:"What the identity may do with it, or the action asked for; empty for an application"`
}

type listObjectsInput struct {
	docstore.Paging
	IdentityID    string `query:"identity_id" required:"true" minLength:"1" maxLength:"64"`
	IdentityType  string `query:"identity_type" required:"true" enum:"user,node,core_object,application,group,everyone"`
	ApplicationID string `query:"application_id" maxLength:"64" doc:"Required unless object_type is app"`
	ObjectType    string `query:"object_type" required:"true" enum:"data,api,ui,app"`
	Action        string `query:"action" maxLength:"64" doc:"Absent: any action"`
	Consistency
}

func (a *api) listObjects(ctx context.Context, in *listObjectsInput) (rest.List[Object], error) {
	if in.ApplicationID == "" && in.ObjectType != engine.App {
		return rest.List[Object]{}, apperr.Invalid("application_id", "must be given")
	}
	state, err := a.state(ctx, in.Token)
	if err != nil {
		return rest.List[Object]{}, err
	}
	work, done := a.work(ctx)
	defer done()
	found, err := state.Objects(ctx, &engine.Question{
		Identity: engine.Identity{Type: in.IdentityType, ID: in.IdentityID}, ApplicationID: in.ApplicationID,
		ObjectType: in.ObjectType,
		Action:     in.Action, Now: a.clock.Now().Millis(), Work: work,
	})
	if err != nil {
		return rest.List[Object]{}, answerable(err)
	}
	return pageOf[Object](ctx, in.Paging, answerList[engine.Object]{
		entries: found, key: objectKey, append: appendObject,
		query: []string{"objects", in.IdentityType, in.IdentityID, in.ApplicationID, in.ObjectType, in.Action},
	})
}

// objectKey orders objects as the engine does: applications by id, resources by code.
func objectKey(o engine.Object) string {
	if o.Resource == nil {
		return o.ApplicationID
	}
	return o.Resource.Code + "\x00" + idKey(o.Resource.ID)
}

// idKey orders ids as the engine does: by length, then by text.
func idKey(id string) string { return fmt.Sprintf("%03d%s", len(id), id) }

// appendObject appends an object in the form of Object.
func appendObject(b []byte, o engine.Object) []byte {
	wire := Object{ApplicationID: o.ApplicationID, Type: engine.App, ID: o.ApplicationID}
	if r := o.Resource; r != nil {
		wire = Object{r.ApplicationID, r.Type, r.ID, r.Code, r.Name, o.Actions}
	}
	b = rest.AppendText(append(b, `{"application_id":`...), wire.ApplicationID)
	b = rest.AppendText(append(b, `,"object_type":`...), wire.Type)
	b = rest.AppendText(append(b, `,"object_id":`...), wire.ID)
	b = rest.AppendText(append(b, `,"object_code":`...), wire.Code)
	b = rest.AppendText(append(b, `,"object_name":`...), wire.Name)
	b = append(b, `,"actions":[`...)
	for i, action := range wire.Actions {
		if i > 0 {
			b = append(b, ',')
		}
		b = rest.AppendText(b, action)
	}
	return append(b, "]}"...)
}

type listIdentitiesInput struct {
	docstore.Paging
	IdentityType  string `query:"identity_type" default:"user" enum:"user,node,core_object,application,group,everyone"`
	ApplicationID string `query:"application_id" required:"true" minLength:"1" maxLength:"64"`
	ObjectType    string `query:"object_type" required:"true" enum:"data,api,ui,app"`
	ObjectCode    string `query:"object_code" maxLength:"256"`
	ObjectID      string `query:"object_id" maxLength:"64"`
	Action        string `query:"action" maxLength:"64" doc:"Required unless object_type is app"`
	Consistency
}

func (a *api) listIdentities(ctx context.Context, in *listIdentitiesInput) (rest.List[Identity], error) {
	var faults apperr.Faults
	if in.ObjectType != engine.App {
		faults.Check((in.ObjectCode != "") != (in.ObjectID != ""), "object_code",
			"must be given, or object_id, but not both")
		faults.Check(in.Action != "", "action", "must be given")
	}
	if err := faults.Err(); err != nil {
		return rest.List[Identity]{}, err
	}
	state, err := a.state(ctx, in.Token)
	if err != nil {
		return rest.List[Identity]{}, err
	}
	work, done := a.work(ctx)
	defer done()
	found, err := state.Identities(ctx, &engine.Question{
		ApplicationID: in.ApplicationID, ObjectType: in.ObjectType, ObjectCode: in.ObjectCode, ObjectID: in.ObjectID,
		Action: in.Action,
		Now:    a.clock.Now().Millis(), Work: work,
	}, in.IdentityType)
	if err != nil {
		return rest.List[Identity]{}, answerable(err)
	}
	return pageOf[Identity](ctx, in.Paging, answerList[engine.Identity]{
		entries: found,
		key:     func(who engine.Identity) string { return idKey(who.ID) },
		append: func(b []byte, who engine.Identity) []byte {
			b = rest.AppendText(append(b, `{"identity_id":`...), who.ID)
			b = rest.AppendText(append(b, `,"identity_type":`...), who.Type)
			return append(rest.AppendText(append(b, `,"identity_name":`...), state.Label(who)), '}')
		},
		query: []string{"identities", in.IdentityType, in.ApplicationID, in.ObjectType, in.ObjectCode, in.ObjectID,
			in.Action},
	})
}

// appendEncoded appends the JSON of a value whose members are texts and lists of texts.
func appendEncoded[W any](b []byte, value W) []byte {
	raw, _ := rest.Encoded(value) // texts always marshal
	return append(b, raw.JSON...)
}
