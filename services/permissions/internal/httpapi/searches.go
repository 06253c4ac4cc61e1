package httpapi

import (
	"context"
	"encoding/base64"
	"sort"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/permissions/internal/engine"
)

// Object is one that an identity may do something with.
type Object struct {
	ApplicationID string   `json:"application_id" example:"2001"`
	Type          string   `json:"object_type" enum:"data,api,ui,app"`
	ID            string   `json:"object_id" example:"1048578"`
	Code          string   `json:"object_code" example:"orders"`
	Name          string   `json:"object_name" example:"Orders"`
	Actions       []string `json:"actions" doc:"What the identity may do with it, or the action asked for; empty for an application"`
}

type listObjectsInput struct {
	rest.Paging
	IdentityID    string `query:"identity_id" required:"true" minLength:"1" maxLength:"64"`
	IdentityType  string `query:"identity_type" required:"true" enum:"user,node,core_object,application,group,everyone"`
	ApplicationID string `query:"application_id" maxLength:"64" doc:"Required unless object_type is app"`
	ObjectType    string `query:"object_type" required:"true" enum:"data,api,ui,app"`
	Action        string `query:"action" maxLength:"64" doc:"Absent: any action"`
	Token         string `header:"X-Consistency-Token" maxLength:"512"`
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
	return pageOf[Object](in.Paging, found, func(o engine.Object) string {
		if o.Resource == nil {
			return o.ApplicationID
		}
		return o.Resource.Code + "\x00" + o.Resource.ID
	}, appendObject)
}

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
	rest.Paging
	IdentityType  string `query:"identity_type" default:"user" enum:"user,node,core_object,application,group,everyone"`
	ApplicationID string `query:"application_id" required:"true" minLength:"1" maxLength:"64"`
	ObjectType    string `query:"object_type" required:"true" enum:"data,api,ui,app"`
	ObjectCode    string `query:"object_code" maxLength:"256"`
	ObjectID      string `query:"object_id" maxLength:"64"`
	Action        string `query:"action" maxLength:"64" doc:"Required unless object_type is app"`
	Token         string `header:"X-Consistency-Token" maxLength:"512"`
}

func (a *api) listIdentities(ctx context.Context, in *listIdentitiesInput) (rest.List[Identity], error) {
	var faults apperr.Faults
	if in.ObjectType != engine.App {
		faults.Check((in.ObjectCode != "") != (in.ObjectID != ""), "object_code",
			"or object_id must be given, one of them")
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
	return pageOf[Identity](in.Paging, found,
		func(who engine.Identity) string { return string(rune(len(who.ID))) + who.ID },
		func(b []byte, who engine.Identity) []byte {
			b = rest.AppendText(append(b, `{"identity_id":`...), who.ID)
			b = rest.AppendText(append(b, `,"identity_type":`...), who.Type)
			return append(rest.AppendText(append(b, `,"identity_name":`...), state.Label(who)), '}')
		})
}

// appendEncoded appends a value that has only texts.
func appendEncoded[W any](b []byte, value W) []byte {
	raw, _ := rest.Encoded(value) // texts always marshal
	return append(b, raw.JSON...)
}

// pageOf returns a page of a list that is in the order of its entries' keys. entry appends the JSON of one.
func pageOf[W, T any](p rest.Paging, all []T, key func(T) string, entry func([]byte, T) []byte) (rest.List[W], error) {
	list := rest.List[W]{Total: -1, Num: p.PageNum, Size: p.PageSize}
	if p.PageSort != "" {
		return list, apperr.Invalid("page_sort", "is not for this list, which has one order")
	}
	from := min((p.PageNum-1)*p.PageSize, len(all))
	if p.PageToken != "" {
		after, err := base64.RawURLEncoding.DecodeString(p.PageToken)
		if err != nil {
			return list, apperr.Invalid("page_token", "is not a page token of this list")
		}
		from = sort.Search(len(all), func(i int) bool { return key(all[i]) > string(after) })
	}
	to := min(from+p.PageSize, len(all))
	list.Write = func(b []byte) []byte {
		for i, one := range all[from:to] {
			if i > 0 {
				b = append(b, ',')
			}
			b = entry(b, one)
		}
		return b
	}
	if p.Count.Or(true) {
		list.Total = int64(len(all))
	}
	if to < len(all) {
		list.Next = base64.RawURLEncoding.EncodeToString([]byte(key(all[to-1])))
	}
	return list, nil
}
