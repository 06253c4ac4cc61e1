package client_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/outbox"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/service"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/client"
)

func TestMain(m *testing.M) { basic.Main(m) }

type thing struct{ docstore.Meta }

var things = docstore.Define(docstore.Schema[thing]{Name: "things", Noun: "thing"})

// world is a cache beside the owners of what it caches.
type world struct {
	*testkit.Service
	*client.Clients
	asked atomic.Int64
	away  atomic.Bool
	gone  atomic.Bool
}

func start(t *testing.T) *world {
	t.Helper()
	w := &world{}
	w.Service = testkit.Start(t, service.Spec{
		Name: "sign-in", Collections: []*docstore.Def{things.Def()},
		New: func(_ context.Context, d service.Deps) (service.App, error) {
			w.Clients = client.New(d.Bus, d.Clock)
			return service.App{
				Handler: d.Server("sign-in"), Followers: []stream.FollowerConfig{w.Clients.Follower()},
			}, nil
		},
	})
	require.NoError(t, testkit.AnswerFor(w.Deps.Bus, "applications", "client",
		func(ctx context.Context, name questions.ClientName) (questions.Client, error) {
			w.asked.Add(1)
			switch {
			case w.away.Load():
				return questions.Client{}, context.DeadlineExceeded
			case w.gone.Load() || request.Tenant(ctx) != "acme":
				return questions.Client{}, apperr.Missing("application")
			}
			return questions.Client{AppID: "1", Name: name.ClientID + name.AppID + name.SPEntity + name.Service +
				name.Origin}, nil
		}))
	require.NoError(t, testkit.AnswerFor(w.Deps.Bus, "identity-sources", "login-template",
		func(_ context.Context, code questions.TemplateCode) (questions.LoginTemplate, error) {
			w.asked.Add(1)
			return questions.LoginTemplate{Found: true, Code: code.Code}, nil
		}))
	w.Ready()
	return w
}

func acme(t *testing.T) context.Context { return request.System(t.Context(), "acme") }

// happens publishes an event of a tenant, and waits until the cache has heard it.
func (w *world) happens(t *testing.T, tenant, entity string) {
	t.Helper()
	ctx := request.System(t.Context(), tenant)
	id, err := w.Deps.Store.NewID(ctx)
	require.NoError(t, err)
	require.NoError(t, docstore.Do(ctx, w.Deps.Store, func(tx *docstore.Tx) error {
		doc, err := things.Insert(ctx, tx, &thing{Meta: docstore.Meta{ID: id}})
		if err != nil {
			return err
		}
		return outbox.Tell(ctx, tx, outbox.Kind{Entity: entity, Source: "/things"}, "updated", &doc, nil)
	}))
}

func TestAnswersAreKept(t *testing.T) {
	t.Parallel()
	w := start(t)
	for i, name := range []questions.ClientName{
		{ClientID: "x"}, {AppID: "x"}, {SPEntity: "x"}, {Service: "https://x.test/a"}, {Origin: "https://x.test"},
	} {
		for range 3 {
			found, err := w.Of(acme(t), name)
			require.NoError(t, err)
			require.Equal(t, name.ClientID+name.AppID+name.SPEntity+name.Service+name.Origin, found.Name)
		}
		require.EqualValues(t, i+1, w.asked.Load(), "each is asked for once")
	}
	found, err := w.Of(acme(t), questions.ClientName{Service: "https://x.test/a?ticket=1#top"})
	require.NoError(t, err)
	require.Equal(t, "https://x.test/a", found.Name)
	require.EqualValues(t, 5, w.asked.Load(), "the query of a service does not count")
	for _, code := range []string{"", "strong", "strong"} {
		template, err := w.Template(acme(t), code)
		require.NoError(t, err)
		require.Equal(t, code, template.Code)
	}
	require.EqualValues(t, 7, w.asked.Load())

	for _, service := range []string{"", "x", "/x", "javascript:alert(1)", "https://u:p@x.test/"} {
		_, err := w.Of(acme(t), questions.ClientName{Service: service})
		require.True(t, apperr.IsNotFound(err), service)
	}
	_, err = w.Of(request.System(t.Context(), "globex"), questions.ClientName{ClientID: "x"})
	require.True(t, apperr.IsNotFound(err), "another tenant")
	w.Clock.Advance(10 * time.Minute)
	_, err = w.Of(acme(t), questions.ClientName{ClientID: "x"})
	require.NoError(t, err)
	require.EqualValues(t, 9, w.asked.Load())
}

func TestEventsDropAnswers(t *testing.T) {
	t.Parallel()
	w := start(t)
	name := questions.ClientName{ClientID: "x"}
	ask := func() int64 {
		t.Helper()
		_, err := w.Of(acme(t), name)
		require.NoError(t, err)
		return w.asked.Load()
	}
	require.EqualValues(t, 1, ask())
	w.happens(t, "globex", "application")
	for i, entity := range []string{"application", "protocol", "auth_template", "auth_method", "connection"} {
		w.happens(t, "acme", entity)
		wait.Until(t, func() bool { return ask() == int64(i+2) })
		require.EqualValues(t, i+2, ask())
	}
	w.happens(t, "acme", "application")
	w.gone.Store(true)
	wait.Until(t, func() bool {
		_, err := w.Of(acme(t), name)
		return apperr.IsNotFound(err)
	})
}

// Answers are good for ten minutes without their owner.
func TestOwnerIsAway(t *testing.T) {
	t.Parallel()
	w := start(t)
	name := questions.ClientName{ClientID: "x"}
	_, err := w.Of(acme(t), name)
	require.NoError(t, err)
	w.NATS.Stop()
	_, err = w.Of(acme(t), name)
	require.NoError(t, err)
	_, err = w.Of(acme(t), questions.ClientName{ClientID: "y"})
	require.Equal(t, apperr.Unavailable, apperr.KindOf(err))
	w.Clock.Advance(10*time.Minute - time.Millisecond)
	_, err = w.Of(acme(t), name)
	require.NoError(t, err)
	w.Clock.Advance(time.Millisecond)
	_, err = w.Of(acme(t), name)
	require.Equal(t, apperr.Unavailable, apperr.KindOf(err))
}
