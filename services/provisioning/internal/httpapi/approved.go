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
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/resource"
)

// CarryOut carries out a held request that a person has approved: as its client, if the resource has not changed since.
func CarryOut(d Domain) func(context.Context, *connection.Connection, *gate.Request) error {
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
			Match: func(tag string) bool { return tag == r.Tag },
		}
		_, _, err := perform(ctx, call, e, op, r.ResourceID)
		if r.Method == http.MethodDelete && apperr.IsNotFound(err) {
			return nil // it is gone already
		}
		return err
	}
}
