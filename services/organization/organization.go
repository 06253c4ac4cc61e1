// Package organization is the organization service: core objects, each a tree of nodes, the members of nodes, and
// associations between trees. It exports only what a program needs to run it.
//
// membership.deleted has one form, whether one membership ends or, with its node, a batch: data.record is the first
// that ended, and data.memberships lists all, each with id, object_code, node_id, user_id and sequence. A consumer that
// stores memberships must use that list: a later event about a listed membership with a lower sequence is out of date.
// node_name and node_path of the record are empty if the node was deleted, too.
package organization

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/service"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/services/organization/internal/httpapi"
	"github.com/idplatform/idplatform/services/organization/internal/link"
	"github.com/idplatform/idplatform/services/organization/internal/member"
	"github.com/idplatform/idplatform/services/organization/internal/tree"
	"github.com/idplatform/idplatform/services/questions"
)

// Spec describes the service.
func Spec() service.Spec {
	return service.Spec{
		Name:        "organization",
		Collections: slices.Concat(tree.Collections(), member.Collections(), link.Collections()),
		New:         newApp,
		CacheWeight: 2,
	}
}

func newApp(_ context.Context, d service.Deps) (service.App, error) {
	members := member.New(member.Deps{Store: d.Store, Bus: d.Bus, Log: d.Log})
	links := link.New(link.Deps{Store: d.Store})
	trees := tree.New(tree.Deps{
		Store: d.Store, Bus: d.Bus,
		OnRemove: func(ctx context.Context, tx *docstore.Tx, n *tree.Node) error {
			return errors.Join(members.OnRemove(ctx, tx, n), link.OnRemove(ctx, tx, n))
		},
		OnCondition: members.OnCondition,
	})
	server := d.Server("organization")
	httpapi.Register(server, trees, members, links)
	return service.App{
		Handler: server,
		Tasks: []service.Task{
			// Its documents are the turns of tenants, which fall due again as long as there is work. It is a task of
			// its own (fair.TenantQueue), because a DueTask counts a document that is still due as a failure.
			{Name: "keep memberships", Every: time.Second, Do: members.Upkeep},
			d.DueTask(service.DueWork{Name: "forget membership changes", Every: time.Minute, Due: member.DueChanges,
				Do: members.Forget}),
		},
		Answer: func(b *bus.Bus) error { return answer(b, trees, members) },
		Consumers: []stream.ConsumerConfig{
			{Name: "organization-users", Types: stream.Types{"user.*"}, Handle: members.OnUser},
		},
	}, nil
}

// answer registers the answers to other services' questions.
func answer(b *bus.Bus, trees *tree.Trees, members *member.Members) error {
	return errors.Join(
		questions.ChangeMembership.Answer(b, members.Apply),
		questions.ChangeMemberships.Answer(b, members.ApplyMany),
		questions.SettleChange.Answer(b, func(ctx context.Context, q questions.ChangeID) (questions.ChangeOutcome,
			error) {
			return members.Settle(ctx, q.ID)
		}),
		questions.MakeTree.Answer(b, trees.MakeTree),
		questions.ChangeNode.Answer(b, func(ctx context.Context, c questions.NodeChange) (questions.NodeState, error) {
			return trees.ApplyChange(ctx, c, member.NoteNode)
		}),
		questions.ChangeMembers.Answer(b, members.ApplyToNode),
		questions.NextOrganizationTenant.Answer(b,
			func(ctx context.Context, q questions.TenantName) (questions.TenantName, error) {
				next, err := trees.NextTenant(ctx, q.Tenant)
				return questions.TenantName{Tenant: next}, err
			}),
		questions.CoreObjectRecords.Answer(b, trees.ObjectRecords),
		questions.NodeRecords.Answer(b, trees.NodeRecords),
		questions.MembershipRecords.Answer(b, members.Records),
		questions.MembershipPlaces.Answer(b, members.Places),
		questions.GroupsOfUser.Answer(b, members.Groups),
	)
}
