package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/users/internal/user"
)

func (a *api) registerLocks(s *rest.Server) {
	rest.Handle(s, rest.Op{
		ID: "lock-user", Method: http.MethodPost, Path: "/v1/users/{id}/lock", Scope: auth.UsersWrite,
		Summary: "Lock a user",
		Doc:     "A lock with `until` ends by itself. Locking a locked user updates both members.",
		Errors:  []apperr.Kind{apperr.InvalidState}, Request: map[string]any{"reason": "on leave"},
	}, a.lockUser)
	rest.Handle(s, rest.Op{
		ID: "lock-users", Method: http.MethodPost, Path: "/v1/batch/users-lock", Scope: auth.UsersWrite,
		Summary: "Lock users",
		Doc:     "All or nothing.", Request: map[string]any{"ids": []string{"1048577"}, "reason": "on leave"},
	}, a.lockUsers)
	rest.Handle(s, rest.Op{
		ID: "unlock-users", Method: http.MethodPost, Path: "/v1/batch/users-unlock", Scope: auth.UsersWrite,
		Summary: "Unlock users",
		Doc:     "All or nothing.",
	}, a.unlockUsers)
}

func (a *api) registerStates(s *rest.Server) {
	rest.Handle(s, rest.Op{
		ID: "resign-user", Method: http.MethodPost, Path: "/v1/users/{id}/resign", Scope: auth.UsersWrite,
		Summary: "Resign a user",
		Doc: "At once, or when `effective_time` comes: `time_resigned` then lies in the future. Sign-in is refused " +
			"from then on; other services end memberships, grants and sub-accounts when they receive the event " +
			"`user.resigned`.",
		Errors:  []apperr.Kind{apperr.InvalidState},
		Request: map[string]any{"effective_time": "2026-12-31T00:00:00Z", "reason": "retired"},
	}, a.resignUser)
	rest.Handle(s, rest.Op{
		ID: "verify-real-name", Method: http.MethodPost, Path: "/v1/users/{id}/real-name-verification",
		Scope: auth.UsersWrite, Summary: "Verify a real name",
		Doc: "A `cn_resident_id` number is checked by GB 11643; other types become `pending`. If a verifier is " +
			"configured, it decides. Only a keyed hash and a mask of the number are kept. No two users of a tenant " +
			"can have the same number.",
		Errors:  []apperr.Kind{apperr.AlreadyExists, apperr.InvalidState},
		Request: map[string]any{"real_name": "李伟", "id_number": "11010519491231002X", "id_type": "cn_resident_id"},
	}, a.verifyRealName)
	rest.Handle(s, rest.Op{
		ID: "change-organization", Method: http.MethodPost, Path: "/v1/users/{id}/change-organization",
		Scope: auth.UsersWrite, Summary: "Move a user to another tree node",
		AlsoScopes: []auth.Scope{auth.OrganizationWrite},
		Doc: "The organization service does it, all or nothing. Without `from_node_id` the user is added. The caller " +
			"needs the scopes of this API that rules give the members of the new node. After a " +
			"502 `outcome_unknown` the move may have been made; if so, the event `user.organization_changed` follows " +
			"as soon as that service answers.",
		Errors:   []apperr.Kind{apperr.InvalidState, apperr.OutcomeUnknown},
		Request:  map[string]any{"object_code": "company", "from_node_id": "31", "to_node_id": "32"},
		Response: map[string]any{"memberships": []any{}},
	}, a.changeOrganization)
	rest.Handle(s, rest.Op{
		ID: "change-organization-of-users", Method: http.MethodPost, Path: "/v1/batch/users-change-organization",
		Scope: auth.UsersWrite, Summary: "Move users to another tree node",
		AlsoScopes: []auth.Scope{auth.OrganizationWrite},
		Doc: "All or nothing; otherwise as `change-organization`. Each user has an event " +
			"`user.organization_changed`.",
		Errors: []apperr.Kind{apperr.AlreadyExists, apperr.InvalidState},
		Request: map[string]any{
			"ids": []string{"1048577"}, "object_code": "company", "from_node_id": "31", "to_node_id": "32",
		},
	}, a.changeOrganizations)
}

type lockBody struct {
	Reason string     `json:"reason,omitempty" doc:"Up to 256 characters, kept as lock_reason" example:"on leave"`
	Until  *time.Time `json:"until,omitempty" nullable:"true" doc:"When the lock ends by itself"`
}

type lockInput struct {
	rest.ByID
	Body *lockBody
}

// moment returns the zero time for an absent or null member.
func moment(t *time.Time) clock.Time {
	if t == nil {
		return clock.Time{}
	}
	return clock.Of(*t)
}

func (a *api) lockUser(ctx context.Context, in *lockInput) (rest.Record[user.User], error) {
	if in.Body == nil {
		in.Body = &lockBody{}
	}
	return rest.RecordOf[user.User](a.users.Lock(ctx, in.ID, in.Body.Reason, moment(in.Body.Until)))
}

type lockUsersInput struct {
	Body struct {
		IDs    []string   `json:"ids" minItems:"1" maxItems:"1000" doc:"1…1000 ids"`
		Reason string     `json:"reason,omitempty" doc:"Up to 256 characters, kept as lock_reason"`
		Until  *time.Time `json:"until,omitempty" nullable:"true" doc:"When the locks end by themselves; absent: they do not"`
	}
}

func (a *api) lockUsers(ctx context.Context, in *lockUsersInput) (user.Batch, error) {
	return a.users.LockMany(ctx, in.Body.IDs, in.Body.Reason, moment(in.Body.Until))
}

func (a *api) unlockUsers(ctx context.Context, in *idsInput) (user.Batch, error) {
	return a.users.UnlockMany(ctx, in.Body.IDs)
}

type resignBody struct {
	EffectiveTime *time.Time `json:"effective_time,omitempty" nullable:"true" doc:"Absent: at once"`
	Reason        string     `json:"reason,omitempty" doc:"Up to 256 characters"`
	SuccessorID   string     `json:"successor_id,omitempty" doc:"The user who takes over"`
}

type resignInput struct {
	rest.ByID
	Body *resignBody
}

func (a *api) resignUser(ctx context.Context, in *resignInput) (rest.Record[user.User], error) {
	if in.Body == nil {
		in.Body = &resignBody{}
	}
	doc, err := a.users.Resign(ctx, in.ID, user.Resignation{
		EffectiveTime: moment(in.Body.EffectiveTime), Reason: in.Body.Reason, SuccessorID: in.Body.SuccessorID,
	})
	return rest.RecordOf[user.User](doc, err)
}

type realNameInput struct {
	rest.ByID
	Body struct {
		RealName string `json:"real_name" doc:"As in the document" example:"李伟"`
		IDNumber string `json:"id_number" writeOnly:"true" doc:"Of the document; only a keyed hash of it is kept" example:"11010519491231002X"`
		IDType   string `json:"id_type,omitempty" doc:"cn_resident_id unless given" example:"cn_resident_id"`
	}
}

func (a *api) verifyRealName(ctx context.Context, in *realNameInput) (rest.Record[user.User], error) {
	doc, err := a.users.VerifyRealName(ctx, in.ID, user.RealName{Name: in.Body.RealName, Number: in.Body.IDNumber,
		Type: in.Body.IDType})
	return rest.RecordOf[user.User](doc, err)
}

type organizationInput struct {
	rest.ByID
	Body struct {
		ObjectCode string `json:"object_code" minLength:"1" maxLength:"256" doc:"The tree" example:"company"`
		FromNodeID string `json:"from_node_id,omitempty" maxLength:"64" doc:"The node to leave"`
		ToNodeID   string `json:"to_node_id" minLength:"1" maxLength:"64" doc:"The node to join"`
	}
}

type organizationsInput struct {
	Body struct {
		IDs        []string `json:"ids" minItems:"1" maxItems:"1000" doc:"1…1000 ids"`
		ObjectCode string   `json:"object_code" minLength:"1" maxLength:"256" doc:"The tree" example:"company"`
		FromNodeID string   `json:"from_node_id,omitempty" maxLength:"64" doc:"The node to leave"`
		ToNodeID   string   `json:"to_node_id" minLength:"1" maxLength:"64" doc:"The node to join"`
	}
}

func (a *api) changeOrganizations(ctx context.Context, in *organizationsInput) (user.Batch, error) {
	return a.users.ChangeOrganizations(ctx, questions.MembershipsChange{
		UserIDs: in.Body.IDs, ObjectCode: in.Body.ObjectCode, FromNodeID: in.Body.FromNodeID,
		ToNodeID: in.Body.ToNodeID,
	})
}

func (a *api) changeOrganization(ctx context.Context, in *organizationInput) (questions.Memberships, error) {
	return a.users.ChangeOrganization(ctx, questions.MembershipChange{
		UserID: in.ID, ObjectCode: in.Body.ObjectCode, FromNodeID: in.Body.FromNodeID, ToNodeID: in.Body.ToNodeID,
	})
}
