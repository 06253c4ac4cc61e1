package applications_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/service"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
	"github.com/idplatform/idplatform/services/applications"
)

// guided is a service whose tasks are run by the test, and that reports the events that it has handled.
type guided struct {
	*testkit.Service
	*testkit.Client
	t     testing.TB
	tasks map[string]func(context.Context) (int, error)
	heard chan string
}

// guide starts a guided service and a client of the tenant acme.
func guide(t testing.TB) *guided {
	t.Helper()
	g := &guided{t: t, tasks: map[string]func(context.Context) (int, error){}, heard: make(chan string, 1000)}
	spec := applications.Spec(applications.DefaultConfig())
	makeApp := spec.New
	spec.New = func(ctx context.Context, d service.Deps) (service.App, error) {
		app, err := makeApp(ctx, d)
		for _, task := range app.Tasks {
			g.tasks[task.Name] = task.Do
		}
		app.Tasks = nil
		for i := range app.Consumers {
			handle := app.Consumers[i].Handle
			app.Consumers[i].Handle = func(ctx context.Context, e stream.Event) error {
				err := handle(ctx, e)
				if err == nil {
					g.heard <- e.ID
				}
				return err
			}
		}
		return app, err
	}
	g.Service = testkit.Start(t, spec)
	answers(t, g.Service)
	g.Client = in(g.Service, "acme")
	return g
}

// tell publishes another service's event and waits until it has been handled.
func (g *guided) tell(tenant, event, id string, sequence int) {
	g.t.Helper()
	entity, _, _ := strings.Cut(event, ".")
	eventID := fmt.Sprint("event-", tenant, event, id, sequence, time.Now().UnixNano())
	payload, err := json.Marshal(object{
		"specversion": "1.0", "id": eventID, "source": "/" + entity + "s", "type": "idp." + event, "subject": id,
		"time":            "2026-01-31T09:30:00.000Z",
		"datacontenttype": "application/json", "tenantid": tenant, "sequence": strconv.Itoa(sequence),
		"data": object{"record": object{"id": id}},
	})
	require.NoError(g.t, err)
	_, err = g.Deps.Bus.JetStream().Publish(g.t.Context(), "idp.events."+tenant+"."+event, payload,
		jetstream.WithMsgID(eventID))
	require.NoError(g.t, err)
	for {
		if wait.Receive(g.t, g.heard) == eventID {
			return
		}
	}
}

// do runs a task until nothing is left to do.
func (g *guided) do(task string) {
	g.t.Helper()
	for n := 1; n > 0; {
		var err error
		n, err = g.tasks[task](g.t.Context())
		require.NoError(g.t, err)
	}
}

// accounts are the names of an application's sub-accounts.
func (g *guided) accounts(app object) []any {
	g.t.Helper()
	return g.Items(path(app, "accounts?page_sort=account"), "account")
}

// A user who leaves loses all sub-accounts, in every application, and gets none from requests that began before.
func TestUserLeaves(t *testing.T) {
	t.Parallel()
	g := guide(t)
	one, two := multi(t, g.Client, "one"), addApp(t, g.Client, "two")
	addAccount(t, g.Client, one, "7", "a")
	addAccount(t, g.Client, one, "7", "b")
	addAccount(t, g.Client, two, "7", "a")
	addAccount(t, g.Client, one, "8", "c")
	globex := in(g.Service, "globex")
	foreign := addApp(t, globex, "one")
	addAccount(t, globex, foreign, "7", "a")

	g.tell("acme", "user.resigned", "7", 30)
	assert.Equal(t, []any{"c"}, g.accounts(one))
	assert.Empty(t, g.accounts(two))
	assert.Len(t, globex.Items(path(foreign, "accounts"), "id"), 1)
	g.Post(path(one, "multi-accounts/disable"), nil).OK(nil)
	g.Client.Post(path(two, "accounts"), object{"user_id": "7", "account": "x"}).Problem(400, "invalid_parameters",
		"body.user_id")

	g.tell("acme", "user.reinstated", "7", 40)
	addAccount(t, g.Client, two, "7", "again")
	g.tell("acme", "user.resigned", "7", 30) // an earlier event is delivered again
	assert.Equal(t, []any{"again"}, g.accounts(two))
	g.tell("acme", "user.deleted", "7", 50)
	assert.Empty(t, g.accounts(two))
	g.tell("acme", "user.deleted", "9", 10) // a user without sub-accounts
}

// A connection that was attached while it was being deleted is detached.
func TestConnectionGone(t *testing.T) {
	t.Parallel()
	g := guide(t)
	one, two := addApp(t, g.Client, "one"), addApp(t, g.Client, "two")
	for _, app := range []object{one, two} {
		g.Post(path(app, "idp"), object{"config_ids": []any{"31", "32"}}).OK(nil)
	}
	g.tell("globex", "connection.deleted", "31", 10)
	assert.Len(t, g.Get(path(one)).Object()["idps"], 2)
	g.tell("acme", "connection.deleted", "31", 10)
	for _, app := range []object{one, two} {
		assert.Equal(t, []any{object{"config_id": "32", "provider_code": "provider-32"}},
			g.Get(path(app)).Object()["idps"])
	}
	g.tell("acme", "connection.deleted", "31", 10)
}

// More sub-accounts than one transaction deletes are deleted with their application, each with its event.
func TestManyAccountsEnd(t *testing.T) {
	t.Parallel()
	g := guide(t)
	app := multi(t, g.Client, "a")
	batch := "/v1/batch/applications/" + app["id"].(string) + "/accounts"
	for n := range 2 {
		var items []any
		for i := range 600 {
			items = append(items, object{"user_id": fmt.Sprint(i % 400), "account": fmt.Sprint(n, "-", i)})
		}
		g.Post(batch, object{"items": items}).OK(nil)
	}
	g.Delete(path(app), nil).OK(nil)
	g.Get(path(app, "accounts")).Problem(404, "not_found")
	g.do("delete sub-accounts")
	for _, collection := range []string{"accounts", "account_holders", "deleted_applications"} {
		assert.Empty(t, testkit.Stored(t, g.Service, "acme", collection), collection)
	}
	ended := map[string]int{}
	g.EventsUntil(func(e stream.Event) bool {
		if e.Type == "idp.account.deleted" {
			ended[e.Subject]++
		}
		return len(ended) == 1200
	})
}

// Expired secrets are deleted with their hashes.
func TestSecretsEnd(t *testing.T) {
	t.Parallel()
	g := guide(t)
	app := addApp(t, g.Client, "a")
	g.Post(path(app, "secrets?grace_seconds=60"), nil).OK(nil)
	before := g.Get(path(app)).Object()
	require.Len(t, before["secrets"], 2)
	g.do("end client secrets")
	unchanged(t, g.Client, before)
	g.Clock.Advance(time.Minute)
	g.do("end client secrets")
	after := g.Get(path(app)).Object()
	assert.Len(t, after["secrets"], 1)
	assert.EqualValues(t, 3, after["version"])
	kept := members(t, []byte(testkit.Stored(t, g.Service, "acme", "secret_hashes")[app["id"].(string)]))["sha256"]
	assert.Len(t, members(t, kept), 1)
}
