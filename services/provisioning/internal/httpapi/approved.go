package httpapi

import (
	"context"
	"net/http"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/services/provisioning/internal/connection"
	"github.com/idplatform/idplatform/services/provisioning/internal/gate"
	"github.com/idplatform/idplatform/services/provisioning/internal/people"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/message"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/patch"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/resource"
)

// CarryOut carries out a held request that a person has approved: as its client, if the resource has not changed since.
// With alone it carries out only what the request removes, whatever has changed.
func CarryOut(d Domain, alone bool) func(context.Context, *connection.Connection, *gate.Request) error {
	a := &api{d}
	return func(ctx context.Context, c *connection.Connection, r *gate.Request) error {
		info := request.From(ctx)
		info.Tenant, info.Actor = c.TenantID, connection.Actor(c.ID)
		ctx = request.With(ctx, info)
		e := a.users()
		if r.Type == "Group" {
			e = a.groups()
		}
		op := &message.BulkOperation{Method: r.Method}
		if r.Body != "" {
			data, err := resource.DecodeObject([]byte(r.Body))
			if err != nil {
				return err
			}
			op.Data = data
		}
		call := people.Call{
			Connection: c, Ignored: &resource.Ignored{}, Method: r.Method, Path: r.Path, Body: r.Body,
		}
		switch {
		case !alone:
			call.Match = func(tag string) bool { return tag == r.Tag }
		case r.Type == "Group":
			call.RemovesOnly, call.Stays = true, r.Stays
		case r.Method != http.MethodDelete:
			op.Method, op.Data = http.MethodPatch, deactivation
		}
		_, _, err := perform(ctx, call, e, op, r.ResourceID)
		if r.Method == http.MethodDelete && apperr.IsNotFound(err) {
			return nil // it is gone already
		}
		return err
	}
}

// deactivation is what remains of a change of a user that was held and whose user has changed since.
var deactivation = resource.Object{"Operations": []any{
	resource.Object{"op": string(patch.Replace), "path": "active", "value": false},
}}
